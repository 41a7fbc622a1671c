"""What NVIDIA's library says of the GPUs, by answers in the form of nvidia-ml-py."""

import sys
from types import SimpleNamespace

import pytest

from sentinel.common.installation import install
from sentinel.processes.nvml import gpu_use

GIB = 1 << 30
CALLED = {11: "rank 0 of 2", 12: "rank 1 of 2"}


class NVMLError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch):
    """Two GPUs; the first also serves a process of somebody else, and computes."""

    def fails():
        raise NVMLError("GPU is lost")

    uses = [
        [SimpleNamespace(pid=11, usedGpuMemory=61 * GIB), SimpleNamespace(pid=99, usedGpuMemory=GIB)],
        [SimpleNamespace(pid=12, usedGpuMemory=None)],
    ]
    library = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetComputeRunningProcesses=uses.__getitem__,
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=100, memory=3),
        nvmlDeviceGetPowerUsage=[652_400, 118_000].__getitem__,  # mW
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 700_000,
        fails=fails,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_it_says_what_the_gpus_of_the_ranks_do(nvml):
    assert gpu_use(CALLED) == (
        "GPU 0 (rank 0 of 2): 100% busy, 652 of 700 W, 61.0 GiB, "
        "GPU 1 (rank 1 of 2): 100% busy, 118 of 700 W, 0.0 GiB"
    )


def test_gpus_of_others_are_not_told_of(nvml):
    assert gpu_use({77: "its process"}) == ""


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_a_library_that_fails_says_why(nvml, call):
    setattr(nvml, call, nvml.fails)
    assert gpu_use(CALLED) == "the GPUs are unknown: GPU is lost"


def test_the_real_library_finds_no_gpu_of_ours():
    pytest.importorskip("pynvml")
    assert gpu_use({1: "its process"}) in ("", "the GPUs are unknown: NVML Shared Library Not Found")


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_use(CALLED).endswith(f"({install('devices')})")
