"""The page "What each head does" through AppTest: what is drawn of every head is what its analysis gives."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from gptviz.analysis.head_formulas import ROLES, SHARES
from gptviz.analysis.head_general import MEASURES, General
from gptviz.analysis.head_roles import head_table, most_telling, roles
from gptviz.analysis.head_trial import Trial
from gptviz.digits import fixed, percent
from gptviz.jobs import Queue
from gptviz.ui import heads, jobs
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.pages.conftest import not_started
from tests.pages.test_saved_charts import saved
from tests.specs import charts, given, keys, opened, paragraph, prose, table

TEXT = "The cat sat on the mat. The cat sat on the"
START = Queue.start


def points(figure):
    """(block, head) -> (x, y) of all points of the finder."""
    return {
        (b, h): (x, y)
        for trace in figure["data"]
        for (b, h, _), x, y in zip(
            trace.get("customdata", []), trace["x"], trace["y"], strict=False
        )
    }


def verdict(at):
    """What is said of the trial, with its numbers; the story has the same verdict without them."""
    said = [re.search(r"On trial as.*", element.value) for element in at.markdown]
    (there,) = (match.group() for match in said if match)
    (story,) = [element.value for element in at.markdown if "**Without it**" in element.value]
    assert "±" not in story
    words = ("**holds**", "**withdrawn**", "**not decided**")
    assert [word in story for word in words] == [word in there for word in words]
    return there


@pytest.mark.parametrize(
    "query", [{}, {"block": 4, "head": 3, "across": "here_copies", "up": "here_spread"}]
)
def test_labels_points_and_bars_are_the_measured_roles(run_page, mini, query):
    """Before anything is known in general: the page is this text's."""
    at = run_page("heads", text=TEXT, **query)
    opened(at, "numbers_heads-here")
    trace = mini.trace(TEXT)
    found = roles(trace)
    sheet, finder, _ = charts(at)
    names = query.get("across", "here_previous"), query.get("up", "here_induction")
    drawn = points(finder)
    assert len(drawn) == 48
    for role in (role for row in found for role in row):
        values = [role.shares.get(name[5:], role.spread) for name in names]
        assert drawn[role.block, role.head] == pytest.approx(values)
    chosen = most_telling(found) if not query else found[4][3]
    words = [[ROLES[role.kind].label.replace(" ", "<br>") for role in row] for row in found]
    assert np.array(sheet["data"][0]["text"]).tolist() == words
    looks = trace["attn", chosen.block][chosen.head, -1].tolist()
    assert given(at, "chips")["weights"] == pytest.approx(looks)
    table = at.dataframe[0].value
    wanted = head_table(mini, trace)
    assert np.allclose(table["to_previous"], wanted["to_previous"], atol=1e-6)
    assert table["role"].tolist() == wanted["role"].tolist()


@pytest.mark.parametrize(("null", "measure"), [("zero", "probability"), ("mean", "loss")])
def test_what_the_answer_loses_without_the_opened_head_is_a_pass_with_an_edit(
    run_page, mini, null, measure
):
    query = {"null": null, "measure": measure, "block": 4, "head": 3}
    at = run_page("heads", text=UNSAID_TEXT, **query)
    mill = mini.encode(" mill")[0]
    chances = [
        mini.trace(UNSAID_TEXT, keep=[], edits=edits).logits(-1).double().softmax(0)[mill].item()
        for edits in ([], [f"z.4.3={null}"])
    ]
    said = [percent(chance) for chance in chances]
    if measure == "loss":
        said = [f"{fixed(-math.log(chance), 2)} nats" for chance in chances]
    assert said[0] != said[1]
    assert f"the {measure} of `·mill` goes **{said[0]} → {said[1]}**" in prose(at)


@pytest.fixture
def known(monkeypatch):
    """General scores as if they had been measured: numbers that no text gives."""
    numbers = np.random.default_rng(3).random((48, len(MEASURES)))
    table = pd.DataFrame(numbers, columns=list(MEASURES))
    kinds = [("induction", "previous", "first", "mixed")[i % 4] for i in range(48)]
    table.insert(0, "block", np.repeat(range(6), 8))
    table.insert(1, "head", list(range(8)) * 6)
    table.insert(2, "role", kinds)
    table.insert(3, "share", [np.nan if kind == "mixed" else 0.5 for kind in kinds])
    job = SimpleNamespace(
        state="done", active=False, result=General(table, 16, 3072, 42, 10361, None)
    )
    monkeypatch.setattr(heads, "general_job", lambda run: job)
    return table


