"""A log in which a number ceases to be finite is noticed by its bytes, in every format."""

import json
import math
import os
from pathlib import Path

import pytest
from tensorboardX import SummaryWriter

from sentinel.watch.nonfinite_scan import NonFiniteScan

SAMPLES = Path(__file__).parents[2] / "sample_logs"


def as_text(line):
    def write(place, values):
        with (place / "log").open("a") as file:
            file.writelines(f"{line(value)}\n" for value in values)

    return write


def as_events(place, values):
    with SummaryWriter(str(place), filename_suffix="x", max_queue=1) as writer:
        for step, value in enumerate(values):
            writer.add_scalar("nanny/info", value, step)


WRITERS = {
    "jsonl": as_text(lambda value: json.dumps({"step": 1, "train/loss": value})),
    "console": as_text(lambda value: f"step 3 loss: {value:.3f} nanometres in info"),
    "csv": as_text(lambda value: f"3,{value},0.1"),
}
HEALTHY = [0.0, 1.0, -2.5, 1e30, 3.4e38, 255.99]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("ill", [math.nan, math.inf, -math.inf])
def test_the_first_number_that_is_not_finite_is_seen_once(tmp_path, write, ill):
    peeks = NonFiniteScan()

    def seen():
        return [path.parent for path in peeks.scan(tmp_path.iterdir())]

    write(tmp_path, HEALTHY)
    assert seen() == []
    write(tmp_path, [1.0, ill, 2.0])
    assert seen() == [tmp_path]
    assert seen() == [], "nothing new"
    write(tmp_path, [ill])
    assert seen() == [], "it is ill all the time"
    write(tmp_path, HEALTHY)
    assert seen() == []
    write(tmp_path, [ill])
    assert seen() == [tmp_path]


@pytest.mark.slow
@pytest.mark.parametrize("ill", [math.nan, math.inf, -math.inf])
def test_what_a_writer_of_tensorboard_writes(tmp_path, ill):
    as_events(tmp_path, HEALTHY)
    assert [*NonFiniteScan().scan(tmp_path.iterdir())] == []
    as_events(tmp_path, [ill])
    assert len([*NonFiniteScan().scan(tmp_path.iterdir())]) == 1


@pytest.mark.parametrize(("kind", "count"), [("healthy-*", 0), ("non-finite-metric", 1)])
def test_the_shipped_logs(kind, count):
    assert len([*NonFiniteScan().scan(SAMPLES.glob(f"{kind}/events*"))]) == count


def test_what_cannot_be_read_is_passed_over(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "log").write_text("nan")
    files = [tmp_path / name for name in ("pipe", "directory", "gone", "log")]
    assert [*NonFiniteScan().scan(files)] == [tmp_path / "log"]


def test_a_file_that_is_written_anew_is_seen_from_its_start(tmp_path):
    log = tmp_path / "log"
    peeks = NonFiniteScan()
    log.write_text("1.0\n" * 100)
    assert [*peeks.scan([log])] == []
    log.write_text("nan\n")
    assert [*peeks.scan([log])] == [log]
