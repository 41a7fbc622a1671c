"""Two ranks that train one model in shards, and log the norm of the gradient: torch's, or that of one shard.

python -m tests.detectors.trainings.ranks sick > tests/detectors/trainings/shards-sick.jsonl
"""

import json
import sys
from tempfile import TemporaryDirectory

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.multiprocessing import spawn

RANKS = 2


def rank(number: int, meeting: str, whole: bool) -> None:
    """One rank. Without ``whole`` it logs the norm of what it holds itself, as code for one device does."""
    distributed.init_process_group("gloo", f"file://{meeting}", rank=number, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    centres = torch.randn(10, 32)
    torch.manual_seed(number + 1)
    for step in range(1, 101):
        labels = torch.randint(10, (32,))
        loss = nn.functional.cross_entropy(model(centres[labels] + torch.randn(32, 32)), labels)
        loss.backward()
        parts = [parameter.grad.to_local() for parameter in model.parameters()]
        own = nn.utils.get_total_norm(parts)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        optimizer.step()
        optimizer.zero_grad()
        if number == 0:
            seen = {"loss": round(loss.item(), 4), "grad_norm": round((norm if whole else own).item(), 4)}
            print(json.dumps({"step": step, **seen}))
    distributed.destroy_process_group()


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        spawn(rank, (f"{directory}/meeting", sys.argv[1] == "healthy"), nprocs=RANKS)
