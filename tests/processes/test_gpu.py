"""What a real GPU tells of a process that computes or waits; needs a GPU of NVIDIA and PyTorch."""

import re
import subprocess
import sys

import pytest

from sentinel.processes.nvml import gpu_use

torch = pytest.importorskip("torch")
pytest.importorskip("pynvml")

pytestmark = [pytest.mark.long, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

COMPUTES = """
import torch
one = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for step in range(10**9):
    two = one @ one
    if step % 100 == 0:
        torch.cuda.synchronize()
    if step == 2000:
        print("now", flush=True)
"""
WAITS = """
import time, torch
kept = torch.empty(4 << 30, device="cuda", dtype=torch.uint8)
torch.cuda._sleep(10**12)  # one thread of the GPU that turns and turns, as one in a collective does
time.sleep(5)  # until the average of the power has followed
print("now", flush=True)
torch.cuda.synchronize()
"""


def told(source):
    """What is said of the GPU of a process, once it says that it is time to ask."""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout.readline() == b"now\n"
            text = gpu_use({running.pid: "its process"})
        finally:
            running.kill()
    match = re.fullmatch(r"GPU 0 \(its process\): (\d+)% busy, (\d+) of (\d+) W, ([\d.]+) GiB", text)
    assert match, text
    return [float(number) for number in match.groups()]


def test_one_that_waits_is_as_busy_as_one_that_computes_and_takes_less_power():
    busy, watts, most, _ = told(COMPUTES)
    assert busy > 90
    assert watts > most / 2
    busy, waiting, _, memory = told(WAITS)
    assert busy > 90
    assert waiting < watts / 2
    assert 4 <= memory < 6
