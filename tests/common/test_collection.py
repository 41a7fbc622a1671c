"""How a process ends whose objects nobody destroys."""

import subprocess
import sys

import pytest

PROGRAM = """if True:
    import atexit, sys
    from sentinel.common.collection import QuickEnd
    class Kept:
        def __del__(self):
            print("destroyed")
    kept = Kept()
    end = QuickEnd()
    atexit.register(print, "done at the end")
    print("said")
"""


def ended(rest: str) -> tuple[int, list[str]]:
    """Return the status of a process, and what it printed."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM + rest], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.split("\n")[:-1]


@pytest.mark.long  # real processes
def test_a_process_with_a_status_ends_when_all_is_done_that_is_to_be_done():
    assert ended("    end.status = 3") == (3, ["said", "done at the end"])


@pytest.mark.long  # real processes
def test_a_process_that_raises_ends_as_ever():
    assert ended("    raise KeyError") == (1, ["said", "done at the end", "destroyed"])
