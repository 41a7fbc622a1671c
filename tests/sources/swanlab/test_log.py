import json
import math
import shutil
from pathlib import Path

import pytest

from sentinel.sources.base import EndKind
from sentinel.sources.discovery import discover
from sentinel.sources.swanlab.messages import JSON_VERSION, PROTOBUF_VERSION, Scalar, parse, record_type
from tests.sources.reader import Reader
from tests.sources.runs import points
from tests.sources.tracker_writers import SwanLabWriter
from tests.sources.wandb.log_writer import framed

RUNS = Path(__file__).parents[1] / "fixtures" / "swanlab"
HEADER = b":SWL\xd6\xe1"


@pytest.fixture
def run(tmp_path):
    """The directory of a run, with what lies in it beside the log."""
    directory = tmp_path / "swanlog" / "run-20260102_030405-abcdefgh"
    (directory / "logs" / "1").mkdir(parents=True)
    (directory / "logs" / "1" / "1000.log").write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.5}\n')
    (directory / "console").mkdir()
    (directory / "console" / "2026-01-02.log").write_text("step 1 loss 1.0\nstep 2 loss 0.5\n")
    return directory


@pytest.fixture
def writer(run):
    writer = SwanLabWriter()
    writer.start(run)
    return writer


@pytest.mark.parametrize(
    "name", ["run-20261122_193048-mlfsytsi", "run-20261122_193053-aqomrbcdtupa406ghi1my"]
)
def test_a_run_that_swanlab_wrote(name, tmp_path):
    shutil.copytree(RUNS / name, tmp_path / name)
    reader = Reader(tmp_path).poll()
    rows = [(step, {"train/loss": 4.0 - step, "lr": 0.5**step}) for step in range(4)]
    assert reader.points == points([*rows, (4, {"odd": math.nan})])
    assert reader.batch.ending.outcome is EndKind.FINISHED
    assert "epoch 1 of 1 done" in [line.text for line in reader.batch.lines]
    assert all(1.79e9 < time < 1.8e9 for time in [*reader.times, *(line.time for line in reader.batch.lines)])
    assert not reader.read_issues
    assert [run.path for run in discover([tmp_path]).runs] == [tmp_path / name]


def test_only_the_log_of_a_run_is_a_run(writer, run):
    writer.log(1, {"loss": 1.0})
    (run.parent / "runs.swanlab").write_bytes(b"SQLite format 3\0")  # SwanLab's dashboard
    assert [found.path for found in discover([run.parent]).runs] == [run]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (HEADER + b"\3", "is a SwanLab log in version 3 of the format, and only version 1 and 2 can be read"),
        (b"plain text", "is no SwanLab log, although its name says so, and is not read; remove or rename it"),
    ],
)
def test_a_file_with_another_header_is_refused_once(run, header, problem):
    path = run / "run-abcdefgh.swanlab"
    path.write_bytes(header)
    reader = Reader(run).poll()
    path.write_bytes(header + bytes(100))
    assert reader.poll().read_issues == [f"{path}: {problem}"]
    assert reader.batch.cursor["refused"] == problem


def test_metrics_of_the_machine_are_left_out(writer, run):
    writer.log(1, {"__swanlab__.cpu.pct": 99.0, "loss": 1.0})
    assert Reader(run).poll().points == [("loss", 1, "1.0")]


def test_a_foreign_record_is_skipped(writer, run):
    with writer.path.open("ab") as file:
        file.write(framed(b"\xff\xff\xff", file.tell()))
    writer.log(1, {"loss": 1.0})
    reader = Reader(run).poll()
    assert reader.points == [("loss", 1, "1.0")]
    assert reader.read_issues == [
        f"{writer.path} at byte 0: record is no message of SwanLab's and was skipped"
    ]


@pytest.mark.parametrize(("state", "outcome"), [(2, EndKind.CRASHED), (3, EndKind.PREEMPTED)])
def test_how_a_run_ended(state, outcome):
    record = record_type()()
    record.finish.state = state
    ending = parse(record.SerializeToString(), PROTOBUF_VERSION)
    assert (ending.outcome, ending.evidence) == (outcome, f"its last record says {outcome}")


ODD = {
    "TypeError": [[], {"model_type": "Scalar", "data": {"key": "a", "step": [], "metric": {"data": 1.0}}}],
    "KeyError": [{"model_type": "Scalar"}],
    "step": [{"model_type": "Scalar", "data": {"key": "a", "step": math.nan, "metric": {"data": 1.0}}}],
    "AttributeError": [{"model_type": "Log", "data": {"message": 3, "create_time": "never"}}],
}


@pytest.mark.parametrize("reason", ODD)
def test_odd_json_is_no_message(reason):
    for odd in ODD[reason]:
        with pytest.raises(ValueError, match=reason):
            parse(json.dumps(odd).encode(), JSON_VERSION)


def test_names_and_numbers_of_json_fit_the_rest():
    data = {"key": "\ud800", "step": 3, "metric": {"data": "-INF", "create_time": "2026-01-02T00:00:00"}}
    found = parse(json.dumps({"model_type": "Scalar", "data": data}).encode(), JSON_VERSION)
    assert found == Scalar("?", 3, 1767312000.0, -math.inf)
    line = {"message": "a", "create_time": "0001-01-01T00:00:00+14:00"}
    found = parse(json.dumps({"model_type": "Log", "data": line}).encode(), JSON_VERSION)
    assert (found.text, str(found.time)) == ("a", "nan")
