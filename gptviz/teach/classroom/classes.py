"""What teacher and pupils do in a class: begin, join, steer, vote, look, end."""

import hashlib
import ipaddress
import json
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cachetools import TTLCache
from sqlalchemy import Connection, Engine, Row, Table, delete, func, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from gptviz.teach.classroom import ClassError, Member, Room, Vote, parse_code, written_code
from gptviz.teach.classroom.room import MARKS, free_name, new_code
from gptviz.teach.classroom.tables import ANSWERS, CLASSES, PUPILS, why

DAY = 24 * 3600.0  # seconds that a class lasts
MOST_CLASSES = 500  # at the same time
MOST_PUPILS = 200  # in one
OF_BROWSER = 5  # running classes that one browser has begun
# running classes that were begun from one address: a school has one for all its teachers
OF_ADDRESS = 30
PUPILS_OF_ADDRESS = 100  # in one class: a stranger who has its code fills half of it at most
LONGEST_ANSWER = 2000  # characters, as JSON
WRONG_CODES = 60  # a minute, of one visitor's address: a school may have one for all


class Clock:
    """Seconds since 1970 as this process began to count them: setting the system's clock changes nothing.

    A clock that jumps by a day would end every class at once.
    """

    def __init__(self) -> None:
        self._began = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._began + time.monotonic()


_now = Clock()


