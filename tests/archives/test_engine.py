"""Parts that are judged by processes of this machine."""

import gc
import os
import select
import subprocess
import sys
import threading

import pytest

from sentinel.archives.engine import Local
from sentinel.archives.parts import Part
from tests.patience import PATIENCE
from tests.tools.docs import ROOT

pytestmark = pytest.mark.long


def threshold(_):
    """Work that tells when its process collects."""
    return [str(gc.get_threshold()[0]).encode()]


def test_a_process_collects_seldom():
    [(_, [found])] = Local(1).results(threshold, [Part([], "0", 0)])
    assert int(found) > 100_000


class Waiting:
    """Work that writes the id of its process to a pipe, and never ends."""

    def __init__(self, pipe):
        self.pipe = pipe

    def __call__(self, _):
        with self.pipe.open("a") as told:
            told.write(f"{os.getpid()}\n")
        threading.Event().wait()


def test_no_process_outlives_a_driver_that_was_killed(tmp_path):
    pipe = tmp_path / "pipe"
    main = tmp_path / "main.py"
    os.mkfifo(pipe)
    script = (
        "from pathlib import Path\n"
        "from sentinel.archives.engine import Local\n"
        "from sentinel.archives.parts import Part\n"
        "from tests.archives.test_engine import Waiting\n"
        "if __name__ == '__main__':\n"
        f"    [*Local(2).results(Waiting(Path({str(pipe)!r})), [Part([], '0', 0), Part([], '1', 0)])]\n"
    )
    main.write_text(script)
    kept = os.open(pipe, os.O_RDWR)  # so that the pipe has no end before both have written
    with subprocess.Popen([sys.executable, main], env={**os.environ, "PYTHONPATH": str(ROOT)}) as driver:
        with pipe.open() as told:
            ended = [os.pidfd_open(int(told.readline())) for _ in range(2)]
        driver.kill()
    os.close(kept)
    for one in ended:
        assert select.select([one], [], [], PATIENCE)[0]
        os.close(one)
