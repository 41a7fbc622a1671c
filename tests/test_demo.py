"""`make demo`, in little time."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def test_the_demo_ends_with_a_report(tmp_path, monkeypatch):
    """It runs a real watch and a real replay, so it takes some seconds."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    demo = Path(__file__).parents[1] / "sample_logs" / "demo.py"
    ran = subprocess.run([sys.executable, demo, "2"], capture_output=True, text=True, check=True)
    report = Path(ran.stdout.splitlines()[-1].partition(": ")[2])
    assert report.is_relative_to(tmp_path)
    page = report.read_text()
    assert all(name in page for name in ("kl-blowup", "non-finite-metric", "hanging", "failing"))
    assert "watching" in ran.stderr
