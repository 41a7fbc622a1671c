import math
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.base import EndKind
from sentinel.sources.discovery import discover
from sentinel.sources.mlflow import stores
from tests.sources.reader import Reader

FIXTURES = Path(__file__).parents[1] / "fixtures" / "mlflow"
ONE = [
    ("train/loss", 0, "4.0"),
    ("lr", 0, "1.0"),
    ("train/loss", 1, "3.0"),
    ("lr", 1, "0.5"),
    ("train/loss", 2, "2.0"),
    ("lr", 2, "0.25"),
    ("odd", 3, "nan"),
    ("odd", 4, "inf"),
]


@pytest.fixture
def run(tmp_path):
    directory = tmp_path / "mlruns" / "0" / "abc"
    (directory / "metrics").mkdir(parents=True)
    (directory / "meta.yaml").write_text("run_id: abc\nstatus: 1\n")
    return directory


@pytest.fixture
def database(tmp_path):
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.executescript((FIXTURES / "mlflow.sql").read_text())
        connection.commit()
        yield connection
    connection.close()


def write(run: Path, name: str, *rows: tuple[int, float, int]) -> Path:
    path = run / "metrics" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{1_700_000_000_000 + time} {value} {step}\n" for time, value, step in rows)
    return path


def batches(path: Path, limit: int = 1000):
    return [run.source.poll({}, limit) for run in discover([path]).runs]


def test_the_file_store_of_mlflow(tmp_path):
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    failed, finished = sorted(batches(tmp_path), key=lambda batch: len(batch.config))
    assert sorted(Reader(tmp_path).poll().points) == sorted([*ONE, ("loss", 0, "1.0")])
    assert finished.config == {"lr": 0.1, "optimizer": "adam", "model/width": 12}
    assert finished.ending.outcome is EndKind.FINISHED
    assert failed.ending.outcome is EndKind.CRASHED
    assert finished.chunks[0].time[0] == 1795180817.245


def test_the_database_of_mlflow(database, tmp_path):
    failed, finished = sorted(batches(tmp_path), key=lambda batch: len(batch.config))
    assert Reader(tmp_path).poll().points == [("loss", 0, "1.0"), *ONE]
    assert Reader(tmp_path).poll(limit=1).points == [("loss", 0, "1.0"), *ONE]
    assert finished.config == {"lr": 0.1, "optimizer": "adam", "model/width": 12}
    assert finished.ending.outcome is EndKind.FINISHED
    assert failed.ending.evidence == "MLflow status FAILED"
    assert finished.chunks[0].time[0] == 1795180487.789


def test_a_store_that_lacks_all_but_metrics(run):
    write(run, "loss", (0, 1.0, 0))
    (run / "meta.yaml").unlink()
    assert [found.path for found in discover([run.parents[2]]).runs] == [run]


def test_other_directories_of_that_name_are_no_runs(tmp_path):
    (tmp_path / "metrics").mkdir()
    assert not discover([tmp_path]).runs
    (tmp_path / "metrics" / "accuracy.py").write_text("import numpy\n")
    assert not discover([tmp_path]).runs


def test_the_run_goes_on_after_its_end(run):
    write(run, "loss", (0, 1.0, 0))
    source = discover([run]).runs[0].source
    first = source.poll({}, 10)
    (run / "meta.yaml").write_text("run_id: abc\nstatus: 4\n")
    second = source.poll(first.cursor, 10)
    write(run, "loss", (9, 0.5, 1))
    third = source.poll(second.cursor, 10)
    assert (first.ending, second.ending.outcome, third.ending) == (None, EndKind.CRASHED, None)
    assert source.poll(third.cursor, 10).cursor == third.cursor


def test_settings_that_come_later(run):
    source = discover([run]).runs[0].source
    cursor = source.poll({}, 10).cursor
    (run / "params").mkdir()
    (run / "params" / "lr").write_text("1e-3")
    assert source.poll(cursor, 10).config == {"lr": 0.001}


def test_torn_broken_and_old_lines(run):
    path = write(run, "loss", (0, 1.0, 0))
    with path.open("a") as file:
        file.write("nonsense\n1700000000005 0.5\n1700000000006 0.25 2 data digest\n17000000")
    reader = Reader(run).poll()
    assert reader.points == [("loss", 0, "1.0"), ("loss", 0, "0.5"), ("loss", 2, "0.25")]
    assert reader.read_issues == [f'{path} at byte 20: is no "time value step" and was skipped']
    with path.open("a") as file:
        file.write("00009 0.125 3\n")
    assert reader.poll().points[-1] == ("loss", 3, "0.125")
    assert len(reader.read_issues) == 1


