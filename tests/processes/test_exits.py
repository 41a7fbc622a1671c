"""How processes that are no children of the asking one ended."""

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.processes import exits
from sentinel.processes.alarm import Alarm
from sentinel.processes.exits import Exit, open_handle
from sentinel.processes.table import lives, process
from tests.processes.running import running, until

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
REUSES = """
import os, sys
from sentinel.processes.alarm import Alarm
from sentinel.processes.exits import Exit, open_handle
from sentinel.processes.table import process
number, told, reused = 0, 0, 0
reads, writes = os.pipe()
for turn in range(10_000):
    with open(sys.argv[1], "w") as last:
        last.write(str(max(number - 1, 300)))
    if not (pid := os.fork()):
        os.read(reads, 1)
        os._exit(turn % 251)
    handle = open_handle(process(pid))
    os.write(writes, b"x")
    os.waitpid(pid, 0)
    told += handle.exit() == Exit(status=turn % 251)
    reused, number = reused + (pid == number), pid
print(told, reused)
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


def handle_of(pid):
    """A handle of a process by its number."""
    one = process(pid)
    return one and open_handle(one)


def how(handle):
    """How a process ended that ends soon."""
    return until(handle.exit)


def told_by_kernel():
    """Whether this kernel tells the status of a process that was reaped."""
    with subprocess.Popen(["true"]) as child:
        handle = handle_of(child.pid)
    how = handle is not None and handle.exit()
    return bool(how) and how.status == 0


LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
needs_kernel = pytest.mark.skipif(not told_by_kernel(), reason="the kernel does not tell, before Linux 6.15")


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize("code", ENDS)
def test_the_end_of_a_process_of_somebody_else_is_known(code):
    command = [sys.executable, "-c", GRANDCHILD, WAITS + code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        handle = handle_of(int(parent.stdout.readline()))
        assert handle.exit() is None, "it lives"
        parent.stdin.close()
        assert replace(how(handle), spared=False) == ENDS[code]


@pytest.mark.slow
def test_a_process_that_was_not_reaped_tells_what_it_may():
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"], stdin=-1
    ) as one:
        handle = handle_of(one.pid)
        one.stdin.close()
        assert how(handle) in (Exit(status=7), Exit())


@needs_kernel
def test_a_process_that_is_reaped_while_it_is_asked_for_is_asked_for_again(monkeypatch):
    def reaped(_):
        one.wait()
        raise ProcessLookupError

    with subprocess.Popen([sys.executable, "-c", WAITS + "sys.exit(7)"], stdin=-1) as one:
        handle = handle_of(one.pid)
        monkeypatch.setattr(exits, "stat_fields", reaped)
        one.stdin.close()
        assert how(handle) == Exit(status=7)


@pytest.mark.slow
def test_a_kernel_that_does_not_tell_gives_an_unknown_end(monkeypatch):
    monkeypatch.setattr(exits, "_GET_INFO", 0)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1) as one:
        handle = handle_of(one.pid)
        one.stdin.close()
        one.wait()
        assert how(handle) == Exit()
        assert Exit().words == "ended"


def test_a_number_that_no_process_has_gives_nothing():
    with subprocess.Popen(["true"]) as one:
        pass
    assert handle_of(one.pid) is None


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


def test_a_number_that_was_given_again_is_another_process():
    with running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        now = process(one.pid)
        assert lives(now)
        assert not lives(now._replace(started=now.started - 1))
        assert open_handle(now._replace(started=now.started - 1)) is None


@needs_kernel
@pytest.mark.long  # ten thousand processes
@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason="may not choose the number of a process")
def test_ten_thousand_reuses_of_a_number_confuse_nothing():
    """Every process gets the number of the one before, and each ends with a status of its own."""
    command = [sys.executable, "-c", REUSES, LAST_PID]
    first, reused = map(int, subprocess.run(command, stdout=-1, check=True).stdout.split())
    assert first == 10_000
    assert reused > 5_000, "most had the number of the one before"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux only")
def test_the_end_of_a_process_rings_the_alarm_once():
    rung = threading.Event()
    with Alarm(rung.set) as alarm, running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        handle = handle_of(one.pid)
        alarm.set(handle.descriptor)
        alarm.set(handle.descriptor)
        assert not rung.is_set()
        one.stdin.close()
        assert rung.wait(60)
