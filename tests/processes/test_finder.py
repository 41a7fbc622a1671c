"""Which process writes a log."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from sentinel.processes.finder import writers

HOLDS = """
import subprocess, sys
log = open(sys.argv[1], sys.argv[2])
if "worker" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=[log.fileno()])
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(path, mode="a", *words):
    """A process that has a file open, and perhaps a worker that inherited it."""
    command = [sys.executable, "-c", HOLDS, str(path), mode, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"open\n"
        yield running
        running.stdin.close()


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run" / "train.log"
    file.parent.mkdir()
    file.touch()
    return file


def test_the_process_that_has_a_log_open_for_writing_is_found(log):
    assert writers([log]) == {}
    with holding(log) as running, holding(log, "r"):
        assert writers([log, log.parent]) == {log: running.pid, log.parent: running.pid}
    assert writers([log]) == {}


def test_of_a_process_and_its_workers_the_process_counts(log):
    with holding(log, "a", "worker") as running:
        assert writers([log]) == {log: running.pid}


def test_a_shell_that_started_the_process_does_not_count(log):
    code = "import os, sys; print(os.getpid(), file=sys.stderr, flush=True); sys.stdin.read()"
    command = f"exec >> {log}; {sys.executable} -c '{code}'; true"
    with subprocess.Popen(["bash", "-c", command], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as shell:
        pid = int(shell.stderr.readline())
        assert pid != shell.pid
        assert writers([log]) == {log: pid}
        shell.stdin.close()


def test_two_processes_that_write_one_log_are_no_answer(log):
    with holding(log), holding(log):
        assert writers([log]) == {}


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
        assert writers([log]) == {log: training.pid}
        training.stdin.close()


def test_an_event_file_names_its_process(log):
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1) as running:
        stem = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        (log.parent / f"{stem}.{running.pid}.0").touch()
        assert writers([log.parent]) == {log.parent: running.pid}
        (log.parent / f"{stem}.{running.pid}.0").rename(log.parent / f"{stem}-2.{running.pid}.0")
        assert writers([log.parent]) == {}, "another machine"
        old = f"events.out.tfevents.{int(time.time()) - 900}.{socket.gethostname()}.{running.pid}.0"
        (log.parent / old).touch()
        assert writers([log.parent]) == {}, "the number was given again"
        running.stdin.close()