def test_what_is_known_in_general_stands_beside_this_text(run_page, known):
    at = run_page("heads", text="one two three", block=0, head=1, up="ov_copying")
    here, general, finder, bars = charts(at)
    assert points(finder)[0, 1] == pytest.approx((known["previous"][1], known["ov_copying"][1]))
    colours = {
        (b, h): t["marker"]["color"] for t in finder["data"] for b, h, _ in t.get("customdata", [])
    }
    assert len({colours[0, h] for h in range(4)}) == 4 and colours[0, 0] == colours[0, 4]
    assert np.allclose(bars["data"][-1]["x"], [known[name][1] for name in SHARES])
    assert general["data"][0]["text"][0] == [ROLES[kind].label for kind in known["role"][:8]]
    assert here["data"][0]["text"][0][0].endswith(">induction</i>")  # greyed: no word repeats
    cells = np.array(here["data"][0]["z"])
    assert set(cells[:, 0::4].flat) == {cells.max()}
    opened(at, "numbers_heads-general", "in_code_general")
    table = at.dataframe[0]
    assert np.allclose(table.value["ov_copying"], known["ov_copying"])
    columns = json.loads(table.proto.columns)
    assert columns["copies"]["label"] == "duplicate (copies)"  # copies_top5 is what a head writes
    assert "picture = general(lm)" in at.code[-1].value


@pytest.mark.parametrize("head", [(3, 1), (4, 6)])
def test_the_unchanged_share_of_one_token_is_said_where_it_was_the_same_token(run_page, mini, head):
    text = "The king loved his daughter, but she did not love"
    edit = "z.0.1=zero"
    now, was = (roles(lm.trace(text))[head[0]][head[1]] for lm in (mini.edited(edit), mini))
    assert now.kind == "favourite" and (now.favourite == was.favourite) == (head == (4, 6))
    said = prose(run_page("heads", text=text, edits=edit, block=head[0], head=head[1]))
    both = f"**{percent(was.shares['favourite'])} → {percent(now.share)}** of its attention"
    assert (both in said.replace("\xa0", " ")) == (head == (4, 6))


def test_what_a_text_cannot_show_is_greyed_and_a_click_offers_one_that_does(run_page):
    at = run_page("heads", text="one two three", up="here_induction")
    _, finder, bars = charts(at)
    assert not points(finder) and finder["layout"]["annotations"]
    cannot = [name.endswith("(not here)") for name in bars["layout"]["yaxis"]["ticktext"]]
    assert np.flatnonzero(cannot).tolist() == [0, 1, 5]
    at.button(key="heads_offer_0").click().run()
    _, finder, bars = charts(at)
    assert len(points(finder)) == 48 and "not here" not in "".join(
        bars["layout"]["yaxis"]["ticktext"]
    )
    assert at.query_params["text"] == UNSAID_TEXT


def test_measuring_can_be_stopped_and_go_on(run_page, monkeypatch):
    told = []
    job = SimpleNamespace(
        state="working", active=True, progress=(3, 12), seconds_left=41.0, task="general"
    )
    for name in ("start", "leave", "look"):
        setattr(job, name, lambda *_, name=name: told.append(name))
    monkeypatch.setattr(heads, "general_job", lambda run: job)
    at = run_page("heads", text=TEXT)
    assert "3 of 12, about 41 s left" in at.get("progress")[0].proto.text and "leave" not in told
    at.button(key="heads_general_stop").click().run()
    assert "leave" in told and "start" not in told
    at.button(key="heads_general_start").click().run()
    assert told.count("start") == 1 and at.button(key="heads_general_stop")


def test_all_labels_can_be_put_on_trial(run_page, known, monkeypatch):
    asked = []
    not_started(monkeypatch, lambda job: asked.append(job.task.args))
    at = run_page("heads", text=TEXT, block=0, head=3)  # no habit: no trial of its own
    at.button(key="heads_try_all").click().run()
    labels = known[known["role"] != "mixed"][["block", "head", "role"]]
    assert set(labels.itertuples(index=False, name=None)) <= set(asked)


