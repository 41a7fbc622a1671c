"""Work that is spread over copies of a process. Each test is a process of its own, which may be copied."""

import json
import subprocess
import sys

import pytest

from sentinel.replays import workers

PROGRAM = """
import json, os, threading
from sentinel.replays.workers import in_copies
parent = os.getpid()
{before}
print(json.dumps(in_copies(work, range(1000))), parent)
"""

pytestmark = pytest.mark.skipif(not workers._THREADS.exists(), reason="this system does not tell of threads")


@pytest.fixture
def results():
    """What came of some work, as each number and by whom; and who the first process was."""

    def run(before):
        command = [sys.executable, "-c", PROGRAM.format(before=before)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        results, parent = ran.stdout.rsplit(maxsplit=1)
        numbers, by = zip(*json.loads(results), strict=True)
        assert list(numbers) == list(range(1000))
        return {pid != int(parent) for pid in by}

    return run


CORES = "os.sched_getaffinity = lambda _: range(3)\n"
WORK = CORES + "work = lambda n: (n, os.getpid())"


@pytest.mark.slow
def test_copies_do_it_all(results):
    assert results(WORK) == {True}


@pytest.mark.slow
def test_a_process_with_threads_is_not_copied(results):
    assert results(WORK + "\nthreading.Thread(target=threading.Event().wait, daemon=True).start()") == {False}


@pytest.mark.slow
def test_what_a_copy_left_undone_is_done_here(results):
    die_at = "def work(n): return (n, os.getpid()) if n != 77 or os.getpid() == parent else os._exit(1)"
    assert False in results(CORES + die_at)


@pytest.mark.slow
def test_where_there_can_be_no_copies_all_is_done_here(results):
    assert results(WORK + "\ndef refused(): raise BlockingIOError(11, 'no more')\nos.fork = refused") == {
        False
    }


@pytest.mark.slow
def test_trouble_is_raised_here():
    program = PROGRAM.format(before=CORES + "def work(n): return 1 / (n - 77)")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert ran.stderr.count("Traceback") == 1