def test_a_metric_that_was_written_anew(run):
    path = write(run, "loss", (0, 1.0, 0), (1, 2.0, 1))
    reader = Reader(run).poll()
    path.unlink()
    write(run, "loss", (5, 3.0, 0))
    assert reader.poll().points[-1] == ("loss", 0, "3.0")
    assert reader.restarts == 1


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that not even root can read")
def test_a_metric_that_cannot_be_read(run):
    write(run, "loss", (0, 1.0, 0))
    (run / "metrics" / "odd").symlink_to("/proc/self/mem")
    reader = Reader(run).poll().poll()
    assert reader.points == [("loss", 0, "1.0")]
    assert len(reader.read_issues) == 1


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 9)), max_size=300),
    st.integers(1, 20),
)
def test_the_order_does_not_depend_on_the_limit(tmp_path_factory, rows, limit):
    run = tmp_path_factory.mktemp("store")
    (run / "metrics").mkdir()
    (run / "meta.yaml").touch()
    time = 0
    before = {}
    for metric, pause, step in rows:
        time += max(pause, (time, step) < before.get(metric, (0, 0)))
        before[metric] = time, step
        write(run, f"m{metric}", (time, math.pi, step))
    expected = Reader(run).poll(limit=10_000)
    assert Reader(run).poll(limit).points == expected.points
    assert len(expected.points) == len(rows)
    assert expected.times == sorted(expected.times)


@pytest.mark.slow
def test_a_long_file_beside_a_short_one_keeps_the_order(run):
    write(run, "loss", *((step, 1.0, step) for step in range(5000)))
    write(run, "val", *((step, 2.0, step) for step in range(0, 5000, 1000)))
    reader = Reader(run).poll(limit=100)
    assert len(reader.points) == 5005
    assert reader.times == sorted(reader.times)


@pytest.mark.slow
def test_new_rows_are_read_and_deleted_runs_are_not_found(database, tmp_path):
    reader = Reader(tmp_path).poll()
    before = len(reader.points)
    [first, second] = [run.path.name for run in discover([tmp_path]).runs]
    with database:
        insert = "INSERT INTO metrics (key, value, timestamp, run_uuid, step) VALUES ('late', ?, 9, ?, ?)"
        database.executemany(insert, [(1.0, first, 7), (-1.7976931348623157e308, second, 7)])
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = ?", (first,))
    assert reader.poll().points[before:] == [("late", 7, "1.0"), ("late", 7, "-inf")]
    assert [run.path.name for run in discover([tmp_path]).runs] == [second]
    with database:
        database.execute("DELETE FROM metrics WHERE run_uuid = ?", (second,))
        database.execute(insert, (5.0, second, 6))
    assert reader.poll().points[before + 2 :] == [("late", 6, "5.0")]
    assert reader.restarts == 1


def test_a_database_at_work_is_waited_for(database, tmp_path, monkeypatch):
    monkeypatch.setattr("sentinel.sources.readers.sqlite._PATIENCE_SECONDS", 0)
    reader = Reader(tmp_path).poll()
    before = len(reader.points)
    database.execute("BEGIN EXCLUSIVE")
    assert not reader.poll().read_issues
    database.rollback()
    assert len(reader.poll().points) == before


def test_other_databases_are_no_runs(tmp_path):
    (tmp_path / "text.db").write_text("nothing")
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + bytes(1000))
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.executescript("CREATE VIEW metrics AS SELECT 1 AS key; CREATE TABLE runs (run_uuid)")
    connection.close()
    assert not discover([tmp_path]).runs


def test_a_database_that_breaks_is_complained_about_once(database, tmp_path):
    reader = Reader(tmp_path).poll()
    (tmp_path / "mlflow.db").write_bytes(b"no database any more" * 100)
    reader.poll().poll()
    assert len(reader.read_issues) == 2
    assert "file is not a database" in reader.read_issues[0]


def test_a_run_that_took_the_place_of_a_finished_one_has_an_end_of_its_own(run):
    def finish(*rows):
        write(run, "loss", *rows)
        (run / "meta.yaml").write_text("run_id: abc\nstatus: 3\n")

    def polled(cursor):
        (found,) = discover([run]).runs
        return found.source.poll(cursor, 1000)

    finish((0, 4.0, 0), (1, 3.0, 1), (2, 2.0, 2))
    first = polled({})
    shutil.rmtree(run)
    (run / "metrics").mkdir(parents=True)
    finish((90, 5.0, 0))
    second = polled(first.cursor)
    assert second.chunks[0].restarted
    assert [poll.ending.outcome for poll in (first, second)] == 2 * [EndKind.FINISHED]


def test_a_run_that_is_deleted_in_the_file_store_is_none(run):
    write(run, "loss", (0, 4.0, 0), (1, 3.0, 1))
    assert len(discover([run.parents[1]]).runs) == 1
    (run / "meta.yaml").write_text("lifecycle_stage: deleted\nrun_id: abc\nstatus: 3\n")
    assert discover([run.parents[1]]).runs == []
    assert stores.deleted([run]) == {run}
