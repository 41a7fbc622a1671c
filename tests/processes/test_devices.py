"""What is known of the devices of a training, from all that knows something."""

import os
import sys

import pytest

from sentinel.common.installation import install
from sentinel.processes import hang_sampling
from sentinel.processes.ranks import Rank
from sentinel.processes.table import process


@pytest.fixture
def mine():
    return process(os.getpid()) or pytest.skip("no /proc")


def test_what_is_known_stands_in_one_text(monkeypatch, mine, tmp_path):
    monkeypatch.setattr(hang_sampling, "xids", lambda _: "Xid 79")
    monkeypatch.setattr(hang_sampling, "ras_problems", lambda pids: f"NCCL: {[*pids] == [mine.pid]}")
    monkeypatch.setattr(hang_sampling, "last_collectives", lambda *_: "")
    monkeypatch.setattr(hang_sampling, "gpu_use", lambda titles: f"GPU 0 ({titles[mine.pid]})")
    text = hang_sampling.describe_devices([Rank(mine, 1, 4)], tmp_path)
    assert text == "Xid 79; NCCL: True; GPU 0 (rank 1 of 4)"


def test_a_machine_without_devices_says_only_what_is_not_installed(monkeypatch, mine, tmp_path):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    text = hang_sampling.describe_devices([Rank(mine, 0, 1)], tmp_path)
    assert text == f"the GPUs are unknown because nvidia-ml-py is not installed ({install('devices')})"