class Classes:
    """The classes of a database. Every method is one transaction; where it fails nothing has changed.

    Raises ClassError with a sentence, also where the database does not answer.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._wrong: TTLCache[str, int] = TTLCache(10_000, ttl=60.0)
        # who came from which address is known to this process only, and for a day: it is written nowhere
        self._begun: TTLCache[str, set[int]] = TTLCache(10_000, ttl=DAY)
        self._joined: TTLCache[str, set[int]] = TTLCache(100_000, ttl=DAY)
        self._lock = threading.Lock()
        with self._change() as connection:
            _sweep(connection)

    # ---- the teacher ----

    def answers(self) -> None:
        """Check that the database answers. Raises ClassError if it does not."""
        with self._change() as connection:
            connection.execute(select(1))

    def begin(
        self,
        guide: str,
        model: dict[str, str],
        pages: Sequence[str],
        browser: str | None = None,
        address: str | None = None,
    ) -> str:
        """Begin a class with the text of its guide, its model's parameters of the address, and the pages that
        pupils see (none for all). Returns the teacher's secret, which alone steers it.

        A `browser`, by its name, may have OF_BROWSER classes at a time, an `address` OF_ADDRESS.
        """
        secret = secrets.token_urlsafe(24)
        source = source_of(address)
        with self._change() as connection:
            _sweep(connection)
            same_browser = CLASSES.c.browser == _hash(browser or "")
            if browser and _count(connection, CLASSES, same_browser) >= OF_BROWSER:
                raise ClassError(
                    f"{OF_BROWSER} classes of this browser are running. End one of them first: each has a "
                    "button for that, and ends by itself after a day."
                )
            same_address = CLASSES.c.id.in_(self._from(self._begun, source))
            if source and _count(connection, CLASSES, same_address) >= OF_ADDRESS:
                raise ClassError(
                    f"{OF_ADDRESS} classes from your address are running, and no more may. End one first, or "
                    "wait: each ends after a day."
                )
            if _count(connection, CLASSES) >= MOST_CLASSES:
                raise ClassError(f"There are {MOST_CLASSES} classes already; one has to end first.")
            values = {"guide": guide, "model": model, "pages": list(pages)}
            texts = {name: json.dumps(value) for name, value in values.items()}
            texts |= {"browser": _hash(browser)} if browser else {}
            ends = _now() + DAY
            insertion = insert(CLASSES).values(
                code=new_code(), teacher=_hash(secret), ends=ends, **texts
            )
            number = connection.execute(insertion.returning(CLASSES.c.id)).scalar_one()
        self._note(self._begun, source, number)
        return secret

    def steer(
        self,
        secret: str,
        step: int | None = None,
        together: bool | None = None,
        frozen: bool | None = None,
        marks: tuple[int, Sequence[str]] | None = None,
    ) -> None:
        """Change what the teacher gives, and keep what is None; `marks` are a step and all that it has."""
        with self._change() as connection:
            row = _touched(
                connection, CLASSES.c.teacher == _hash(secret), steered=CLASSES.c.steered + 1
            )
            changed: dict[str, Any] = {"step": step, "together": together, "frozen": frozen}
            if marks is not None:
                valid_marks = sorted(set(marks[1]) & set(MARKS))
                changed["marks"] = json.dumps(json.loads(row.marks) | {str(marks[0]): valid_marks})
            changed = {name: value for name, value in changed.items() if value is not None}
            if changed:
                connection.execute(update(CLASSES).where(CLASSES.c.id == row.id).values(**changed))

    def end(self, secret: str) -> None:
        """Delete the class of this teacher, and all that was in it."""
        with self._change() as connection:
            row = _touched(connection, CLASSES.c.teacher == _hash(secret))
            _delete(connection, [row.id])

    def remove(self, secret: str, name: str) -> None:
        """Take a pupil of this teacher's class out of it, by name, with all answers."""
        with self._change() as connection:
            row = _touched(connection, CLASSES.c.teacher == _hash(secret))
            this_pupil = (PUPILS.c.class_id == row.id) & (PUPILS.c.name == name)
            pupil = connection.scalar(select(PUPILS.c.id).where(this_pupil))
            if pupil is None:
                raise ClassError(f"Nobody called {name[:40]!r} is in this class any more.")
            _remove(connection, pupil)

    # ---- pupils ----

    def join(self, code: str, address: str | None = None, browser: str | None = None) -> str:
        """Join the class with this code as a pupil; returns the pupil's secret.

        A `browser`, by its name, that has a place in this class gets it again, with a new secret. At most
        half of a class may join from one `address`.
        """
        plain_code = parse_code(code)
        source = source_of(address)
        with self._lock:
            if self._wrong.get(source, 0) >= WRONG_CODES:
                raise ClassError(
                    "Too many wrong codes came from here. Wait a minute, and try again."
                )
        secret = secrets.token_urlsafe(24)
        with self._change() as connection:
            _sweep(connection)
            try:
                row = _touched(connection, CLASSES.c.code == plain_code)
            except ClassError:
                with self._lock:
                    self._wrong[source] = self._wrong.get(source, 0) + 1
                reason = "is no code"
                if plain_code:
                    reason = "has no class here, or it has ended"
                raise ClassError(
                    f"{code.strip()[:20]!r} {reason}. A code has six letters and digits, like "
                    f"{written_code('KF7M2Q')}; it stands on the teacher's screen."
                ) from None
            columns = {"secret": _hash(secret), "joined": time.time()}
            if browser:
                columns["browser"] = _hash(f"{row.id} {browser}")
                same_browser = (PUPILS.c.class_id == row.id) & (
                    PUPILS.c.browser == columns["browser"]
                )
                if connection.execute(
                    update(PUPILS).where(same_browser).values(secret=_hash(secret))
                ).rowcount:
                    return secret
            names = connection.scalars(
                select(PUPILS.c.name).where(PUPILS.c.class_id == row.id)
            ).all()
            if len(names) >= MOST_PUPILS:
                raise ClassError(
                    f"This class is full: {MOST_PUPILS} have joined. Its teacher can take somebody out."
                )
            same_address = (PUPILS.c.class_id == row.id) & PUPILS.c.id.in_(
                self._from(self._joined, source)
            )
            if source and _count(connection, PUPILS, same_address) >= PUPILS_OF_ADDRESS:
                raise ClassError(
                    f"{PUPILS_OF_ADDRESS} have joined this class from your address, and no more may. Its "
                    "teacher can take somebody out."
                )
            columns |= {"class_id": row.id, "name": free_name(set(names))}
            number = connection.execute(
                insert(PUPILS).values(**columns).returning(PUPILS.c.id)
            ).scalar_one()
        self._note(self._joined, source, number)
        return secret

    def _from(self, by_source: "TTLCache[str, set[int]]", source: str) -> list[int]:
        """The numbers of the classes that were begun, or the pupils that joined, from an address."""
        with self._lock:
            return sorted(by_source.get(source, ()))

    def _note(self, by_source: "TTLCache[str, set[int]]", source: str, number: int) -> None:
        if source:
            with self._lock:
                by_source[source] = {*by_source.get(source, ()), number}

    def vote(self, member: Member, step: int, given: Any, hints: int = 0) -> None:
        """Note a pupil's answer; a later one replaces it until the step is locked or its truth is shown."""
        try:
            text = json.dumps(given, allow_nan=False)
        except ValueError:
            raise ClassError(f"{given!r} is no answer.") from None
        if len(text) > LONGEST_ANSWER:
            raise ClassError(
                f"An answer may have {LONGEST_ANSWER} characters; this one has {len(text)}."
            )
        with self._change() as connection:
            row = _touched(connection, CLASSES.c.id == member.room.id)
            marks = json.loads(row.marks).get(str(step), ())
            if "locked" in marks or "revealed" in marks:
                raise ClassError(
                    "This answer came too late and does not count: the votes are locked."
                )
            if row.frozen:
                raise ClassError("The class stands still for a moment; answer when it goes on.")
            this_answer = (ANSWERS.c.pupil_id == member.pupil) & (ANSWERS.c.step == step)
            before = connection.execute(select(ANSWERS.c.changes).where(this_answer)).first()
            new = {"given": text, "hints": hints, "at": time.time()}
            if before is None:
                connection.execute(
                    insert(ANSWERS).values(
                        pupil_id=member.pupil, step=step, first=text, changes=0, **new
                    )
                )
            elif not row.together:  # the truth was told after the first
                raise ClassError("You have answered this step; the first answer counts.")
            else:
                connection.execute(
                    update(ANSWERS).where(this_answer).values(changes=before.changes + 1, **new)
                )

    def leave(self, member: Member) -> None:
        """Take a pupil and its answers out of the class."""
        with self._change() as connection:
            _touched(connection, CLASSES.c.id == member.room.id)
            _remove(connection, member.pupil)

    # ---- looking ----

    def member(self, secret: str) -> Member | None:
        """The member with this secret; None where the class has ended, or never was."""
        hashed = _hash(secret)
        running = CLASSES.c.ends > _now()
        room = [
            column
            for column in CLASSES.c
            if column.name not in ("guide", "teacher", "news", "browser")
        ]
        pupil = select(PUPILS.c.id.label("pupil"), PUPILS.c.name, *room).join(
            CLASSES, PUPILS.c.class_id == CLASSES.c.id
        )
        with self._change() as connection:
            row = connection.execute(
                select(*room).where(CLASSES.c.teacher == hashed, running)
            ).first()
            if row is not None:
                return Member(_room(row))
            row = connection.execute(pupil.where(PUPILS.c.secret == hashed, running)).first()
            if row is None:  # perhaps its class has just ended
                _sweep(connection)
            if row is None:
                return None
            return Member(_room(row), row.name, row.pupil)

    def guide(self, class_id: int) -> str:
        """The text of the guide of the class with this number."""
        with self._change() as connection:
            guide_text = connection.scalar(select(CLASSES.c.guide).where(CLASSES.c.id == class_id))
        if guide_text is None:
            raise ClassError("This class has ended.")
        return str(json.loads(guide_text))

    def news(self, room: Room) -> tuple[int, int]:
        """Two numbers that grow: with what the teacher does, with all that happens. (-1, -1) at the end."""
        with self._change() as connection:
            row = connection.execute(
                select(CLASSES.c.steered, CLASSES.c.news).where(CLASSES.c.id == room.id)
            ).first()
        if row is None:
            return (-1, -1)
        return (row.steered, row.news)

    def names(self, room: Room) -> list[str]:
        """The names of those who have joined, in the order of joining."""
        with self._change() as connection:
            in_class = PUPILS.c.class_id == room.id
            return list(
                connection.scalars(select(PUPILS.c.name).where(in_class).order_by(PUPILS.c.id))
            )

    def votes(self, room: Room, step: int | None = None, pupil: int | None = None) -> list[Vote]:
        """The answers of all, or of one pupil, to all steps or to one; in the order of steps and joining."""
        wanted = (
            select(PUPILS.c.name, ANSWERS)
            .join(ANSWERS, ANSWERS.c.pupil_id == PUPILS.c.id)
            .where(PUPILS.c.class_id == room.id)
            .order_by(ANSWERS.c.step, PUPILS.c.id)
        )
        if step is not None:
            wanted = wanted.where(ANSWERS.c.step == step)
        if pupil is not None:
            wanted = wanted.where(ANSWERS.c.pupil_id == pupil)
        with self._change() as connection:
            rows = connection.execute(wanted).all()
        return [
            Vote(r.name, r.step, json.loads(r.given), json.loads(r.first), r.hints, r.changes, r.at)
            for r in rows
        ]

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except (
            IntegrityError
        ):  # two chose the same name or code at once, or a vote came after its pupil left
            raise ClassError(
                "Somebody else was quicker by a moment. Nothing was lost: try again."
            ) from None
        except DBAPIError as error:
            raise ClassError(f"The database of classes cannot be used now. {why(error)}") from error


