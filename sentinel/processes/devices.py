"""What is known of the devices and the collectives of a training that stands still; none of it is an alarm.

All of it is off by default: it was proved on one GPU, and with several only against recorded answers.
"""

from collections.abc import Sequence
from pathlib import Path

from sentinel.processes.flight_recorder import recorded
from sentinel.processes.kernel_log import xids
from sentinel.processes.nvml import devices_of
from sentinel.processes.ranks import Rank
from sentinel.processes.ras import asked


def devices(ranks: Sequence[Rank], log: Path) -> str:
    """Return what the kernel's log, NCCL, PyTorch and NVIDIA's library say of some ranks, in words; may be
    empty.
    """
    called = {rank.process.pid: rank.title if rank.world > 1 else "its process" for rank in ranks}
    errors = dict.fromkeys(xids(rank.process) for rank in ranks)
    return "; ".join(filter(None, [*errors, asked(called), recorded(ranks, log), devices_of(called)]))
