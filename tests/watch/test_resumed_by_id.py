"""A training that W&B resumes under its id in another directory goes on, under a real watch."""

import subprocess
import sys

import pytest

from sentinel.storage.store import Store
from tests.processes.running import until
from tests.processes.test_exits import needs_kernel
from tests.watch.test_watcher import House

pytestmark = pytest.mark.long

JOB = """
import os, sys, wandb
directory, first = sys.argv[1], int(sys.argv[2])
os.makedirs(directory)
settings = wandb.Settings(console="off", silent=True)
run = wandb.init(mode="offline", dir=directory, id="abcd1234", resume="allow", settings=settings)
for step in range(first, first + 40):
    run.log({"loss": 2 / (step + 1)}, step=step)
print("logged", flush=True)
sys.stdin.readline()
"""


@needs_kernel
def test_the_crash_of_the_first_job_is_over_once_the_second_goes_on(tmp_path, request):
    request.getfixturevalue("monkeypatch").undo()  # processes are seen here
    house = House(tmp_path)
    watcher = house.watch()
    told = []

    def is_told(count):
        """Look once more, and say whether there are so many notifications, of which an earlier look may have
        made some.
        """
        told.extend(house.look(watcher, hours=0.003, detector="run-crashed"))
        return len(told) >= count

    for job in (1, 2):
        command = [sys.executable, "-c", JOB, house.runs / f"job{job}", str(40 * job)]
        with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL) as process:
            assert b"logged" in process.stdout.readline()
            for _ in range(5):
                is_told(0)
            if job == 1:
                process.kill()
                assert until(lambda: is_told(1))
                assert told == ["firing: first-notification"]
            else:
                process.stdin.close()  # which writes what W&B still had in memory
                assert until(lambda: is_told(2))
    assert told[1:] == ["resolved: resolved"]
    with Store(house.state) as store:
        assert not store.incidents(open_only=True)
