"""Writes the recordings that lie here: `torchrun --nproc-per-node=4 train.py` with PyTorch.

Rank 2 gathers while the others reduce, and rank 0 already begins another collective.
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist


def backward(*, wait: bool = True) -> None:
    dist.all_reduce(torch.ones(4), async_op=not wait)


def gather() -> None:
    dist.all_gather([torch.zeros(3) for _ in range(4)], torch.zeros(3), async_op=True)


dist.init_process_group("gloo")
rank = dist.get_rank()
backward()
if rank == 2:
    gather()
else:
    backward(wait=False)
if rank == 0:
    backward(wait=False)
recording = torch._C._distributed_c10d._dump_fr_trace(True, True, False)
Path(f"comm_lib_trace_rank_{rank}").write_bytes(recording)
os._exit(0)
