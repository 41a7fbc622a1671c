import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.sources.discovery import discover
from tests.sources.reader import Reader
from tests.sources.tracker_writers import MlflowDatabaseWriter, TrackioWriter

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent / "fixtures" / "trackio"

WRITER = """
import signal
from pathlib import Path
from tests.sources.tracker_writers import TrackioWriter
writer = TrackioWriter()
writer.start(Path({directory!r}))
for step in range(3):
    writer.log(step, {{"loss": 1.0}})
print("written", flush=True)
signal.pause()
"""


@pytest.fixture
def database(tmp_path):
    connection = sqlite3.connect(tmp_path / "demo.db")
    connection.executescript((FIXTURES / "demo.sql").read_text())
    yield connection
    connection.close()


def seen(directory: Path):
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in directory.iterdir()}


def test_the_database_of_trackio(database, tmp_path):
    [run] = discover([tmp_path]).runs
    batch = run.source.poll({}, 100)
    assert run.path == tmp_path / "demo.db" / "one-ef3be006"
    assert batch.config["lr"] == 0.1
    assert batch.config["opt.name"] == "adam"
    assert batch.chunks[0].time[0] == 1795180819.121483
    assert Reader(tmp_path).poll().points == [
        *(p for s in range(4) for p in (
            ("train/loss", s, str(4.0 - s)), ("lr", s, str(0.5**s)), ("nested/a", s, "1.0"),
        )),
        ("odd", 4, "nan"),
        ("inf", 4, "inf"),
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["0.12.0", "0.20.2", "0.25.1", "0.30.0", "0.36.0", "0.43.0"])
def test_the_database_of_each_version(tmp_path, version):
    connection = sqlite3.connect(tmp_path / "demo.db")
    connection.executescript((FIXTURES / f"{version}.sql").read_text())
    assert {kind for (kind,) in connection.execute("SELECT typeof(metrics) FROM metrics")} == {"blob"}
    connection.close()
    [run] = discover([tmp_path]).runs
    assert run.path.name.startswith("one")
    assert run.source.poll({}, 100).config["opt.name"] == "adam"
    reader = Reader(tmp_path).poll()
    assert reader.points == [
        *(p for s in range(4) for p in (
            ("train/loss", s, str(4.0 - s)), ("lr", s, str(0.5**s)), ("nested/a", s, "1.0"),
        )),
        ("odd", 4, "nan"),
        ("inf", 4, "inf"),
    ]  # fmt: skip
    assert all(time > 1.7e9 for time in reader.times)
    assert not reader.read_issues


def test_a_database_without_ids(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)")
    rows = [("a/b", '{"loss": 1.0}'), ("c", "no json"), ("c", '{"loss": 2.0}')]
    connection.executemany("INSERT INTO metrics VALUES (NULL, '2026-01-01', ?, 3, ?)", rows)
    connection.commit()
    connection.close()
    reader = Reader(tmp_path).poll()
    assert [run.path.name for run in discover([tmp_path]).runs] == ["a_b", "c"]
    assert reader.points == [("loss", 3, "1.0"), ("loss", 3, "2.0")]
    assert reader.read_issues == [
        f"{tmp_path}/old.db at row 2 of metrics: is not a JSON object and was skipped"
    ]


def test_another_database_under_the_same_name_is_read_from_its_start(tmp_path):
    writer = TrackioWriter()
    writer.start(tmp_path)
    writer.log(1, {"loss": 1.0})
    reader = Reader(tmp_path).poll()
    with writer.database:
        writer.database.execute("DELETE FROM metrics")
    writer.log(0, {"loss": 2.0})
    assert reader.poll().points == [("loss", 1, "1.0"), ("loss", 0, "2.0")]
    assert reader.restarts == 1
    writer.close()


@pytest.mark.long
def test_a_writer_leaves_a_log_behind_and_the_reader_nothing(tmp_path):
    code = WRITER.format(directory=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as life:
        assert life.stdout.readline() == b"written\n"
        before = seen(tmp_path)
        assert "demo.db-wal" in before
        alive = Reader(tmp_path).poll().points
        os.kill(life.pid, signal.SIGKILL)
    reader = Reader(tmp_path).poll()
    assert alive == reader.points == [("loss", step, "1.0") for step in range(3)]
    assert seen(tmp_path) == before
    (tmp_path / "demo.db-shm").unlink()
    assert "demo.db-shm is missing" in reader.poll().read_issues[0]


def test_reading_a_database_at_rest_leaves_nothing(tmp_path):
    writer = TrackioWriter()
    writer.start(tmp_path)
    writer.log(1, {"loss": 1.0})
    writer.close()
    before = seen(tmp_path)
    assert list(before) == ["demo.db"]
    assert len(Reader(tmp_path).poll().points) == 1
    assert seen(tmp_path) == before


@pytest.mark.parametrize("writer", [TrackioWriter, MlflowDatabaseWriter])
def test_an_older_copy_of_a_database_waits_for_the_newer_one(writer, tmp_path):
    """As a copy does that brings the database before its write-ahead log."""
    directory = tmp_path / "runs"
    writer = writer()
    directory.mkdir()
    writer.start(directory)
    writer.log(0, {"loss": 1.0})
    writer.close()
    shutil.copytree(directory, tmp_path / "old")
    writer.start(directory)
    writer.log(1, {"loss": 2.0})
    writer.close()
    shutil.copytree(directory, tmp_path / "new")
    reader = Reader(directory).poll()
    for copy in (tmp_path / "old", tmp_path / "new"):
        shutil.copytree(copy, directory, dirs_exist_ok=True)
        reader.poll()
    writer.start(directory)
    writer.log(2, {"loss": 3.0})
    writer.close()
    assert reader.poll().points == [("loss", 0, "1.0"), ("loss", 1, "2.0"), ("loss", 2, "3.0")]
    assert not reader.restarts


def test_metrics_that_are_stored_as_bytes(database, tmp_path):
    """As trackio does since 0.30."""
    expected = Reader(tmp_path).poll().points
    with database:
        database.execute("UPDATE metrics SET metrics = CAST(metrics AS BLOB)")
        database.execute("UPDATE configs SET config = CAST(config AS BLOB)")
    reader = Reader(tmp_path).poll()
    assert reader.points == expected
    assert not reader.read_issues
    assert discover([tmp_path]).runs[0].source.poll({}, 100).config["lr"] == 0.1


def test_metrics_that_are_no_text(database, tmp_path):
    with database:
        database.execute("UPDATE metrics SET metrics = x'ff00' WHERE id = 1")
    assert len(Reader(tmp_path).poll().read_issues) == 1
