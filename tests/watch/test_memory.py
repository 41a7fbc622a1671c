"""What a watch remembers of files goes with the files, and free memory goes back to the system."""

import subprocess
import sys

import pytest

from sentinel.sources.readers.sniffing import remembered
from sentinel.watch.discovery_schedule import DiscoverySchedule
from sentinel.watch.watched import WatchedRuns
from tests.manual_clock import ManualClock


def test_a_removed_file_that_comes_back_causes_a_search_at_once(tmp_path):
    clock = ManualClock(0.0)
    runs = WatchedRuns()
    searches = DiscoverySchedule(clock)
    file = tmp_path / "log.jsonl"
    due = []
    for exists in (True, True, False, True):
        file.touch() if exists else file.unlink()
        due.append(searches.is_due([file], runs))
        searches.note_search(clock.monotonic())
    assert due == [True, False, False, True]


@pytest.mark.slow
def test_whether_a_file_is_a_log_is_remembered_while_it_is_asked_for(tmp_path):
    sniffed = []
    is_log = remembered(lambda path: not sniffed.append(path.name))
    gone, *others = (tmp_path / name for name in "abc")
    for file in (gone, *others):
        file.touch()
    for _ in range(2):
        assert is_log(gone)
    for _ in range(20_000):
        assert all(map(is_log, others))
    assert is_log(gone)
    assert sniffed == ["a", "b", "c", "a"]


FRAGMENTED = """
import ctypes
from pathlib import Path
from sentinel.watch.watcher import trim_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

if hasattr(ctypes.CDLL(None), "malloc_trim"):
    whole = [bytes(3000) for _ in range(40_000)]
    last, before = whole[-1], resident()
    del whole
    trim_memory()
    print(resident() / before)
else:
    trim_memory()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="proc says how much memory is in use")
def test_free_memory_below_what_is_in_use_goes_back_to_the_system():
    share = subprocess.run(
        [sys.executable, "-c", FRAGMENTED], check=True, capture_output=True, text=True
    ).stdout
    assert not share or float(share) < 0.5
