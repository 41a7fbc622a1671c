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