def test_labels_that_cannot_be_tried_say_why(run_page, known, monkeypatch):
    monkeypatch.setattr(Queue, "start", START)
    jobs.queue().most_waiting = 0
    at = run_page("heads", text=TEXT, block=0, head=3)
    at.button(key="heads_try_all").click().run()
    (said,) = [warning.value for warning in at.warning if "Not every label" in warning.value]
    assert "0 works of this server's visitors wait already" in said and keys(at, "heads_try_all")


RISES = ("repeated_rise", "unrepeated_rise", "extra", "rise")
REASONS = {
    "induction": ("enough", "enough"),
    "previous": ("not enough", "not enough"),
    "first": ("not missed", "anywhere"),
    "copies": ("not missed", "enough"),
}


def a_trial(block, head, label):
    """A trial as if it had been held."""
    others = [h for h in range(8) if h != head][:5]
    rows = [(h, baseline) for baseline in ("zero", "sample") for h in (head, *others)]
    table = pd.DataFrame([*rows, (head, "even"), (head, "label")], columns=["head", "change"])
    table = table.assign(block=block, on_trial=table["head"] == head)
    table["same_label"] = table["head"].isin([head, others[0]])
    for i, name in enumerate(RISES):
        table[name] = np.linspace(0.1, 1.4, 14) / (i + 1)
        table[f"{name}_se"] = 0.01
    reasons = dict(zip(("zero", "sample"), REASONS.get(label, REASONS["induction"]), strict=True))
    return Trial(block, head, label, reasons, table, 2, 4, 10, 63)


@pytest.fixture
def tried(monkeypatch, known):
    """Trials as if they had been held: every induction head holds, every previous-token head failed."""

    def job(run, *claim):
        nothing = lambda *_: None  # noqa: E731
        made = {"state": "done", "active": False, "result": a_trial(*claim)}
        return SimpleNamespace(**made, start=nothing, task=(run, *claim), look=nothing)

    monkeypatch.setattr(heads, "trial_job", job)
    monkeypatch.setattr(
        heads, "known_trials_of", lambda run, claims: {c[:2]: a_trial(*c) for c in claims}
    )


def trial_rows(at):
    """The small table of the trial: by what was done, its cells."""
    return {name: rest for name, *rest in table(at, "The trial")}


def test_a_verdict_is_given_by_both_baselines_or_not_at_all(run_page, tried):
    at = run_page("heads", text=TEXT, block=0, head=0)
    _, general, *_, costs = charts(at)
    others, own = costs["data"]
    trial = a_trial(0, 0, "induction")
    wanted = [trial.own[name][change] for change in ("zero", "sample") for name in RISES[:2]]
    wanted += [trial.own["repeated_rise"][change] for change in ("even", "label")]
    assert np.allclose(own["x"], wanted) and len(others["x"]) == 4 * 5
    assert "**holds**" in verdict(at)
    rows = trial_rows(at)
    assert [row[2] for row in rows.values()] == [f"+{v:.3f} ± 0.010" for v in trial.own["extra"]]
    unlike = trial.others("sample")[1:]  # the first has the label
    assert rows["replaced by its mean"][3] == f"{unlike['extra'].mean():#.3g}"
    words = {word for row in general["data"][0]["text"] for word in row}
    assert words == {"induction<br>✓", "<s>previous</s>", "resting<br>○", "mixed"}
    # in the story: the mean probability of the right token, with the head and without
    zero = trial.own.loc["zero"]
    pairs = [
        f"{percent(np.exp(-loss))} → {percent(np.exp(-loss - zero[name]))}"
        for loss, name in ((2, "repeated_rise"), (4, "unrepeated_rise"))
    ]
    assert f"**{pairs[0]}** where a passage comes back, {pairs[1]} elsewhere" in prose(at)
    opened(at, "in_code_trial")
    at.number_input(key="head").set_value(1).run()
    assert "**withdrawn**" in verdict(at)
    assert (
        f"+{a_trial(0, 1, 'previous').own['rise']['zero']:.3f} ± 0.010 nats per token"
        in verdict(at)
    )
    assert "picture = trial(lm, 0, 1, 'previous')" in at.code[-1].value
    rise = a_trial(0, 1, "previous").own["rise"]["zero"]
    both = f"**{percent(np.exp(-3))} → {percent(np.exp(-3 - rise))}**"
    assert f"the right token gets {both}." in prose(at)
    hollow = [t for t in charts(at)[2]["data"] if t.get("name") == "previous"]
    assert set(hollow[0]["marker"]["symbol"]) == {"diamond-open"}  # its role has the diamond
    at.selectbox(key="claim").set_value("copies").run()
    assert at.query_params["claim"] == "copies"
    assert all(
        part in verdict(at) for part in ("**not decided**", "+0.033 ± 0.010", "+0.233 ± 0.010")
    )
    # the claim was another's; no harm, whatever the reason
    at.number_input(key="head").set_value(2).run()
    assert at.selectbox(key="claim").value is None
    assert "not shown to be needed" in verdict(at) and "withdrawn" not in verdict(at)
    at.number_input(key="head").set_value(3).run()  # no habit
    assert len(charts(at)) == 4


