"""Which process writes a log."""

import os
import socket
import subprocess
import sys
import time

import pytest

from sentinel.processes import finder
from sentinel.processes.finder import HOLDS_LOG, NAMED_BY_EVENT_FILE, NAMED_BY_HELPER, WRITES_TO_PIPE, Host
from sentinel.processes.table import processes
from tests.processes.running import HOLDS as RUNS
from tests.processes.running import holding, running

pytestmark = pytest.mark.slow


def writer(log):
    """The process that writes a log, and how it was found; None if none is."""
    match = Host().writer(log)
    return match and (match.process.pid, match.by)


def renamed(name):
    """Code that gives a process another name, as a program of that name has."""
    return f"open('/proc/self/comm', 'w').write({name!r})\n"


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run" / "train.log"
    file.parent.mkdir()
    file.touch()
    return file


def test_the_process_that_has_a_log_open_for_writing_is_found(log):
    assert writer(log) is None
    with holding(log) as one, holding(log, "r"):
        assert writer(log) == writer(log.parent) == (one.pid, HOLDS_LOG)
    assert writer(log) is None


def test_of_a_process_and_its_workers_the_process_counts(log):
    with holding(log, "a", "worker") as one:
        assert writer(log) == (one.pid, HOLDS_LOG)


def test_a_shell_that_started_the_process_does_not_count(log):
    code = "import os, sys; print(os.getpid(), file=sys.stderr, flush=True); sys.stdin.read()"
    command = f"exec >> {log}; {sys.executable} -c '{code}'; true"
    with subprocess.Popen(["bash", "-c", command], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as shell:
        pid = int(shell.stderr.readline())
        assert pid != shell.pid
        assert writer(log) == (pid, HOLDS_LOG)
        shell.stdin.close()


def test_among_young_processes_only_new_ones_and_those_above_them_are_asked(log, monkeypatch):
    def mine():
        """The processes of this test, because others begin meanwhile."""
        return {pid: one for pid, one in processes().items() if one.parent in (os.getpid(), *started)}

    started = []
    monkeypatch.setattr(finder, "processes", mine)
    monkeypatch.setattr(finder, "_YOUNG_SECONDS", 0.0)
    with holding(log) as old:
        assert Host().young.writer(log).process.pid == old.pid
        with holding(log.with_name("other.log")):
            host = Host()
            assert (host.young.writer(log), host.writer(log).process.pid) == (None, old.pid)
    with holding(log, "a", "worker") as one:
        started.append(one.pid)
        assert Host().young.writer(log).process.pid == one.pid


def test_two_processes_that_write_one_log_are_no_answer(log):
    with holding(log), holding(log):
        assert writer(log) is None


def test_behind_tee_stands_the_process_that_prints(log):
    code = "import sys; print('begun', flush=True); sys.stdin.read()"
    with (
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as training,
        subprocess.Popen(["tee", str(log)], stdin=training.stdout, stdout=subprocess.PIPE) as tee,
    ):
        assert tee.stdout.readline() == b"begun\n"
        training.stdout.close()
        assert writer(log) == (training.pid, WRITES_TO_PIPE)
        training.stdin.close()


def test_an_event_file_names_its_process(log):
    with running("import sys; print('ready', flush=True); sys.stdin.read()") as one:
        stem = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        (log.parent / f"{stem}.{one.pid}.0").touch()
        assert writer(log.parent) == (one.pid, NAMED_BY_EVENT_FILE)
        (log.parent / f"{stem}.{one.pid}.0").rename(log.parent / f"{stem}-2.{one.pid}.0")
        assert writer(log.parent) is None, "another machine"
        old = f"events.out.tfevents.{int(time.time()) - 900}.{socket.gethostname()}.{one.pid}.0"
        (log.parent / old).touch()
        assert writer(log.parent) is None, "the number was given again"


@pytest.mark.parametrize("name", ["slurmstepd", "containerd-shim"])
def test_behind_a_service_that_copies_what_a_job_prints_stands_the_job(log, tmp_path, name):
    service = """
import subprocess, sys
job = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdin=0, stdout=-1)
log = open(sys.argv[1], "ab", buffering=0)
log.write(job.stdout.readline())
print("ready", flush=True)
job.wait()
"""
    job = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    bystander = "print('ready', flush=True); import sys; sys.stdin.read()"
    with (
        open(tmp_path / "errors", "w+") as errors,  # both print their errors there, and could read them
        running(bystander, stderr=errors),
        running(renamed(name) + service, log, job, stderr=errors) as one,
    ):
        pid = int(log.read_text())
        assert pid != one.pid
        assert writer(log) == (pid, WRITES_TO_PIPE)


@pytest.mark.parametrize("helper", [True, False])
def test_the_helper_of_wandb_names_its_training(log, helper):
    """By its arguments as `wandb-core` has them, else by its parent."""
    training = """
import os, subprocess, sys
words = ["--pid", str(os.getpid())] if len(sys.argv) > 3 else []
helper = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1], "a", *words], stdin=0)
sys.stdin.read()
"""
    with running(training, log, renamed("wandb-core") + RUNS, *["named"] * helper) as one:
        assert writer(log) == (one.pid, NAMED_BY_HELPER)


def test_a_program_that_brings_a_log_from_elsewhere_does_not_write_it(log):
    with running(renamed("rsync") + RUNS, log, "a"):
        assert writer(log) is None


def test_a_file_that_got_the_number_of_a_removed_one_is_another(log):
    with holding(log):
        host = Host()
        assert host.writer(log) is not None
    log.unlink()
    log.touch()
    assert host.writer(log) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")
def test_a_process_of_another_user_does_not_count(log):
    os.chown(log, 65534, 65534)
    with holding(log):
        assert writer(log) is None
