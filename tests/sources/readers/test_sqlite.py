"""A SQLite database that its writer keeps changing."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.sources.base import PollResult
from sentinel.sources.readers import sqlite

pytestmark = pytest.mark.slow

_WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE points AS SELECT 7 AS value")
database.commit()
print("written", flush=True)
sys.stdin.read()
"""
_COPY_OF_THE_HEADER = slice(48, 96)  # of the index; it differs from the header while that is written


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """A database with a write-ahead log that another process has open."""
    path = tmp_path / "log.db"
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline()
        yield path
        writer.stdin.close()


class HalfWritten:
    """Leaves the index of the log half written before the first look, and whole before a later one."""

    def __init__(self, path: Path, whole_at: int) -> None:
        self.index = Path(f"{path}-shm")
        self.whole_at = whole_at
        self.looks = 0
        self.whole = self.index.read_bytes()
        self._write(bytes(48))

    def __call__(self, connection: sqlite3.Connection) -> PollResult:
        self.looks += 1
        if self.looks == self.whole_at:
            self._write(self.whole[_COPY_OF_THE_HEADER])
        (value,) = connection.execute("SELECT value FROM points").fetchone()
        return PollResult({"value": value})

    def _write(self, header: bytes) -> None:
        with self.index.open("r+b") as file:
            file.seek(_COPY_OF_THE_HEADER.start)
            file.write(header)


def test_an_index_that_is_written_just_now_is_looked_at_again(database: Path) -> None:
    query = HalfWritten(database, whole_at=3)
    assert sqlite.poll(database, {}, query) == PollResult({"value": 7})
    assert query.looks == 3


def test_an_index_that_stays_broken_is_complained_about_once(database: Path) -> None:
    query = HalfWritten(database, whole_at=-1)
    first = sqlite.poll(database, {}, query)
    assert [complaint.problem for complaint in first.read_issues] == [
        "cannot be read (attempt to write a readonly database); trying again at every poll"
    ]
    assert not sqlite.poll(database, first.cursor, query).read_issues