def source_of(address: str | None) -> str:
    """What counts as one visitor's address: of IPv6 the network of one household; "" for this machine."""
    try:
        ip = ipaddress.ip_address(address or "")
    except ValueError:  # none that a network has
        return address or ""
    if ip.is_loopback:
        return ""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return f"{ip.ipv4_mapped}"
        return f"{ipaddress.ip_network((ip, 64), strict=False)}"
    return f"{ip}"


def _count(connection: Connection, table: Table, which: Any = None) -> int:
    """The number of rows of a table, or of those that `which` selects."""
    query = select(func.count()).select_from(table)
    return connection.scalar(query if which is None else query.where(which)) or 0


def _remove(connection: Connection, pupil: int | None) -> None:
    """Delete a pupil, and all that it has answered."""
    connection.execute(delete(ANSWERS).where(ANSWERS.c.pupil_id == pupil))
    connection.execute(delete(PUPILS).where(PUPILS.c.id == pupil))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _touched(connection: Connection, which: Any, **changes: Any) -> Row[Any]:
    """The class, locked until the transaction ends: a second caller sees what the first has done."""
    values = {"news": CLASSES.c.news + 1} | changes
    columns = (CLASSES.c.id, CLASSES.c.marks, CLASSES.c.frozen, CLASSES.c.together)
    row = connection.execute(
        update(CLASSES).where(which, CLASSES.c.ends > _now()).values(**values).returning(*columns)
    ).first()
    if row is None:
        raise ClassError("This class has ended.")
    return row


def _room(row: Row[Any]) -> Room:
    marks = {int(step): frozenset(step_marks) for step, step_marks in json.loads(row.marks).items()}
    model = json.loads(row.model)
    pages = tuple(json.loads(row.pages))
    return Room(
        row.id,
        row.code,
        model,
        pages,
        row.step,
        row.together,
        row.frozen,
        marks,
        row.steered,
        row.ends,
    )


def _sweep(connection: Connection) -> None:
    """Delete the classes that have ended."""
    ended = connection.scalars(select(CLASSES.c.id).where(CLASSES.c.ends <= _now())).all()
    if ended:
        _delete(connection, ended)


def _delete(connection: Connection, ids: Sequence[int]) -> None:
    pupils = select(PUPILS.c.id).where(PUPILS.c.class_id.in_(ids))
    conditions: list[tuple[Table, Any]] = [
        (ANSWERS, ANSWERS.c.pupil_id.in_(pupils)),
        (PUPILS, PUPILS.c.class_id.in_(ids)),
        (CLASSES, CLASSES.c.id.in_(ids)),
    ]
    for table, which in conditions:
        connection.execute(delete(table).where(which))
