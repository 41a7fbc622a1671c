"""What a machine is short of."""

import os
import resource
from types import SimpleNamespace

import pytest

from sentinel.processes import resources
from sentinel.processes.memory import GroupMemory
from sentinel.processes.resources import shortages
from sentinel.processes.table import process
from tests.processes.running import running

OPENS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = [os.dup(0) for _ in range(60)]
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _idle(monkeypatch, tmp_path):
    """No pressure, whatever else this machine does."""
    monkeypatch.setattr(resources, "_MIN_PRESSURE", 101.0)


def test_a_machine_with_room_says_nothing(tmp_path):
    assert shortages(tmp_path, process(os.getpid())) == ""


def test_a_full_file_system_is_said(tmp_path, monkeypatch):
    full = SimpleNamespace(f_blocks=1000, f_bavail=3, f_frsize=1 << 20)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    text = "the file system of the log is full (3 MiB left); /dev/shm is full (3 MiB left)"
    assert shortages(tmp_path, None) == text


def test_a_control_group_near_its_limit_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(GroupMemory, "limit", lambda _: 64 << 30)
    monkeypatch.setattr(GroupMemory, "used", lambda _: 63 << 30)
    assert shortages(tmp_path, process(os.getpid())) == "its control group uses 98% of 64 GiB"


def test_descriptors_that_are_used_up_are_said(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
    with running(OPENS) as one:
        assert shortages(tmp_path, process(one.pid)) == "it has 63 of 64 descriptors open"


def test_pressure_is_said(tmp_path, monkeypatch):
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "memory").write_text("some avg10=1.00 avg60=35.20 avg300=0.00 total=1\n")
    monkeypatch.setattr(resources, "_MIN_PRESSURE", 20.0)
    monkeypatch.setattr(resources, "PROC", tmp_path)
    assert shortages(tmp_path, None) == "35% of the last minute something waited for memory"
