"""Threads that read the same stored type at once, as the sinks do at the first alert."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

AT_ONCE = """
import json, msgspec, sys, threading
from sentinel.sinks.batching import notification
from tests.sinks.samples import NOTIFICATION

sys.setswitchinterval(1e-6)
body, begin = json.dumps(msgspec.to_builtins(NOTIFICATION)), threading.Barrier(8)

def read():
    begin.wait()
    assert notification(body)

threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_meet_a_type_at_once_do_not_crash_the_process():
    process = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
