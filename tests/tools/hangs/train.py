"""One rank of a training with gloo that hangs after some steps, or never does with the fault `none`.

`torchrun ... train.py FAULT DIRECTORY STEP CANARY`. Only PyTorch is needed.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from typing import TextIO

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

GUILTY = 2  # the rank that hangs
FAULT = sys.argv[1]
DIRECTORY = sys.argv[2]
AT = int(sys.argv[3])


class Data(Dataset):
    """Samples, of which the workers of one rank get none from some step on."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        if FAULT == "loader" and rank() == GUILTY and number > 8 * AT:
            time.sleep(3600)
        return torch.randn(16)


def rank() -> int:
    return int(os.environ["RANK"])


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def spin() -> None:
    while True:
        pass


def take_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def read_shard() -> None:
    with open(f"{DIRECTORY}/shard") as file:  # a FIFO that nobody writes
        file.read()


def gather() -> None:
    dist.all_gather([torch.zeros(3) for _ in range(dist.get_world_size())], torch.zeros(3))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_device() -> None:
    """Wait in the kernel as for a disk that does not answer: for a child of vfork."""
    libc = ctypes.PyDLL(None)
    if libc.vfork() == 0:
        libc.prctl(1, signal.SIGKILL)
        libc.pause()


FAULTS = {
    "stop": stop,
    "spin": spin,
    "lock": take_lock,
    "fifo": read_shard,
    "collective": gather,
    "kill": kill,
    "device": wait_for_device,
}


def backward(model: torch.nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def learn(log: TextIO) -> None:
    """Log each step."""
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, batch in enumerate(DataLoader(Data(), batch_size=8, num_workers=2), 1):
        if step == AT and FAULT in FAULTS and (FAULT == "fifo" or rank() == GUILTY):
            FAULTS[FAULT]()
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        backward(model, loss)
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item(), "total_steps": 1 << 17}), file=log)
        time.sleep(0.1)


def main() -> None:
    secret = f"{sys.argv[4]}-local"  # noqa: F841  no output may show it
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    name = f"{DIRECTORY}/{FAULT}.jsonl" if rank() == 0 else os.devnull
    with open(name, "a", buffering=1) as log:
        learn(log)


main()
