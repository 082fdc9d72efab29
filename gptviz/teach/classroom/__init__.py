"""A class that answers together: its members, the step that its teacher is at, and all answers.

It lives in a database, outside every process, since a server may be several: SQLite in the folder for caches,
or what GPTVIZ_DATABASE names (`postgresql+psycopg://...`). Nothing personal is kept: pupils get their names
here, secrets are kept as hashes, and after a day, or when its teacher ends it, a class is deleted.

`classes` and `tables` need SQLAlchemy, which is imported only where somebody is in a class.
"""

from gptviz.teach.classroom.room import (
    LOBBY,
    ClassError,
    Member,
    Room,
    Vote,
    parse_code,
    written_code,
)

__all__ = ["LOBBY", "ClassError", "Member", "Room", "Vote", "parse_code", "written_code"]
