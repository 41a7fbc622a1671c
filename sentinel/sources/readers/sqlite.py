"""Reads a SQLite database that somebody else writes, without changing anything or locking the writer out."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sentinel.common.paths import exists
from sentinel.common.state_dir import STATE_FILE
from sentinel.sources.base import Cursor, PollResult
from sentinel.sources.readers.files import open_log
from sentinel.sources.readers.growing import unreadable

ENDINGS = (".db", ".sqlite", ".sqlite3")

_MAGIC = b"SQLite format 3\0"
_JOURNAL = 18  # offset of the journal mode in the header
_WAL = 2  # its value for a write-ahead log
_PATIENCE_SECONDS = 1.0  # while a writer commits
_MAX_CELL_BYTES = 4 << 20  # bytes
_MAX_INSTRUCTIONS = 200_000_000  # of one query: about a second; only a malicious database needs more
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_SCHEMA)  # a writer is at work
_PRIMARY = 0xFF  # the bits of an error code that do not go into detail
HALF_WRITTEN = (sqlite3.SQLITE_READONLY_RECOVERY, sqlite3.SQLITE_READONLY_CANTINIT)
"""Errors that say that the index of the write-ahead log is not whole.

A reader meets them about once in a thousand times while the writer changes the index, so reading is tried
again. If they stay, the index is damaged.
"""
_MAX_TRIES = 5  # of one query, for errors that pass

T = TypeVar("T")


def read(path: Path, query: Callable[[sqlite3.Connection], T]) -> T:
    """Return the result of ``query``, called with a connection that can only read; it may be called several
    times.

    Raises OSError if the file cannot be read, and sqlite3.Error if it is no complete database.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return _once(path, query)
        except sqlite3.Error as error:
            if error.sqlite_errorcode not in HALF_WRITTEN:
                raise
    return _once(path, query)


def _once(path: Path, query: Callable[[sqlite3.Connection], T]) -> T:
    with _reading(path) as connection:
        return query(connection)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with open_log(path) as file:
        header = file.read(_JOURNAL + 1)
    how = _logged(path) if header[_JOURNAL:] == bytes([_WAL]) else "mode=ro"
    uri = f"file:{quote(str(path))}?{how}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE_SECONDS)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL_BYTES)
        connection.set_progress_handler(lambda: 1, _MAX_INSTRUCTIONS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = lambda text: text.decode(errors="replace")
        yield connection


def _logged(path: Path) -> str:
    """Return how to open a database with a write-ahead log, so that SQLite creates no file beside it.

    If the index of the log is missing, nobody has the database open, and it can be read as a file that does
    not change. (If a writer closes the database at this very moment, SQLite leaves an empty log behind.)
    """
    if exists(Path(f"{path}-shm")):
        return "mode=ro&readonly_shm=1"
    with suppress(FileNotFoundError):
        if os.stat(f"{path}-wal").st_size:
            raise OSError(f"{path.name}-shm is missing beside its write-ahead log: open it once with sqlite3")
    return "immutable=1"


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the columns of a table; none if there is no table of that name. A view is no table."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(query, (table,)).fetchone() is None:
        return frozenset()
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(name for (name,) in rows)


def poll(path: Path, cursor: Cursor, query: Callable[[sqlite3.Connection], PollResult]) -> PollResult:
    """Return the result of ``query``; of an unreadable database, a complaint, unless made before."""
    try:
        return read(path, query)
    except OSError as error:
        return unreadable(path, cursor, error)
    except sqlite3.Error as error:
        if error.sqlite_errorcode & _PRIMARY in _PASSING:
            return PollResult(cursor)
        return unreadable(path, cursor, OSError(str(error)))


def is_database(path: Path) -> bool:
    """Return whether the file begins as a SQLite database, and is not sentinel's own, which is left alone."""
    if path.name == STATE_FILE:
        return False
    try:
        with open_log(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
