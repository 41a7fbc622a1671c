"""Why nothing more can be read of a log is known as long as it lasts."""

import json
from pathlib import Path

import pytest

from sentinel.sources.base import stopped
from sentinel.sources.csv import file as csv_file
from tests.sources.reader import Reader
from tests.sources.runs import SENSELESS, STEPS, largest, write
from tests.sources.writers import WRITERS

IN_ONE_FILE = sorted(
    WRITERS.keys() - {"tensorboard", "mlflow"} - {name for names in SENSELESS.values() for name in names}
)
REFUSED = {
    "metrics.json": b'[{"step": 1, "loss": 1.0}, {"step": oh, "loss": 2.0}]',
    "trainer_state.json": b'{"log_history": oh, "step": 1, "loss": 1.0}',
    "run-1.wandb": b"something else entirely",
    "metrics.csv": b"step,loss\n1,2.0\n" + b"2" * 1000,
}


def reason(reader):
    (cursor,) = reader.cursors.values()
    return stopped(json.loads(cursor))


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_log_is_stopped_until_it_is_one(tmp_path, monkeypatch, name):
    monkeypatch.setattr(csv_file, "MAX_LINE", 500)
    (tmp_path / name).write_bytes(REFUSED[name])
    reader = Reader(tmp_path).poll().poll()
    (complaint,) = reader.read_issues
    assert complaint.endswith(f": {reason(reader)}")
    kind = {"metrics.json": "json", "run-1.wandb": "wandb", "metrics.csv": "csv"}
    (tmp_path / name).unlink()
    write(WRITERS[kind.get(name, "trainer_state")](), tmp_path / "sound", STEPS)
    largest(tmp_path / "sound").rename(tmp_path / name)
    assert reason(reader.poll()) is None


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that not even root can read")
@pytest.mark.parametrize("name", IN_ONE_FILE)
def test_a_file_that_cannot_be_read_is_stopped_until_it_can(tmp_path, name):
    path = largest(write(WRITERS[name](), tmp_path, STEPS))
    reader = Reader(tmp_path).poll()
    assert reason(reader) is None
    content = path.rename(tmp_path / ".kept")
    path.symlink_to("/proc/self/mem")
    assert "cannot be read" in reason(reader.poll().poll())
    path.unlink()
    assert reason(reader.poll()) is None, "a log that is gone is another matter"
    content.rename(path)
    assert reason(reader.poll()) is None
