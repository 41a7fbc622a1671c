"""The state directory and the SQLite database in it: opening, the schema, transactions.

The journal is a write-ahead log, whose index is memory that only processes of one machine can share. On a
file system that other machines may use, too, such as NFS, it is a rollback journal, which needs no more than
locks.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from sentinel.common.errors import StateDamaged, StateError, StateOfAnotherSchema, StateUnavailable
from sentinel.common.owners import owner_of
from sentinel.common.paths import exists
from sentinel.common.state_dir import STATE_FILE
from sentinel.sources.readers.files import is_another_thing
from sentinel.sources.readers.mounts import LOCAL_SYSTEMS, file_system
from sentinel.sources.readers.sqlite import HALF_WRITTEN

SCHEMA = 1
"""The number of the form of the tables. Whoever changes `schema.sql` raises it."""

LOCK = "watch.lock"
"""The file that a watching process locks; `lock.py` says how."""

_BUSY_SECONDS = 30.0
_MAX_WAL_BYTES = 64 << 20  # the write-ahead log is cut back to this after a checkpoint
_MAX_TRIES = 5  # of a query, while a writer changes the index of the log
_MAX_VACUUM_PAGES = 4096  # 16 MiB; more would hold up those who write

_TRANSIENT_CODES = {
    sqlite3.SQLITE_BUSY: f"another program held it locked for {_BUSY_SECONDS:.0f} s; end that program",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written; look at its permissions and its mount",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; look at its permissions and its mount",
    sqlite3.SQLITE_IOERR: "the disk fails or is full",
    sqlite3.SQLITE_NOMEM: "memory is short",
}
"""What to do about errors that may pass by themselves, by SQLite's primary result code."""

_LOCK_CODES = {
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
}
NO_LOCKS = "its file system locks no files; name a --state-dir on a disk of this machine"
"""What to do about a mount without locks, such as NFS with `nolock`."""

_OF_ONE_MACHINE = LOCAL_SYSTEMS | {"aufs", "exfat", "ntfs3", "overlay", "reiserfs", "vfat"}

_NO_INDEX = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_DIRECTORY)
"""Errors of who may not make the index of the log."""

_MAX_SCHEMA = 1000
"""No sentinel has written a schema number so high; bytes of the file were overwritten."""

_DISK_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}
_DAMAGE_CODES = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # a table is missing
}
_REPLACEMENT = "a start of `sentinel watch` keeps it aside, begins a new one and reads all logs again"
_ROW_ERRORS = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError)


