"""Where the main thread of a process stands, also of one that is built to mislead its reader."""

import os
import subprocess
import sys

import pytest

from sentinel.processes import stacks
from sentinel.processes.stacks import py_spy, stack_of
from tests.processes.running import running

pytestmark = pytest.mark.skipif(py_spy() is None, reason="py-spy is not installed")

NAMED = r"""
import sys, threading
def wait():
    secret = "canary"
    print("ready", flush=True)
    sys.stdin.read()
evil = "evil\x1b[2J\u202e\nname"
wait.__code__ = wait.__code__.replace(co_name=evil, co_qualname=evil)
wait()
"""
DEEP = """
import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(1 << 16)
for _ in range(3_000): threading.Thread(target=threading.Event().wait, daemon=True).start()
def sink(depth):
    if depth: return sink(depth - 1)
    print("ready", flush=True)
    sys.stdin.read()
sink(100_000)
"""


@pytest.mark.slow
def test_names_are_cleaned_and_no_value_is_read():
    with running(NAMED) as one:
        stack = stack_of(one.pid)
    assert str(stack.frames[0]).startswith("evil name (<string>:")
    assert "canary" not in repr(stack)


@pytest.mark.long
def test_a_process_of_endless_depth_costs_its_limits(monkeypatch):
    run = stacks._program_output
    limits = []
    monkeypatch.setattr(
        stacks, "_program_output", lambda command, seconds: limits.append(seconds) or run(command, seconds)
    )
    with running(DEEP) as one:
        stack = stack_of(one.pid)
    assert one.wait() == 0, "it went on"
    assert len(stack.frames) <= 64
    assert stack.frames or stack.unknown == "it could not be read within 5 s and 1 MiB"
    assert limits[0] <= 5
    assert limits == sorted(limits, reverse=True), "each try has what the others left"


@pytest.mark.slow
def test_what_is_no_python_has_no_stack():
    with subprocess.Popen(["cat"], stdin=-1) as one:
        stack = stack_of(one.pid)
        one.stdin.close()
    assert stack.frames == ()
    assert stack.unknown


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a reader of another user")
def test_what_may_not_be_read_is_said():
    """A reader without privileges asks for the stack of a process of root."""
    code = (
        "import os, sys; os.setgid(65534); os.setuid(65534)\n"
        "from sentinel.processes.stacks import stack_of; print(stack_of(int(sys.argv[1])).unknown)"
    )
    with running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        ran = subprocess.run([sys.executable, "-c", code, str(one.pid)], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip("another user cannot read this checkout")
    assert ran.stdout.strip() in ("the watch may not read its memory", "ptrace_scope is 1")
