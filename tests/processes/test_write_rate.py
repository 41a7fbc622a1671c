"""Who writes a log that nobody keeps open."""

import subprocess
import sys

import pytest

from sentinel.processes.description import describe
from sentinel.processes.finder import Host
from sentinel.processes.write_rate import PROBABLY_WRITES, WRITES_AS_MUCH, WriteRate
from tests.processes.running import running, until

pytestmark = pytest.mark.slow

APPENDS = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "a") as log: log.write("x" * 99)
    print("done", flush=True)
"""
WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run" / "train.log"
    file.parent.mkdir()
    file.touch()
    return file


def grow(one):
    one.stdin.write(b"\n")
    one.stdin.flush()
    assert one.stdout.readline() == b"done\n"


def found(growth, writers, times=4):
    """What is found while some processes write in turn."""
    looks = []
    for number in range(times):
        grow(writers[number % len(writers)])
        looks.append(growth.refresh())
    return looks[-1]


@pytest.mark.parametrize("by", ["argument", "directory", "environment"])
def test_a_process_that_opens_its_log_for_each_line_is_found(log, by):
    """Beside others of the same directory that write nothing, or read the log."""
    code = f"import sys; sys.argv[1:] = [{str(log)!r}]\n{APPENDS}" if by != "argument" else APPENDS
    words = [log] if by == "argument" else []
    options = {"argument": {}, "directory": {"cwd": log.parent}, "environment": {"env": {"OUTPUT": str(log)}}}
    with (
        running(WAITS, log),
        running(code, *words, **options[by]) as one,
        subprocess.Popen(["tail", "-f", log], stdout=subprocess.DEVNULL) as tail,
    ):
        until(lambda: Host().open(tail.pid).reads)
        growth = WriteRate(log, Host())
        writer = found(growth, [one])
        tail.terminate()
        assert (writer.process.pid, writer.by) == (one.pid, WRITES_AS_MUCH)
        assert describe(writer).lives


def test_of_two_that_write_by_turns_none_is_found(log):
    with running(APPENDS, log) as one, running(APPENDS, log) as other:
        assert found(WriteRate(log, Host()), [one, other], 8) is None


def test_before_a_log_grew_the_only_one_that_may_write_it_is_a_guess_that_is_called_so(log):
    with running(WAITS, log) as one:
        probable = WriteRate(log, Host()).probable()
        assert (probable.process.pid, probable.by) == (one.pid, PROBABLY_WRITES)
        assert describe(probable).lives is None, "no alarm may rest on it"
        with running(WAITS, log):
            assert WriteRate(log, Host()).probable() is None


def test_a_program_that_shows_the_log_is_no_candidate(log, tmp_path):
    script = tmp_path / "tensorboard"
    script.write_text(WAITS)
    with subprocess.Popen([sys.executable, script, f"--logdir={log.parent}"], stdin=-1, stdout=-1) as one:
        assert one.stdout.readline() == b"ready\n"
        assert WriteRate(log, Host()).probable() is None
        one.stdin.close()


def test_once_no_process_is_left_that_may_write_the_log_the_search_is_over(log):
    with running(WAITS, log):
        growth = WriteRate(log, Host())
        assert not growth.over
        log.write_text("by somebody else")
        assert growth.refresh() is None
        assert growth.over
