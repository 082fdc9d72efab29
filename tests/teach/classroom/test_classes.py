"""A class on SQLite and on PostgreSQL: no vote is lost, counted twice, or taken late."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings, strategies as st
from sqlalchemy import update

from gptviz.teach.classroom import ClassError, classes as module, parse_code, written_code
from gptviz.teach.classroom.classes import Classes
from gptviz.teach.classroom.room import ALPHABET, LENGTH, free_name, new_code
from gptviz.teach.classroom.tables import CLASSES, VERSION, open_database


def begin(classes, pupils=0):
    """A class's secret and code, and its pupils."""
    secret = classes.begin("the guide's text, \0 and \ud800", {"model": "mini"}, ["attention"])
    code = classes.member(secret).room.code
    return secret, code, *(classes.member(classes.join(code, "here")) for _ in range(pupils))


def test_a_class_from_its_beginning_to_its_end(classes):
    secret, code = begin(classes)
    teacher = classes.member(secret)
    assert teacher.teaches
    assert (teacher.room.model, teacher.room.pages) == ({"model": "mini"}, ("attention",))
    assert classes.guide(teacher.room.id) == "the guide's text, \0 and \ud800"
    first, second = (classes.join(written_code(code).lower(), "here") for _ in range(2))
    otter = classes.member(first)
    owl = classes.member(second)
    assert not otter.teaches and otter.name != owl.name
    assert classes.names(otter.room) == [otter.name, owl.name]

    classes.vote(otter, 1, 5)
    for hints, word in enumerate(("mat", "hat", "mill")):
        classes.vote(otter, 0, word, hints)
    classes.vote(owl, 0, None)
    (vote, skipped, later) = classes.votes(teacher.room)
    assert (vote.name, vote.given, vote.first, vote.hints, vote.changes) == (
        otter.name,
        "mill",
        "mat",
        2,
        2,
    )
    assert skipped.given is None and [vote, skipped] == classes.votes(teacher.room, 0)
    assert [vote, later] == classes.votes(teacher.room, pupil=otter.pupil)

    steered, news = classes.news(teacher.room)
    classes.steer(secret, step=3, together=False, frozen=True, marks=(0, ["locked", "nonsense"]))
    classes.steer(secret, marks=(1, ["shown"]))  # what stands at other steps stays
    room = classes.member(first).room
    assert (room.step, room.together, room.frozen) == (3, False, True)
    assert room.has("locked", 0) and not room.has("locked", 1) and not room.has("revealed", 0)
    assert classes.news(room) == (steered + 2, news + 2)

    classes.leave(otter)
    assert classes.member(first) is None and classes.names(room) == [owl.name]
    with pytest.raises(ClassError):
        classes.vote(otter, 1, "ghost")  # it has left
    classes.end(secret)
    assert classes.member(second) is None and classes.member(secret) is None
    assert classes.news(room) == (-1, -1) and classes.votes(room) == []
    for late, said in (
        (classes.vote, (owl, 0, "x")),
        (classes.end, (secret,)),
        (classes.guide, (room.id,)),
    ):
        with pytest.raises(ClassError, match="has ended"):
            late(*said)


@pytest.mark.parametrize("mark", ["locked", "revealed"])
def test_a_vote_after_the_lock_or_the_truth_is_refused(classes, mark):
    secret, _, one = begin(classes, 1)
    classes.vote(one, 0, 1)
    classes.steer(secret, marks=(0, [mark]))
    before = classes.news(one.room)
    with pytest.raises(ClassError, match="too late"):
        classes.vote(one, 0, 2)
    assert [vote.given for vote in classes.votes(one.room)] == [1] and classes.news(
        one.room
    ) == before
    classes.vote(one, 1, 2)  # of another step it is not
    classes.steer(secret, frozen=True)
    with pytest.raises(ClassError, match="stands still"):
        classes.vote(one, 1, 3)


def test_at_ones_own_pace_the_first_answer_counts_for_its_truth_was_told(classes):
    secret, _, one = begin(classes, 1)
    classes.steer(secret, together=False)
    classes.vote(one, 0, 1)
    with pytest.raises(ClassError, match="first answer counts"):
        classes.vote(one, 0, 2)


def test_thirty_who_vote_at_once_while_the_teacher_locks(classes):
    """Each vote counts once or is refused; what was acknowledged is there, and nothing else."""
    secret, _, *everybody = begin(classes, 30)
    sent = {}
    refused = []

    def vote(number):
        for value in (number, number + 100):  # a quick hand clicks twice
            try:
                classes.vote(everybody[number], 0, value)
                sent[everybody[number].name] = value
            except ClassError as error:
                refused.append(str(error))

    with ThreadPoolExecutor(30) as pool:
        pool.map(vote, range(21))
        classes.steer(secret, marks=(0, ["locked"]))
        pool.map(vote, range(21, 30))
    assert {vote.name: vote.given for vote in classes.votes(everybody[0].room)} == sent
    assert all("too late" in sentence for sentence in refused)
    accepted = 60 - len(refused)
    assert accepted == sum(1 + vote.changes for vote in classes.votes(everybody[0].room))
    assert classes.news(everybody[0].room)[1] == 30 + 1 + accepted


