"""The state directory and the SQLite database in it: opening, versions, transactions."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from sentinel.common.errors import StateDamaged, StateError, StateUnavailable
from sentinel.common.state_dir import STATE_FILE

SCHEMA = 9
LOCK = "watch.lock"
"""The file that a watching process locks; `lock.py` says how."""

_BUSY_SECONDS = 30.0
_WAL_BYTES = 64 << 20  # the write-ahead log is cut back to this after a checkpoint

_SHRINKABLE = "PRAGMA auto_vacuum = INCREMENTAL"
_PAGES_AT_ONCE = 4096  # 16 MiB; more would hold up those who write

_PASSES = {
    sqlite3.SQLITE_BUSY: f"another program held it locked for {_BUSY_SECONDS:.0f} s; end that program",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written; look at its permissions and its mount",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; look at its permissions and its mount",
    sqlite3.SQLITE_IOERR: "the disk fails or is full",
    sqlite3.SQLITE_NOMEM: "memory is short",
}
"""Errors that may pass by themselves, with what to do, by SQLite's primary result code."""

_MAX_VERSIONS = 1000
"""No sentinel has written so high a version; bytes of the file were overwritten."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_BROKEN = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
}  # the last one means that a table is missing
_MEND = "a start of `sentinel watch` keeps it aside, begins a new one and reads all logs again"
_OF_A_ROW = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError)

_UPGRADES = {
    1: """
        DROP INDEX outbox_pending;
        ALTER TABLE outbox DROP COLUMN next_attempt;
        ALTER TABLE outbox ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE outbox ADD COLUMN waited_seconds REAL NOT NULL DEFAULT 0;
        UPDATE outbox SET urgency = json_extract(body, '$.incident.severity')
            WHERE json_extract(body, '$.event') != 'resolved';
    """,
    2: """
        ALTER TABLE outbox ADD COLUMN batch TEXT NOT NULL DEFAULT '';
        ALTER TABLE outbox ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE outbox ADD COLUMN run TEXT NOT NULL DEFAULT '';
    """,
    3: """
        UPDATE decisions SET reason = CASE reason
            WHEN 'first notification' THEN 'first-notification'
            WHEN 'got worse' THEN 'escalated'
            WHEN 'still there, repeat interval over' THEN 'repeat-due'
            WHEN 'came back, repeat interval over' THEN 'reopened'
            WHEN 'keeps coming back' THEN 'flapping'
            WHEN 'log went silent' THEN 'lost'
            WHEN 'explained by another incident' THEN 'inhibited'
            WHEN 'told already, of another log of the same training' THEN 'told-of-another-log'
            WHEN 'below the sink''s severity' THEN 'below-sink-severity'
            WHEN 'detector is a preview' THEN 'preview-not-wanted'
            WHEN 'already sent' THEN 'already-sent'
            WHEN 'its beginning was not sent either' THEN 'not-sent-before'
            WHEN 'the last notification is still waiting' THEN 'undelivered'
            WHEN 'repeat interval not over' THEN 'repeat-not-due'
            WHEN 'withdrawn before it was tried, explained by another incident' THEN 'withdrawn'
            WHEN 'not found again since the last notification' THEN 'nothing-new'
            ELSE reason END;
    """,
    4: "ALTER TABLE silences ADD COLUMN incident TEXT NOT NULL DEFAULT '';",
    5: "ALTER TABLE sent ADD COLUMN number INTEGER NOT NULL DEFAULT 0;",
    6: """
        ALTER TABLE incidents ADD COLUMN finding TEXT AS (CASE WHEN json_valid(incident) THEN
            json_array(json_extract(incident, '$.detector'), coalesce(
                nullif(json_extract(incident, '$.signal'), ''), json_extract(incident, '$.tag'))) END);
        ALTER TABLE incidents ADD COLUMN silence TEXT AS (CASE WHEN json_valid(incident) THEN CASE WHEN
            json_extract(incident, '$.evidence.runs_silent') THEN
            json_extract(incident, '$.evidence.place', '$.evidence.since') END END);
    """,
    7: """
        CREATE TABLE IF NOT EXISTS pages (
            incident TEXT NOT NULL, sink TEXT NOT NULL, day INTEGER NOT NULL, at REAL NOT NULL,
            PRIMARY KEY (incident, sink, day)) STRICT, WITHOUT ROWID;
        INSERT OR IGNORE INTO pages
            SELECT incident, sink, CAST(at / 86400 AS INTEGER) AS day, min(at) FROM sent
            WHERE severity > 1 AND event IN ('firing', 'escalated', 'reopened', 'flapping')
            GROUP BY incident, sink, day;
    """,
    8: """
        DROP INDEX IF EXISTS incidents_by_finding;
        CREATE TABLE IF NOT EXISTS joints (
            joint TEXT NOT NULL, format TEXT NOT NULL, run TEXT NOT NULL,
            PRIMARY KEY (joint, format, run)) STRICT, WITHOUT ROWID;
        INSERT OR IGNORE INTO joints SELECT '', substr(run, 1, instr(run, ':') - 1), run FROM incidents;
    """,
}
"""Turns a database of each older schema into the next one. `schema.sql` adds new tables and indexes."""


class Database:
    """A connection for the thread that opened it.

    An error that concerns the whole database raises StateError, or StateUnavailable if it may pass by
    itself. A single row that SQLite refuses raises sqlite3.Error.
    """

    def __init__(self, directory: Path, *, create: bool, read_only: bool = False) -> None:
        """Open the database; with ``create``, make the directory and the database if they are missing.

        With ``read_only``, SQLite refuses every change, and a database of an older version is not upgraded.
        Raises StateError if they cannot be used or if a newer version wrote them.
        """
        self._path = directory / STATE_FILE
        if create:
            make_file(directory, self._path)
        elif not self._path.exists():
            raise StateError(f"{directory}: no state here; nothing was watched with this state_dir yet")
        with self._errors():
            place = f"{self._path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
            self._connection = sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
                self._prepare(read_only)
                self._files = {file: _identity(file) for file in (self._path, directory / LOCK)}
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, read_only: bool) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if not 0 <= version < _MAX_VERSIONS:
            raise StateDamaged(f"{self._path}: its schema number {version} is none; {_MEND}")
        if version > SCHEMA:
            self.check()
            raise StateError(
                f"{self._path}: written by a newer sentinel (schema {version}, this one knows {SCHEMA}); "
                "upgrade it, or name another state_dir"
            )
        if read_only:
            if version < SCHEMA:
                raise StateError(f"{self._path}: written by an older sentinel; start `sentinel watch` once")
            return
        if not version:
            self._connection.execute(_SHRINKABLE)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if version < SCHEMA:
            upgrades = "".join(_UPGRADES[older] for older in range(version or SCHEMA, SCHEMA))
            tables = files("sentinel.storage").joinpath("schema.sql").read_text("utf-8")
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {upgrades} {tables} PRAGMA user_version = {SCHEMA}; COMMIT;"
            )

    def check(self) -> None:
        """Raise StateDamaged unless the structure of the whole database is sound."""
        ((problem,),) = self.rows("PRAGMA quick_check(1)")
        if problem != "ok":
            raise StateDamaged(f"{self._path}: {problem}; {_MEND}")

    def shrink(self) -> None:
        """Give at most 16 MiB of disk space back if more than a quarter of the file is free."""
        ((free, pages),) = self.rows("SELECT * FROM pragma_freelist_count, pragma_page_count")
        if free > pages / 4:
            with self._errors():  # it frees a page in each step, and only a script takes all of them
                self._connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")

    def make_shrinkable(self) -> None:
        """Rewrite a database of an earlier version, which cannot shrink. Leave any other as it is."""
        ((kind,),) = self.rows("PRAGMA auto_vacuum")
        if not kind:
            with suppress(StateError):  # no disk space for a copy, for example; the next start tries
                self.rows(_SHRINKABLE)
                self.rows("VACUUM")

    def check_place(self) -> None:
        """Raise StateUnavailable unless the database and the lock lie where they were when it was opened."""
        for file, known in self._files.items():
            if known is not None and _identity(file) != known:
                raise StateUnavailable(
                    f"{file}: moved or removed under the running program; put it back, or restart the program"
                )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        """Return all rows of a query."""
        with self._errors():
            return self._connection.execute(query, arguments).fetchall()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Commit everything that is executed inside, or nothing.

        ``durable`` waits until the commit survives a power failure.
        """
        with self._errors():
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _OF_A_ROW:
            raise
        except UnicodeDecodeError as error:  # in an error message of SQLite, which quotes what is damaged
            raise StateDamaged(f"{self._path}: its tables cannot be read; {_MEND}") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary one of an extended code
            if code in _PASSES:
                raise StateUnavailable(f"{self._path}: {error}: {_PASSES[code]}") from error
            if code in _BROKEN:
                raise StateDamaged(f"{self._path}: {error}; {_MEND}") from error
            raise StateError(f"{self._path}: {error}") from error


def set_aside(directory: Path, now: float) -> Path:
    """Rename a damaged database, which no connection may have open. Gives its new path."""
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    for part in ("-shm", "-wal", ""):
        kept = directory / f"{STATE_FILE}.corrupt-{time}{part}"
        with suppress(FileNotFoundError):
            (directory / f"{STATE_FILE}{part}").rename(kept)
    return kept


def utf8(path: str) -> str:
    """Return the path as UTF-8, as SQLite needs it. Different paths stay different."""
    return path.encode("utf-8", "backslashreplace").decode()


def _identity(file: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None if it cannot be found."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def make_file(directory: Path, file: Path) -> None:
    """Make the directory and the file if they are missing.

    A file that is there is not opened; see `STATE_FILE`.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        elif not os.access(file, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        kind = StateUnavailable if error.errno in _FULL else StateError
        raise kind(f"{directory}: cannot be used as state_dir: {error.strerror}") from None
