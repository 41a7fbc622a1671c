"""Ranks of a distributed training on this machine, which meet at a free port."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as together

HOST = "127.0.0.1"
TIMEOUT = timedelta(seconds=60)


def on_ranks(count: int, work: Callable[..., None], *given: Any) -> None:
    """Call ``work(rank, *given)`` in each of some processes, which form torch's default group."""
    store = together.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    torch.multiprocessing.spawn(_rank, (count, store.port, work, given), nprocs=count)


def _rank(rank: int, count: int, port: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": HOST, "MASTER_PORT": str(port)}
    torch.set_num_threads(1)  # the ranks share the cores
    store = together.TCPStore(HOST, port)
    together.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=TIMEOUT)
    work(rank, *given)
    together.destroy_process_group()