def test_what_was_acknowledged_is_there_for_another_server(classes, url):
    secret, _, one = begin(classes, 1)
    classes.vote(one, 0, [3, 1])
    other = Classes(open_database(url))
    assert [vote.given for vote in other.votes(one.room)] == [[3, 1]]
    other.steer(secret, step=2)
    assert classes.member(secret).room.step == 2


@pytest.mark.parametrize("days", [2, 400, -400])
def test_a_clock_that_is_set_anew_ends_no_class(classes, monkeypatch, days):
    secret, code, one = begin(classes, 1)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + days * module.DAY)
    assert classes.member(secret) is not None
    pupil = classes.join(code, "here")
    classes.vote(one, 0, 1)
    other, _ = begin(classes)  # which would remove what has ended
    monkeypatch.setattr(time, "time", clock)
    assert None not in [classes.member(somebody) for somebody in (secret, pupil, other)]


def test_a_full_disk_is_called_one(tmp_path):
    engine = open_database(f"sqlite:///{tmp_path / 'classes.sqlite'}")
    full = Classes(engine)
    secret, _, one = begin(full, 1)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=1")  # no more than it has
    with pytest.raises(ClassError, match=r"Its disk is full\. What it holds is not lost") as told:
        full.begin("x" * 100_000, {}, ())
    assert "Error" not in str(told.value)
    assert full.member(secret) is not None and full.names(one.room) == [one.name]
    engine.dispose()


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"no database " * 100, "is damaged, or is no database"), (None, "cannot be opened")],
)
def test_what_is_wrong_with_a_file_is_said_without_a_programs_words(tmp_path, content, said):
    file = tmp_path / "classes.sqlite"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    with pytest.raises(ClassError, match=said) as told:
        open_database(f"sqlite:///{file}")
    assert "Error" not in str(told.value)


@pytest.mark.parametrize("teaches", [True, False])
def test_a_class_ends_after_a_day_and_is_deleted(classes, teaches):
    secret, code = begin(classes)
    pupil = classes.join(code, "here")
    one = classes.member(pupil)
    classes.vote(one, 0, 1)
    with classes._engine.begin() as connection:
        connection.execute(update(CLASSES).values(ends=time.time() - 1))
    assert classes.member(secret if teaches else pupil) is None
    with pytest.raises(ClassError, match="ended"):
        classes.join(code, "here")
    assert classes.news(one.room) == (-1, -1) and classes.votes(one.room) == []


def test_hostile_codes_get_a_sentence_and_then_a_pause(classes, monkeypatch):
    _, code = begin(classes)
    monkeypatch.setattr(module, "WRONG_CODES", 40)

    @settings(max_examples=30, deadline=None)
    @given(st.text(max_size=200))
    def try_code(text):
        with pytest.raises(ClassError):
            classes.join(text, "a bad place")

    try_code()
    with pytest.raises(ClassError, match=r"'!' is no code"):
        classes.join("!", "another place")
    for _ in range(module.WRONG_CODES):
        with pytest.raises(ClassError):
            classes.join("222222", "a bad place")
    with pytest.raises(ClassError, match="Wait a minute"):
        classes.join(code, "a bad place")
    classes.join(code, "here")  # which stops nobody else


def test_limits_are_sentences(classes, monkeypatch):
    _, code, one = begin(classes, 1)
    for answer in (float("nan"), "x" * 3000):
        with pytest.raises(ClassError, match="answer"):
            classes.vote(one, 0, answer)
    monkeypatch.setattr(module, "MOST_PUPILS", 1)
    with pytest.raises(ClassError, match="full"):
        classes.join(code, "here")
    monkeypatch.setattr(module, "MOST_CLASSES", 1)
    with pytest.raises(ClassError, match="has to end first"):
        begin(classes)


def test_no_secret_is_kept_as_it_is(classes):
    secret, code = begin(classes)
    pupil = classes.join(code, "here")
    with classes._engine.begin() as connection:
        tables = ("classes", "pupils", "answers")
        kept = repr([connection.exec_driver_sql(f"select * from {name}").all() for name in tables])
    assert secret not in kept and pupil not in kept


def test_a_database_of_a_newer_gptviz_is_refused(url):
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(update(VERSION).values(version=99))
    with pytest.raises(ClassError, match="newer gptviz"):
        open_database(url)


def test_an_older_database_is_brought_forward(url, monkeypatch):
    from gptviz.teach.classroom import tables

    open_database(url)
    monkeypatch.setattr(
        tables, "MIGRATIONS", (*tables.MIGRATIONS, ("alter table classes add column motto text",))
    )
    for _ in range(2):  # the second finds it done
        engine = open_database(url)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("select motto from classes").all() == []