def test_a_newcomer_waits_for_nothing_that_ships(run_page, monkeypatch):
    """The bundled model's heads in general, and their trials: no work is queued, and Attention knows them."""
    monkeypatch.undo()  # `_at_once` again
    not_started(monkeypatch, lambda job: pytest.fail(f"{job.task} was to be worked out"))
    jobs.queue.clear()
    at = run_page("heads", text=TEXT, block=0, head=1)
    assert "**not decided**" in verdict(at)
    extra = {name: row[2] for name, row in trial_rows(at).items()}
    assert extra["replaced by zero"] == "−1.33 ± 0.31"
    assert extra["replaced by its mean"] == "+2.06 ± 0.25"
    labels = given(run_page("attention", text=TEXT, block=0, head=1), "heads")["roles"]
    assert "\u0336" not in labels[0][1]["label"]


def test_all_heads_of_one_label_are_switched_off_at_one_click(run_page, mini):
    found = [role.head for role in roles(mini.trace(UNSAID_TEXT))[5] if role.kind == "induction"]
    at = run_page("heads", block=5, head=4)
    at.button(key="change_heads_here").click().run()
    edit = f"z.5.{'+'.join(map(str, found))}=zero"
    assert len(found) == 5 and at.query_params["edits"] == edit
    mill = mini.tokenizer.encode_single_token(b" mill")
    now = mini.trace(UNSAID_TEXT, edits=[edit]).logits(-1).softmax(0)[mill]
    assert given(at, "changes")["effect"]["now"] == pytest.approx(float(now), rel=1e-3)
    at.button(key="change_heads_here").click().run()  # the same heads, so that it is undone
    assert not at.query_params["edits"]
    for head in (1, 6):  # no habit; and the only one of its kind
        assert not keys(run_page("heads", block=5, head=head), "change_heads_here")


def test_heads_of_one_label_in_general_have_their_own_button_where_they_are_others(run_page, tried):
    """In general heads 0 and 4 of a block are induction heads, 1 and 5 previous-token ones, withdrawn."""
    at = run_page("heads", text="one two three", block=5, head=4)
    at.button(key="change_heads_general").click().run()
    assert at.query_params["edits"] == "z.5.0+4=zero"
    other = run_page("heads", text="one two three", block=5, head=5)
    assert not keys(other, "change_heads_general")


def test_attention_strikes_out_what_was_withdrawn(run_page, tried, mini):
    at = run_page("attention", text=TEXT, block=4, head=3)
    labels = given(at, "heads")["roles"]
    for role in (role for row in roles(mini.trace(TEXT)) for role in row):
        assert ("\u0336" in labels[role.block][role.head]["label"]) == (role.kind == "previous")
    said = paragraph(at, "Its label was withdrawn")
    costs = a_trial(4, 3, "previous").own["rise"]
    for baseline, words in (
        ("zero", "Setting its output to 0 costs"),
        ("sample", "setting it to its mean costs"),
    ):
        assert f"{words} +{costs[baseline]:.3f} ± 0.010" in said  # how much the verdict weighs
    assert f"+{costs['zero']:.3f} ± 0.010 nats per token" in labels[4][3]["says"]


def test_what_is_general_of_heads_is_saved_as_the_unchanged_model_s(run_page, known):
    at = run_page("heads", text=TEXT, edits="z.4.3=zero", block=0, head=1)
    changed = {file["stem"].split("-")[2]: file["stem"].endswith("-changed") for file in saved(at)}
    assert changed == {"finder": False, "roles": True, "here": True, "general": False}
    at = run_page("heads", text=TEXT, edits="z.4.3=zero", across="here_previous")
    assert next(file for file in saved(at) if "finder" in file["stem"])["stem"].endswith("-changed")
