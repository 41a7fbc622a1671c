"""What the GPUs of some processes do, by NVIDIA's management library; it comes with the extra `devices`.

A GPU that waits in a collective is busy all the time, as one that computes is, so its power tells more: it
takes much less.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_MAX_SAID = 16  # GPUs
_GIB = 1 << 30


def devices_of(processes: Mapping[int, str]) -> str:
    """Return the use of each GPU on which some processes compute, in words; ``processes`` says what each
    number is called. Empty if they use none.
    """
    try:
        import pynvml
    except ImportError:
        return "the GPUs are unknown because nvidia-ml-py is not installed (pip install '.[devices]')"
    try:
        pynvml.nvmlInit()
        try:
            numbers = range(pynvml.nvmlDeviceGetCount())
            said = [words for number in numbers for words in _use(pynvml, number, processes)]
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"the GPUs are unknown: {error}"
    return ", ".join(said[:_MAX_SAID])


def _use(nvml: Any, number: int, processes: Mapping[int, str]) -> Iterator[str]:
    """Yield the use of one GPU, if any of the processes computes on it: "GPU 2 (rank 2 of 4): 100% busy, 118
    of 700 W, 61.2 GiB".
    """
    device = nvml.nvmlDeviceGetHandleByIndex(number)
    all_ = nvml.nvmlDeviceGetComputeRunningProcesses(device)
    own = [process for process in all_ if process.pid in processes]
    if own:
        busy = nvml.nvmlDeviceGetUtilizationRates(device).gpu
        watts = nvml.nvmlDeviceGetPowerUsage(device) / 1000
        most = nvml.nvmlDeviceGetEnforcedPowerLimit(device) / 1000
        memory = sum(process.usedGpuMemory or 0 for process in own) / _GIB
        who = " and ".join(processes[process.pid] for process in own)
        yield f"GPU {number} ({who}): {busy}% busy, {watts:.0f} of {most:.0f} W, {memory:.1f} GiB"
