"""How the processes of runs under watch ended, told of by what they were."""

import json
import subprocess
import sys
import time

import pytest

from sentinel.alerts.store import Store
from tests.processes.test_exits import needs_kernel
from tests.watch.test_watcher import House

TRAINING = """
import json, os, sys
with open(sys.argv[1], "a", buffering=1) as log:
    log.write(json.dumps({"config": {"max_steps": 900}}) + "\\n")
    for step in range(1, 61):
        log.write(json.dumps({"step": step, "loss": 2 / step}) + "\\n")
    print("logged", flush=True)
    sys.stdin.readline()
exec(sys.argv[2])
"""
ENDS = ("run-crashed", "run-preempted", "run-ended-early", "run-finished", "stream-stall", "ended-or-stuck")
DEADLINE_SECONDS = 60.0


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def ends(house, code):
    """What is told of a training once its process has ended so, and the state of its run."""
    log = house.runs / "run.jsonl"
    command = [sys.executable, "-c", TRAINING, str(log), code]
    watcher = house.watch()
    house.look(watcher)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout.readline() == b"logged\n"
        for _ in range(2):
            assert house.look(watcher, hours=0.002, detector=ENDS) == []
        running.stdin.close()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (told := house.look(watcher, detector=ENDS)) and time.monotonic() < deadline:
        house.clock.advance(0.5)
    with Store(house.state) as store:
        (entry,) = store.outbox.worst("terminal", 100)
    incident = json.loads(entry.body)["incident"]
    assert told == ["firing: first-notification"]
    assert watcher.logs()[0].ending is not None
    return incident["detector"], incident["summary"], watcher


@needs_kernel
@pytest.mark.parametrize(
    ("code", "detector", "words"),
    [
        ("sys.exit(3)", "run-crashed", "exited with status 3"),
        ("raise ValueError", "run-crashed", "exited with status 1"),
        ("os.kill(os.getpid(), 9)", "run-crashed", "was killed by SIGKILL"),
        ("pass", "run-ended-early", "at step 60 of 900, before its planned end"),
    ],
)
def test_the_end_of_a_process_is_told_as_what_it_was(house, code, detector, words):
    found, summary, watcher = ends(house, code)
    assert found == detector
    assert words in summary
    assert house.look(watcher, hours=9, detector=("stream-stall", "ended-or-stuck")) == [], "it is no hang"


@needs_kernel
def test_a_run_that_goes_on_in_another_process_withdraws_its_end(house):
    _, _, watcher = ends(house, "sys.exit(3)")
    with (house.runs / "run.jsonl").open("a") as log:
        log.writelines(json.dumps({"step": step, "loss": 1.0}) + "\n" for step in range(55, 70))
    assert house.look(watcher, hours=0.01, detector="run-crashed") == ["resolved: resolved"]
    assert watcher.logs()[0].ending is None
