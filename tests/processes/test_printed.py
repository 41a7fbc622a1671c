"""What a process that failed printed last, into a file far from its log."""

import subprocess
import sys

import pytest

from sentinel.processes.finder import Host
from sentinel.processes.printed import output_files, printed_end
from sentinel.processes.table import process
from sentinel.sources.base import EndKind

pytestmark = pytest.mark.long

FAILS = "print('begun', flush=True); input(); raise RuntimeError('the shapes differ')"
INTERRUPTED = "print('begun', flush=True); input(); print('Detected KeyboardInterrupt, ending'); exit(1)"


def ended(path, code, *, other=False):
    """What is known of a process that printed into a file, as `python train.py > FILE 2>&1` does."""
    with path.open("w") as file:
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=-1, stdout=file, stderr=file) as one:
            while "begun" not in path.read_text():
                pass
            files = output_files(process(one.pid))
            one.communicate(b"\n")
        beside = [sys.executable, "-c", "input()"]
        with subprocess.Popen(beside, stdin=-1, stdout=file if other else -3) as two:
            end = printed_end(files, Host())
            two.communicate(b"\n")
    return end and end[1]


def test_an_error_and_an_interrupt_are_known(tmp_path):
    failed = ended(tmp_path / "train.log", FAILS)
    assert failed.outcome is EndKind.CRASHED
    assert "RuntimeError: the shapes differ" in failed.evidence
    assert ended(tmp_path / "other.log", INTERRUPTED).outcome is EndKind.PREEMPTED


def test_a_training_that_finished_before_its_process_failed_tells_nothing(tmp_path):
    code = "print('begun', flush=True); input(); print('Training finished', flush=True); exit(1)"
    assert ended(tmp_path / "train.log", code) is None


def test_a_file_of_several_processes_tells_nothing(tmp_path):
    assert ended(tmp_path / "train.log", FAILS, other=True) is None


def test_a_file_that_was_replaced_tells_nothing(tmp_path):
    path = tmp_path / "train.log"
    with path.open("w") as file, subprocess.Popen(["sleep", "60"], stdout=file, stderr=file) as one:
        files = output_files(process(one.pid))
        one.kill()
    path.rename(tmp_path / "older.log")
    path.write_text('Traceback (most recent call last):\n  File "a.py", line 1\nValueError: 1\n')
    assert files
    assert printed_end(files, Host()) is None
