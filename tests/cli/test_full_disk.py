"""A full disk is one line and a status, whatever a command prints or writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "kl-blowup"
FULL = Path("/dev/full")

pytestmark = pytest.mark.long  # processes


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "words",
    [
        ("runs",),
        ("replay",),
        ("replay", "--format", "json"),
        ("replay", "--format", "html"),
        ("runs", "--format", "json"),
    ],
)
def test_what_cannot_be_printed_is_one_line(words):
    command, *options = words
    with FULL.open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "sentinel", command, SAMPLES, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 2
    assert (
        ran.stderr.splitlines()[-1] == "sentinel: what this prints cannot be written: No space left on device"
    )
    assert "Traceback" not in ran.stderr


def test_a_report_that_has_no_room_leaves_nothing_half_written(small_disk):
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize - (1 << 13)))
    command = [sys.executable, "-m", "sentinel", "replay", SAMPLES, "--format", "html"]
    ran = subprocess.run(
        [*command, "--output", small_disk / "report.html"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [file.name for file in small_disk.iterdir()] == ["ballast"]
