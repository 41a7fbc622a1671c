"""Whether the OOM killer ended a process."""

import os
import signal
from pathlib import Path

import pytest

from sentinel.processes import exits, kernel_log, memory
from sentinel.processes.exits import Exit, open_handle
from sentinel.processes.kernel_log import killed_by_oom
from sentinel.processes.memory import memory_of
from sentinel.processes.table import process
from tests.processes.running import running, until
from tests.processes.test_exits import needs_kernel

pytestmark = pytest.mark.slow

LIMIT = 64 << 20
GREEDY = """
import sys
print("ready", flush=True)
sys.stdin.readline()
taken = []
while True: taken.append(bytes(range(256)) * 4096)
"""


@pytest.fixture
def group():
    """A control group of little memory; skips where none can be made."""
    mine = memory._group(os.getpid())
    place = mine and mine / "sentinel-test"
    try:
        place.mkdir()
        limit = next(place / name for name in memory._LIMIT_FILES if (place / name).exists())
        limit.write_text(str(LIMIT))
    except (OSError, AttributeError, StopIteration):
        if place and place.exists():
            place.rmdir()
        pytest.skip("no control group can be made here")
    yield place
    until(lambda: not (place / "cgroup.procs").read_text())
    place.rmdir()


@needs_kernel
@pytest.mark.parametrize("log", [True, False])
def test_a_process_that_the_oom_killer_ended_is_told_apart(group, monkeypatch, log):
    if not log:
        monkeypatch.setattr(kernel_log, "_KERNEL_LOG", Path("/nowhere"))
    with running(GREEDY) as one:
        (group / "cgroup.procs").write_text(str(one.pid))
        handle = open_handle(process(one.pid))
        assert memory_of(process(one.pid)).limit() == LIMIT
        one.stdin.write(b"\n")
        one.stdin.flush()
        one.wait()
        end = until(handle.exit)
    assert end.cause == "SIGKILL by the OOM killer (cgroup limit 0.0625 GiB)"
    assert end.words == "was killed by SIGKILL of the OOM killer (cgroup limit 0.0625 GiB)"


def test_where_the_kernel_tells_no_status_a_new_count_of_the_group_does(group, monkeypatch):
    monkeypatch.setattr(kernel_log, "_KERNEL_LOG", Path("/nowhere"))
    monkeypatch.setattr(exits, "_GET_INFO", 0)
    with running(GREEDY) as one:
        (group / "cgroup.procs").write_text(str(one.pid))
        handle = open_handle(process(one.pid))
        late = open_handle(process(one.pid))
        one.stdin.write(b"\n")
        one.stdin.flush()
        one.wait()
        late.count_kills()
    assert until(handle.exit).cause == "SIGKILL by the OOM killer (cgroup limit 0.0625 GiB)"
    assert until(late.exit) == Exit(), "what was counted before is not this end"


@needs_kernel
def test_a_process_that_somebody_killed_is_not_the_oom_killers():
    with running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        handle = open_handle(process(one.pid))
        one.kill()
        one.wait()
        end = until(handle.exit)
    assert end == Exit(signal=signal.SIGKILL, spared=killed_by_oom(handle.process) is False)


@needs_kernel
@pytest.mark.parametrize(
    ("log", "words"),
    [
        (False, "was killed by SIGKILL; the kernel's OOM killer did not do it"),
        (None, "was killed by SIGKILL"),
    ],
)
def test_that_the_oom_killer_spared_a_process_is_said_where_the_kernels_log_can_be_asked(
    monkeypatch, log, words
):
    monkeypatch.setattr(exits, "killed_by_oom", lambda _: log)
    with running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        handle = open_handle(process(one.pid))
        one.kill()
        one.wait()
        assert until(handle.exit).words == words