class Database:
    """A connection for the thread that opened it.

    An error that concerns the whole database raises StateError, or StateUnavailable if it may pass by
    itself. A single row that SQLite refuses raises sqlite3.Error.
    """

    def __init__(self, directory: Path, *, create: bool, read_only: bool = False) -> None:
        """Open the database; with ``create``, make the directory and the database if they are missing.

        With ``read_only``, SQLite refuses every change. Raises StateOfAnotherSchema if the tables are not of
        this schema, and StateError if the database cannot be used for another reason.
        """
        self._path = directory / STATE_FILE
        self._is_shared = is_shared_by_machines(directory)
        if create:
            make_file(directory, self._path)
        else:
            _check_access(directory, self._path, os.R_OK if read_only else os.R_OK | os.W_OK)
        if is_another_thing(self._path):
            raise StateError(f"{self._path}: is no regular file")
        with self._errors():
            self._connect("mode=ro" if read_only else "mode=rw")
            try:
                self._prepare(read_only)
                self._files = {file: _identity(file) for file in (self._path, directory / LOCK)}
            except BaseException:
                self._connection.close()
                raise

    def _connect(self, mode: str) -> None:
        """Connect. Who may only read cannot make the index of the log where no watch has it open; then nobody
        writes, and the database is read as a file that does not change.
        """
        try:
            self._connection = self._connected(mode)
            self._is_at_rest = False
        except sqlite3.OperationalError as error:
            has_log = exists(Path(f"{self._path}-wal"))
            if mode != "mode=ro" or error.sqlite_errorcode not in _NO_INDEX or has_log:
                raise
            self._connection = self._connected("mode=ro&immutable=1")
            self._is_at_rest = True

    def _connected(self, mode: str) -> sqlite3.Connection:
        address = f"{self._path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            connection.execute("PRAGMA user_version").fetchall()  # for SQLite opens files when it needs them
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, read_only: bool) -> None:
        ((schema,),) = self._connection.execute("PRAGMA user_version").fetchall()
        if not 0 <= schema < _MAX_SCHEMA:
            raise StateDamaged(f"{self._path}: its schema number {schema} is none; {_REPLACEMENT}")
        is_new = schema == 0
        if not is_new and schema != SCHEMA:
            self.check()
            raise StateOfAnotherSchema(
                f"{self._path}: has schema {schema}, and this sentinel has schema {SCHEMA}; {_REPLACEMENT}"
            )
        if read_only:
            if is_new:
                raise StateError(f"{self._path}: empty; start `sentinel watch` once")
            return
        if is_new:
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if self._is_shared else 'WAL'}")
        self._connection.execute(f"PRAGMA journal_size_limit = {_MAX_WAL_BYTES}")
        if is_new:
            tables = files("sentinel.storage").joinpath("schema.sql").read_text("utf-8")
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {tables} PRAGMA user_version = {SCHEMA}; COMMIT;"
            )

    def check(self) -> None:
        """Raise StateDamaged unless the structure of the whole database is sound."""
        ((problem,),) = self.rows("PRAGMA quick_check(1)")
        if problem != "ok":
            raise StateDamaged(f"{self._path}: {problem}; {_REPLACEMENT}")

    def shrink(self) -> None:
        """Give at most 16 MiB of disk space back if more than a quarter of the file is free."""
        ((free_pages, pages),) = self.rows("SELECT * FROM pragma_freelist_count, pragma_page_count")
        if free_pages > pages / 4:
            with self._errors():  # the pragma frees a page in each step, and only a script takes all steps
                self._connection.executescript(f"PRAGMA incremental_vacuum({_MAX_VACUUM_PAGES})")

    def check_place(self) -> None:
        """Raise StateUnavailable unless the database and the lock lie where they were when it was opened."""
        for file, identity in self._files.items():
            if identity is not None and _identity(file) != identity:
                raise StateUnavailable(
                    f"{file}: moved or removed under the running program; put it back, or restart the program"
                )

    def close(self) -> None:
        self._connection.close()

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        with self._errors():
            if self._is_at_rest and exists(Path(f"{self._path}-shm")):  # a watch began
                self._connection.close()
                self._connect("mode=ro")
            for _ in range(_MAX_TRIES - 1):
                try:
                    return self._connection.execute(query, arguments).fetchall()
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode not in HALF_WRITTEN:
                        raise
            return self._connection.execute(query, arguments).fetchall()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Commit everything that is executed inside, or nothing.

        ``durable`` waits until the commit survives a power failure.
        """
        with self._errors():
            level = "FULL" if durable or self._is_shared else "NORMAL"  # the least that keeps a journal sound
            self._connection.execute(f"PRAGMA synchronous = {level}")
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
        except _ROW_ERRORS:
            raise
        except UnicodeDecodeError as error:  # in an error message of SQLite, which quotes what is damaged
            raise StateDamaged(f"{self._path}: its tables cannot be read; {_REPLACEMENT}") from error
        except sqlite3.Error as error:
            exact_code = getattr(error, "sqlite_errorcode", 0)
            if exact_code in _LOCK_CODES:
                raise StateUnavailable(f"{self._path}: {error}: {NO_LOCKS}") from error
            code = exact_code & 0xFF  # the primary one of an extended code
            if code in _TRANSIENT_CODES:
                raise StateUnavailable(f"{self._path}: {error}: {_TRANSIENT_CODES[code]}") from error
            if code in _DAMAGE_CODES:
                raise StateDamaged(f"{self._path}: {error}; {_REPLACEMENT}") from error
            raise StateError(f"{self._path}: {error}") from error


def set_aside(directory: Path, now: float, suffix: str) -> Path:
    """Rename a database, which no connection may have open, beside itself. Return its new path."""
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    renamed = directory / f"{STATE_FILE}.{suffix}-{time}"
    for suffix in ("-journal", "-shm", "-wal", ""):
        with suppress(FileNotFoundError):
            (directory / f"{STATE_FILE}{suffix}").rename(f"{renamed}{suffix}")
    return renamed


def utf8(path: str) -> str:
    """Return the path as UTF-8, as SQLite needs it. Different paths stay different."""
    return path.encode("utf-8", "backslashreplace").decode()


@lru_cache(100)
def is_shared_by_machines(directory: Path) -> bool:
    """Return whether other machines may use the file system of a directory, too."""
    kind = file_system(Path(os.path.realpath(directory)))
    return bool(kind) and kind not in _OF_ONE_MACHINE


def _check_access(directory: Path, file: Path, rights: int) -> None:
    """Raise StateError where there is no state, or where it is another user's and closed to this one."""
    try:
        file.stat()
    except PermissionError:
        may = False
    except OSError:
        raise StateError(f"{directory}: no state here; nothing was watched with this state_dir yet") from None
    else:
        may = os.access(file, os.R_OK)
    owner = owner_of(file) or owner_of(directory) or "its owner"
    if not may:
        raise StateError(
            f"{directory}: closed to you; {owner} may share it with a group (`state_group` in sentinel.toml)"
        )
    if not os.access(file, rights):
        raise StateError(f"{directory}: you may read it, and only {owner} may change it")


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
        if not exists(file):
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        elif not os.access(file, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        kind = StateUnavailable if error.errno in _DISK_FULL_ERRNOS else StateError
        raise kind(f"{directory}: cannot be used as state_dir: {error.strerror}") from None
