"""Processes for tests, which run until they are told to end."""

import subprocess
import sys
import time
from contextlib import contextmanager

HOLDS = """
import subprocess, sys
log = open(sys.argv[1], sys.argv[2])
if "worker" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=[log.fileno()])
print("ready", flush=True)
sys.stdin.read()
"""
DEADLINE_SECONDS = 60.0


@contextmanager
def running(code, *words, **options):
    """A Python process that has printed a line; its standard input is closed at the end."""
    command = [sys.executable, "-c", code, *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options) as one:
        assert one.stdout.readline() == b"ready\n"
        try:
            yield one
        finally:
            one.stdin.close()


def holding(path, mode="a", *words):
    """A process that has a file open, and perhaps a worker that inherited it."""
    return running(HOLDS, path, mode, *words)


def until(condition):
    """What a function gives once it gives something."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


LAST_PID = "/proc/sys/kernel/ns_last_pid"
MAX_TRIES = 200  # of a number that others take meanwhile


@contextmanager
def running_as(number, code, *words, **options):
    """As ``running``, with a process that has a number which another one had; needs to write ``LAST_PID``."""
    command = [sys.executable, "-c", code, *map(str, words)]
    for _ in range(MAX_TRIES):
        with open(LAST_PID, "w") as last:
            last.write(str(number - 1))
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0, **options
        ) as one:
            if one.pid != number:
                one.kill()
                continue
            assert one.stdout.readline() == b"ready\n"
            try:
                yield one
            finally:
                one.stdin.close()
            return
    raise AssertionError(f"others have the number {number}")
