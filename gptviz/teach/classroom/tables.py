"""The tables of a class, and the database that holds them.

SQLAlchemy, because the same statements then run on SQLite, which comes with Python, and on PostgreSQL.
"""

import os
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gptviz.files import disk_cache
from gptviz.teach.classroom.room import LOBBY, ClassError

SETTING = "GPTVIZ_DATABASE"
FILE = "classes.sqlite"
WAIT = 10.0  # seconds for another's write to end
NAMED = f"{SETTING} names it, like postgresql+psycopg://user:password@host/name; without it a file is used."

_tables = sa.MetaData()
VERSION = sa.Table("schema_version", _tables, sa.Column("version", sa.Integer, nullable=False))
# `steered` counts what the teacher has done, `news` all that happened: pages look at these numbers.
# Texts that people gave are kept as JSON, which holds every character on every database.
CLASSES = sa.Table(
    "classes",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("code", sa.String(12), nullable=False, unique=True),
    sa.Column("teacher", sa.String(64), nullable=False, unique=True),  # the secret's SHA-256
    sa.Column("guide", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("pages", sa.Text, nullable=False),
    sa.Column("ends", sa.Float, nullable=False),
    sa.Column("step", sa.Integer, nullable=False, default=LOBBY),
    sa.Column("together", sa.Boolean, nullable=False, default=True),
    sa.Column("frozen", sa.Boolean, nullable=False, default=False),
    # {"3": ["locked", "shown", "revealed"]}
    sa.Column("marks", sa.Text, nullable=False, default="{}"),
    sa.Column("steered", sa.Integer, nullable=False, default=0),
    sa.Column("news", sa.Integer, nullable=False, default=0),
    sa.Column("browser", sa.String(64)),  # that began it: the SHA-256 of its random name
    sqlite_autoincrement=True,  # the number of a class that has ended is never another's
)
PUPILS = sa.Table(
    "pupils",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("class_id", sa.ForeignKey("classes.id"), nullable=False, index=True),
    sa.Column("secret", sa.String(64), nullable=False, unique=True),  # its SHA-256
    sa.Column("name", sa.String(40), nullable=False),
    sa.Column("joined", sa.Float, nullable=False),
    sa.Column("browser", sa.String(64)),  # the SHA-256 of the class's number and the browser's name
    sa.UniqueConstraint("class_id", "name"),
    sqlite_autoincrement=True,
)
# one row of a pupil and step: a second vote takes the place of the first and is not one more
ANSWERS = sa.Table(
    "answers",
    _tables,
    sa.Column("pupil_id", sa.ForeignKey("pupils.id"), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("first", sa.Text, nullable=False),
    sa.Column("given", sa.Text, nullable=False),
    sa.Column("hints", sa.Integer, nullable=False),
    sa.Column("changes", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
# what makes a database of version n + 1 one of version n + 2: statements; a new one has them all
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "alter table classes add column browser varchar(64)",
        "alter table pupils add column browser varchar(64)",
    ),
)


def open_database(url: str | None = None) -> sa.Engine:
    """The database of classes, with its tables: of this URL, of GPTVIZ_DATABASE, or a file of SQLite.

    Raises ClassError where it cannot be opened, or a newer gptviz has made it.
    """
    try:
        url = url or os.environ.get(SETTING) or _file()
        sqlite = url.startswith("sqlite")
        engine = sa.create_engine(
            url, pool_pre_ping=not sqlite, connect_args={"timeout": WAIT} if sqlite else {}
        )
        if sqlite:
            sa.event.listen(engine, "connect", _begin_well)
        for wait in (0.1, 0.3, 1.0):  # two servers may make the tables at the same time
            try:
                _migrate(engine)
                return engine
            except DBAPIError:
                time.sleep(wait)
        _migrate(engine)
    except DBAPIError as error:  # without the URL, which may hold a password
        raise ClassError(
            f"The database of classes cannot be opened. {why(error)} {NAMED}"
        ) from error
    except OSError as error:
        raise ClassError(
            f"The folder for the database of classes cannot be made ({error.strerror}). {NAMED}"
        ) from error
    except (SQLAlchemyError, ImportError) as error:
        raise ClassError(
            f"The database of classes cannot be opened ({type(error).__name__}). {NAMED}"
        ) from error
    return engine


# SQLite's codes without their second byte, and PostgreSQL's
FULL = (13, "53100")
NOT_WRITTEN = (10, "58030")
READ_ONLY = (8, "25006")
DAMAGED = (11, 26, "XX001", "XX002")


def why(error: DBAPIError) -> str:
    """What is wrong with the database, and what to do about it, in sentences."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF or getattr(
        error.orig, "sqlstate", None
    )
    if code in FULL:
        return "Its disk is full. What it holds is not lost; whoever runs this server must make room there."
    if code in NOT_WRITTEN:
        return "Its disk cannot be read or written. Whoever runs this server must look at it: it may be full."
    if code in READ_ONLY:
        return "This server may not write into it. Whoever runs it must allow that."
    if code in DAMAGED:
        return "It is damaged, or is no database. Whoever runs this server must put it aside."
    return f"It did not answer within {WAIT:.0f} s. What it holds is not lost: try again."


def _file() -> str:
    folder: Path = disk_cache.folder()
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder / FILE}"


def _begin_well(connection: Any, _record: Any) -> None:
    """Set SQLite so that readers work beside a writer, and a commit survives a power cut."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _migrate(engine: sa.Engine) -> None:
    newest = 1 + len(MIGRATIONS)
    with engine.begin() as connection:
        _tables.create_all(connection)
        version = connection.execute(sa.select(VERSION.c.version)).scalar()
        if version is None:
            connection.execute(sa.insert(VERSION).values(version=newest))
            return
        if version > newest:
            raise ClassError(
                f"The database of classes has version {version}, made by a newer gptviz; "
                f"this one knows {newest}."
            )
        for statement in (sql for step in MIGRATIONS[version - 1 :] for sql in step):
            connection.execute(sa.text(statement))
        connection.execute(sa.update(VERSION).values(version=newest))
