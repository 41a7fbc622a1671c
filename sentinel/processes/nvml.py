"""What the GPUs of some processes do, by NVIDIA's management library; it comes with the extra `devices`.

A GPU that waits in a collective is busy all the time, as one that computes is, so its power tells more: it
takes much less.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sentinel.common.installation import install

_MAX_GPUS = 16  # in one text
_GIB = 1 << 30  # bytes


def gpu_use(processes: Mapping[int, str]) -> str:
    """Return the use of each GPU on which some processes compute, in words; empty if they use none.

    ``processes`` has what each process is called, by its number.
    """
    try:
        import pynvml
    except ImportError:
        return f"the GPUs are unknown because nvidia-ml-py is not installed ({install('devices')})"
    try:
        pynvml.nvmlInit()
        try:
            numbers = range(pynvml.nvmlDeviceGetCount())
            gpu_uses = [words for number in numbers for words in _use(pynvml, number, processes)]
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"the GPUs are unknown: {error}"
    return ", ".join(gpu_uses[:_MAX_GPUS])


def _use(nvml: Any, number: int, processes: Mapping[int, str]) -> Iterator[str]:
    """Yield the use of each GPU on which processes compute: "GPU 2 (rank 2 of 4): 100% busy, 61.2 GiB"."""
    device = nvml.nvmlDeviceGetHandleByIndex(number)
    all_ = nvml.nvmlDeviceGetComputeRunningProcesses(device)
    users = [process for process in all_ if process.pid in processes]
    if users:
        busy = nvml.nvmlDeviceGetUtilizationRates(device).gpu
        watts = nvml.nvmlDeviceGetPowerUsage(device) / 1000
        max_watts = nvml.nvmlDeviceGetEnforcedPowerLimit(device) / 1000
        memory = sum(process.usedGpuMemory or 0 for process in users) / _GIB
        who = " and ".join(processes[process.pid] for process in users)
        yield f"GPU {number} ({who}): {busy}% busy, {watts:.0f} of {max_watts:.0f} W, {memory:.1f} GiB"
