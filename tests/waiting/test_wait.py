"""`sentinel wait` in its four endings, with trainings and watches that are processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import sentinel
from tests.patience import PATIENCE

__all__ = ["sentinel"]

pytestmark = pytest.mark.long  # real processes

ROOT = Path(__file__).parents[2]
TRAINING = Path(__file__).with_name("training.py")


@pytest.fixture
def trains(tmp_path):
    """Starts a training below runs/, which goes on until its gate is opened."""
    started = []

    def train(name, end):
        gate = tmp_path / f"{name}.gate"
        log = tmp_path / "runs" / name / "metrics.jsonl"
        words = [sys.executable, TRAINING, log, end, gate]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stdout.readline() == "logged\n"
        return gate

    yield train
    for process in started:
        process.kill()
        process.communicate()


def begin(tmp_path, *words):
    """Start a command; `communicate` gives what it prints."""
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "sentinel", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True)


def ended(process):
    """The exit status and the object that it printed."""
    out, err = process.communicate(timeout=PATIENCE)
    assert out, err
    return process.returncode, json.loads(out)


def test_a_run_that_breaks_ends_the_wait_with_what_a_webhook_gets(trains, tmp_path):
    trains("sick", "nan")
    status, told = ended(begin(tmp_path, "wait", "runs", "--format", "json"))
    assert (status, told["outcome"], told["exit_status"]) == (1, "incident", 1)
    assert told["incident"]["detector"] == "non-finite-metric"
    assert told["incident"]["severity"] == "critical"
    assert told["run"]["path"] == str(tmp_path / "runs" / "sick" / "metrics.jsonl")
    assert told["catalogue"][0]["fix"]
    assert told["next_steps"]
    words = ["wait", "runs", "--ignore", told["incident"]["id"], "--timeout", "1s", "--format", "json"]
    status, told = ended(begin(tmp_path, *words))
    assert (status, told["outcome"], told["runs"][0]["state"]) == (3, "timeout", "running")


def test_a_wait_for_the_end_is_over_when_the_last_run_is(trains, tmp_path):
    gates = [trains("one", "well"), trains("two", "well")]
    waiting = begin(tmp_path, "wait", "runs", "--until", "end", "--format", "json")
    for gate in gates:
        gate.touch()
    status, told = ended(waiting)
    assert (status, told["outcome"]) == (0, "ended"), told
    assert [run["state"] for run in told["runs"]] == ["finished", "finished"]


def test_a_run_that_crashes_did_not_end_well(trains, tmp_path):
    gate = trains("sick", "crash")
    waiting = begin(tmp_path, "wait", "runs", "--until", "end", "--format", "json")
    gate.touch()
    status, told = ended(waiting)
    assert (status, told["outcome"]) == (1, "incident")
    assert told["incident"]["detector"] == "console-error"


@pytest.mark.parametrize("content", [None, b"\x00\xff\xfe junk" * 300])
def test_what_cannot_be_read_is_said(sentinel, tmp_path, content):
    if content is not None:
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs" / "train.log").write_bytes(content)
    done = sentinel("wait", "runs", "--timeout", "1s", "--format", "json")
    told = json.loads(done.out)
    assert (done.status, told["outcome"]) == (4, "unreadable")
    assert "no log that sentinel can read" in told["message"]


def test_a_running_watch_is_asked_and_what_is_acknowledged_does_not_count(trains, tmp_path):
    gate = trains("sick", "nan")
    watch = begin(tmp_path, "watch", "runs")
    try:
        status, told = ended(begin(tmp_path, "wait", "runs", "--format", "json"))
        assert (status, told["outcome"]) == (1, "incident")
        begin(tmp_path, "ack", told["incident"]["id"]).communicate()
        waiting = begin(tmp_path, "wait", "runs", "--format", "json")
        gate.touch()
        status, told = ended(waiting)
        assert (status, told["outcome"]) == (0, "ended"), told
    finally:
        watch.terminate()
        watch.communicate()
    state = [*(tmp_path / "state" / "sentinel").rglob("sentinel.sqlite")]
    assert len(state) == 1, "the wait made no state"
