"""Databases for classes: a file of SQLite, and a PostgreSQL server where Debian's is installed."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from gptviz.teach.classroom.classes import Classes
from gptviz.teach.classroom.tables import open_database

BIN = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The URL of a PostgreSQL server on a free port of 127.0.0.1, which ends with the tests."""
    if BIN is None:
        if os.environ.get("GPTVIZ_REQUIRE_BROWSER"):
            pytest.fail("PostgreSQL is not installed; .ci/run installs it")
        pytest.skip("PostgreSQL is not installed (Debian's package postgresql)")
    folder = tmp_path_factory.mktemp("postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    as_owner = []
    if os.geteuid() == 0:  # it refuses to be root's
        for parent in (folder, *folder.parents):
            if (
                parent.owner() == "root"
                and parent != Path("/tmp")
                and str(parent).startswith("/tmp/")
            ):
                parent.chmod(0o755)
        shutil.chown(folder, "postgres")
        as_owner = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    quick = ["-c", "fsync=off", "-k", str(folder), "-h", "127.0.0.1", "-p", str(port)]
    run = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    subprocess.run(
        [*as_owner, BIN / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-N"], **run
    )
    control = [*as_owner, BIN / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    subprocess.run([*control, "-o", " ".join(quick), "start"], **run)
    try:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **run)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A database without a class."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'classes.sqlite'}"
        return
    server = request.getfixturevalue("postgres")
    engine = create_engine(server)
    with engine.begin() as connection:
        connection.exec_driver_sql("drop schema public cascade")
        connection.exec_driver_sql("create schema public")
    engine.dispose()
    yield server


@pytest.fixture
def classes(url):
    engine = open_database(url)
    yield Classes(engine)
    engine.dispose()
