"""How processes that are no children of the asking one ended."""

import signal
import subprocess
import sys
import time

import pytest

from sentinel.processes import exits
from sentinel.processes.exits import Exit, opened

GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
child.stdin.close()
child.wait()
print("reaped", flush=True)
sys.stdin.read()
"""
ENDS = {
    "pass": Exit(status=0),
    "sys.exit(3)": Exit(status=3),
    "raise ValueError": Exit(status=1),
    "os.kill(os.getpid(), 15)": Exit(signal=15),
    "os.kill(os.getpid(), 9)": Exit(signal=9),
    "os.kill(os.getpid(), 11)": Exit(signal=11),
}
WAITS = "import os, resource, sys; sys.stderr.close(); sys.stdin.read(); "
DEADLINE_SECONDS = 60.0


def how(handle):
    """How a process ended that ends soon."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := handle.exit()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def told_by_kernel():
    """Whether this kernel tells the status of a process that was reaped."""
    with subprocess.Popen(["true"]) as child:
        handle = opened(child.pid)
    found = handle is not None and handle.exit()
    return bool(found) and found.status == 0


needs_kernel = pytest.mark.skipif(not told_by_kernel(), reason="the kernel does not tell, before Linux 6.15")


@needs_kernel
@pytest.mark.parametrize("code", ENDS)
def test_the_end_of_a_process_of_somebody_else_is_known(code):
    command = [sys.executable, "-c", GRANDCHILD, WAITS + code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        handle = opened(int(parent.stdout.readline()))
        assert handle.exit() is None, "it lives"
        parent.stdin.close()
        assert how(handle) == ENDS[code]


def test_a_process_that_was_not_reaped_tells_what_it_may():
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"], stdin=-1
    ) as one:
        handle = opened(one.pid)
        one.stdin.close()
        assert how(handle) in (Exit(status=7), Exit())


def test_a_kernel_that_does_not_tell_gives_an_unknown_end(monkeypatch):
    monkeypatch.setattr(exits, "_GET_INFO", 0)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1) as one:
        handle = opened(one.pid)
        one.stdin.close()
        one.wait()
        assert how(handle) == Exit()
        assert Exit().words == "ended"


def test_a_number_that_no_process_has_gives_nothing():
    with subprocess.Popen(["true"]) as one:
        pass
    assert opened(one.pid) is None


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(status=0), "exited with status 0"),
        (Exit(signal=signal.SIGKILL), "was killed by SIGKILL"),
        (Exit(signal=63), "was killed by signal 63"),
    ],
)
def test_an_end_is_said_in_words(end, words):
    assert end.words == words
