"""What a process does while its log is silent."""

import os
import signal

import pytest

from sentinel.processes.activity import Activity
from sentinel.processes.table import bytes_moved, cpu_seconds, process, processes
from tests.processes.running import running, until

WORKS = """
import sys
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[-1] == "computes":
    while True: pass
if sys.argv[-1] == "reads":
    with open("/dev/zero", "rb") as file: file.read(3 << 20)
sys.stdin.read()
"""
STARTS = """
import subprocess, sys
with subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdin=0) as one: pass
"""


def family(one):
    """The process and the one that it started."""
    return [*(pid for pid, other in processes().items() if other.parent == one.pid), one.pid]


def worked(one, does):
    """Whether a process, or one that it started, has done some work."""
    return any(
        cpu_seconds(pid) > 1.0 if does == "computes" else (bytes_moved(pid) or 0) > 3 << 20
        for pid in family(one)
    )


@pytest.mark.slow  # processes that work
@pytest.mark.parametrize("code", [(WORKS, "-"), (STARTS, WORKS)])
@pytest.mark.parametrize(("does", "says"), [("computes", "computed ("), ("reads", "read and wrote 3.0 MiB")])
def test_what_a_process_or_one_below_it_does_is_told(code, does, says):
    first, *words = code
    with running(first, *words, does) as one:
        activity = Activity(process(one.pid), awake=100.0)
        one.stdin.write(b"\n")
        one.stdin.flush()
        until(lambda: worked(one, does))
        assert activity.words(awake=101.0) == "", "nothing can be said of so short a time"
        assert activity.words(awake=110.0).startswith(f"in the last 10 s it {says}")
        for pid in family(one):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_does_nothing_is_said_to_do_nothing():
    with running(WORKS, "-", "waits") as one:
        assert Activity(process(one.pid), awake=0.0).words(awake=120.0) == "in the last 2 min it did nothing"
