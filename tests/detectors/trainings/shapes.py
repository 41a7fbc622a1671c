"""A compiled model whose inputs change their length: each new one compiles it again, until torch gives up.

python -m tests.detectors.trainings.shapes sick > tests/detectors/trainings/shapes-sick.log 2>&1
"""

import sys
import time

import torch
from torch import nn


def train(healthy: bool) -> None:
    """Train on sequences of forty lengths. Healthy: they are padded to the longest."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    @torch.compile(dynamic=False)
    def error(rows: torch.Tensor) -> torch.Tensor:
        return ((model(rows) - rows.flip(-1)) ** 2).sum() / rows.numel()

    for step in range(1, 121):
        begun = time.perf_counter()
        rows = torch.randn(8, 64 if healthy else 24 + step % 40, 16)
        loss = error(rows)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f} step_time {time.perf_counter() - begun:.4f}", flush=True)


if __name__ == "__main__":
    train(sys.argv[1] == "healthy")
