"""A process that got the number of a training which ended, or that has it in another namespace, is none."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from sentinel.detectors.run_checks import Writer
from sentinel.processes import activity, hang_sampling
from sentinel.processes.activity import Activity
from sentinel.processes.description import describe, describe_writer
from sentinel.processes.finder import HOLDS_LOG, Host, LogWriter
from sentinel.processes.hang_sampling import HangSampling
from sentinel.processes.ranks import Rank, Roster
from sentinel.processes.table import cpu_seconds, is_in_container, process, processes
from tests.processes.running import LAST_PID, holding, running, running_as, until
from tests.processes.test_activity import STARTS, WORKS
from tests.processes.test_pid_files import wandb_names
from tests.processes.test_ranks import WAITS, ranks, torchrun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason="may not choose the number of a process"),
]

IDLES = "import sys; print('ready', flush=True); sys.stdin.read()"
IN_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run" / "metrics.jsonl"
    file.parent.mkdir()
    file.touch()
    return file


def ended(log=None):
    """The number of a process that has ended, and what was known of it."""
    with holding(log) if log else running(IDLES) as one:
        return one.pid, process(one.pid)


def names(log, kind, pid, age=0.0):
    """Have a file beside a log name a process, as of some seconds ago."""
    at = time.time() - age
    if kind == "pid file":
        file = log.parent / "train.pid"
        file.write_text(f"{pid}\n")
        os.utime(file, (at, at))
    elif kind == "event file":
        (log.parent / f"events.out.tfevents.{int(at)}.{socket.gethostname()}.{pid}.0").touch()
    else:
        wandb_names(log.parent, pid, socket.gethostname())
        debug = log.parent / "logs" / "debug.log"
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
        debug.write_text(stamp + debug.read_text()[len(stamp) :])


@contextmanager
def running_below(code):
    """A process in a namespace of processes below this one's: its number here."""
    with subprocess.Popen(
        [*IN_CONTAINER, sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout.readline() == b"ready\n"
        yield next(each.pid for each in processes().values() if each.parent == one.pid)
        one.stdin.close()


KINDS = ("pid file", "event file", "wandb")


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_the_number_that_a_file_names_is_not_the_training(log, kind):
    """The number was given again: the process began long after the file was written."""
    number, _ = ended()
    names(log, kind, number, age=1800.0)
    with running_as(number, IDLES):
        assert describe_writer(log.parent, Host()).lives is not True


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_a_container_means_no_process_of_the_machine(log, kind, monkeypatch):
    with running(IDLES) as one:
        names(log, kind, one.pid)
        assert describe_writer(log.parent, Host()).lives
        monkeypatch.setattr("sentinel.processes.finder.is_in_container", lambda _: True)
        assert describe_writer(log.parent, Host()).lives is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_a_thread_of_the_kernel_means_no_training(log, kind):
    """As a container numbers its processes from 1 on, where the machine has its own threads."""
    kernel = next((one for one in processes().values() if one.parent == 2), None)
    if kernel is None:
        pytest.skip("no thread of the kernel is to be seen here")
    names(log, kind, kernel.pid)
    later = time.time() + 3600
    os.utime(log, (later, later))
    assert describe_writer(log.parent, Host()).lives is not True


def test_a_process_in_a_container_is_recognised():
    with running(IDLES) as one:
        assert not is_in_container(one.pid)
    with running_below(IDLES) as inner:
        assert is_in_container(inner)


def test_a_writer_whose_number_was_given_again_is_not_described(log):
    number, before = ended(log)
    with running_as(number, IDLES):
        assert describe(LogWriter(before, HOLDS_LOG)) == Writer()


def test_a_process_with_the_number_of_a_rank_has_other_ranks():
    """It is of another launch: its ranks are not those of the training that had the number."""
    with ranks(torchrun(2, 5011)) as mine:
        before = process(mine[1].pid)
    with ranks(torchrun(2, 5012)[:1]) as others:
        (env,) = [{**os.environ, **one} for one in torchrun(2, 5012)[1:]]
        with running_as(before.pid, WAITS, env=env):
            roster = Roster(processes())
            assert roster.ranks_of(before) == []
            assert len(roster.ranks_of(process(others[0].pid))) == 2


def test_what_has_the_number_of_a_worker_does_not_work_for_its_training():
    with running(STARTS, WORKS, "waits") as one:
        (child,) = [each.pid for each in processes().values() if each.parent == one.pid]
        does = Activity(process(one.pid), awake=0.0)
        assert child in {member.pid for member in activity._family(process(one.pid))}
        os.kill(child, signal.SIGKILL)
        os.waitid(os.P_PID, one.pid, os.WEXITED)
        with running_as(child, WORKS, "computes") as other:
            other.stdin.write(b"\n")
            other.stdin.flush()
            until(lambda: cpu_seconds(other.pid) > 1.0)
            assert does.words(awake=10.0) == "in the last 10 s it did nothing"
            other.kill()


def test_what_has_the_number_of_a_rank_is_not_sampled_for_it(monkeypatch):
    monkeypatch.setattr(hang_sampling, "_SAMPLE_PAUSE_SECONDS", 0.01)
    number, before = ended()
    with running_as(number, IDLES):
        sampling = HangSampling([Rank(before, 0, 2)], "", others=False, ring=lambda: None)
        (sample,) = sampling._sample_ranks()
        assert sample.sample.state == "X"
        assert sample.sample.stack.unknown == "it has ended"
