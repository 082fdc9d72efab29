"""A run's folder as it is elsewhere, while it is being written: what has changed, and how that is put in."""

from contextlib import suppress
from functools import partial
from pathlib import Path

from gptviz.training.live.run import STATUS, WISH
from gptviz.whole import write_whole

Seen = dict[str, tuple[int, int]]  # a file's time and size when it was last sent
Files = dict[str, bytes | None]  # their path in the folder; None for one that has gone


def news(folder: Path, seen: Seen) -> Files:
    """The files that are not as they were `seen`."""
    changed: Files = {name: None for name in seen if not (folder / name).exists()}
    for name in changed:
        del seen[name]
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        with suppress(FileNotFoundError):  # it has just gone
            if not path.is_file() or path.suffix == ".partial" or name == WISH:
                continue
            now = path.stat().st_mtime_ns, path.stat().st_size
            if seen.get(name) != now:
                seen[name], changed[name] = now, path.read_bytes()
    return changed


def receive(folder: Path, files: Files) -> None:
    """Put files into a folder; the status last, for whoever reads it looks for the others."""
    for name in sorted(files, key=lambda name: name == STATUS):
        content = files[name]
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_whole(folder / name, partial(Path.write_bytes, data=content))
