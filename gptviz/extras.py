"""What is installed only with an extra of the package: `pip install "gptviz[app]"`."""

from collections.abc import Iterator
from contextlib import contextmanager

# what the extra `app` of pyproject.toml brings, by the names that are imported
APP = frozenset({"streamlit", "starlette", "anyio", "pebble", "sqlalchemy", "segno"})


@contextmanager
def needs_app(what: str) -> Iterator[None]:
    """Turn a failed import of what the extra `app` brings into a ValueError that says what to install.

    `what` is the subject of its sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in APP:
            raise
        raise ValueError(
            f'{what} needs {missing}, which is not installed: pip install "gptviz[app]"'
        ) from error