def test_a_database_of_the_first_version_gets_the_new_columns(tmp_path):
    engine = open_database(f"sqlite:///{tmp_path / 'old.sqlite'}")
    with engine.begin() as connection:
        for table in ("classes", "pupils"):
            connection.exec_driver_sql(f"alter table {table} drop column browser")
        connection.exec_driver_sql("update schema_version set version = 1")
    engine.dispose()
    brought = Classes(open_database(f"sqlite:///{tmp_path / 'old.sqlite'}"))
    secret = brought.begin("a guide", {}, (), browser="b")
    code = brought.member(secret).room.code
    assert brought.member(brought.join(code, browser="b")) is not None


SCHOOL = "203.0.113.7"
HOME = "198.51.100.1"
MOBILE = "2001:db8:1:2:3:4:5:6"


@pytest.mark.parametrize(
    ("browser", "address"), [("one browser", None), (None, SCHOOL), (None, MOBILE)]
)
def test_nobody_begins_so_many_classes_that_others_cannot(classes, browser, address):
    most = module.OF_BROWSER if browser else module.OF_ADDRESS
    begun = [classes.begin("a guide", {}, (), browser, address) for _ in range(most)]
    with pytest.raises(ClassError, match=f"{most} classes .* are running"):
        classes.begin("a guide", {}, (), browser, address)
    assert classes.begin("a guide", {}, (), "another browser", HOME)
    classes.end(begun[0])  # which makes room for one
    classes.begin("a guide", {}, (), browser, address)
    assert most < module.MOST_CLASSES / 10


def test_one_who_joins_again_has_the_same_place(classes):
    secret, code = begin(classes)
    room = classes.member(secret).room
    first = classes.join(code, SCHOOL, "a browser")
    one = classes.member(first)
    classes.vote(one, 0, "mill")
    again = [classes.join(code, HOME, "a browser") for _ in range(300)]
    assert classes.names(room) == [one.name] and len(classes.votes(room)) == 1
    assert (
        classes.member(again[-1]) == classes.member(again[-1])
        and classes.member(again[-1]).pupil == one.pupil
    )
    assert classes.member(first) is None  # its secret went with the lost cookie
    assert classes.member(classes.join(code, SCHOOL, "another")).pupil != one.pupil


def test_a_stranger_fills_no_class(classes, monkeypatch):
    monkeypatch.setattr(module, "MOST_PUPILS", 8)
    monkeypatch.setattr(module, "PUPILS_OF_ADDRESS", 4)
    secret, code = begin(classes)
    network = [f"2001:db8:1:2::{n}" for n in range(4)]  # as many addresses as one household has
    came = [
        classes.member(classes.join(code, address, f"browser {n}"))
        for n, address in enumerate(network)
    ]
    with pytest.raises(ClassError, match="4 have joined this class from your address"):
        classes.join(code, MOBILE, "one more")
    assert classes.join(code, SCHOOL, "a pupil")
    classes.remove(secret, came[0].name)
    assert classes.join(code, MOBILE, "one more")
    with pytest.raises(ClassError, match="is in this class any more"):
        classes.remove(secret, came[0].name)
    with pytest.raises(ClassError, match="has ended"):
        classes.remove("no teacher's", came[1].name)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        (None, ""),
        ("here", "here"),
        ("127.0.0.1", ""),
        ("::1", ""),
        (SCHOOL, SCHOOL),
        (f"::ffff:{SCHOOL}", SCHOOL),
    ],
)
def test_what_counts_as_an_address(address, source):
    assert module.source_of(address) == source


def test_a_database_that_does_not_answer_is_a_sentence(classes, monkeypatch):
    secret, _ = begin(classes)
    room = classes.member(secret).room
    with classes._engine.begin() as connection:
        connection.exec_driver_sql("drop table answers")
    with pytest.raises(ClassError, match="did not answer"):
        classes.votes(room)


@settings(max_examples=1000)
@given(st.text(max_size=200) | st.text(ALPHABET.lower() + " -01OIL", max_size=8))
def test_whatever_is_typed_is_a_code_or_none(text):
    code = parse_code(text)
    assert code is None or (len(code) == LENGTH and set(code) <= set(ALPHABET))


@given(st.text(ALPHABET, min_size=LENGTH, max_size=LENGTH))
def test_a_code_is_read_as_it_is_written(code):
    assert parse_code(written_code(code)) == parse_code(f" {code.lower()} ") == code


def test_codes_and_names_are_drawn_evenly():
    assert {char for _ in range(300) for char in new_code()} == set(ALPHABET)
    taken = set()
    for _ in range(200):
        taken.add(free_name(taken))
    assert len(taken) == 200 and max(Counter(name.split()[1] for name in taken).values()) < 15
