"""A flow model of long smooth curves, tuned at this length. Sick: with the shift that belongs to short ones.

python -m tests.detectors.trainings.flows sick > tests/detectors/trainings/flows-sick.jsonl

Neighbouring values of a long curve average noise away, so its course is settled at nearly pure noise.
"""

import sys
from itertools import pairwise

import torch
from torch import nn

from tests.detectors.trainings.make import log

LENGTH = 256
STEPS = 600
BATCH = 64
SHIFT = 8.0  # the root of 256 values over 4
BINS = (0.8, 0.9, 0.97, 1.0)


def curves(n: int) -> torch.Tensor:
    """Sines of one period with any phase."""
    phase = 2 * torch.pi * torch.rand(n, 1)
    return torch.sin(2 * torch.pi * torch.linspace(0, 1, LENGTH) + phase)


def shifted(times: torch.Tensor, shift: float) -> torch.Tensor:
    """Times that a shift moves towards noise, which is at 1."""
    return shift * times / (1 + (shift - 1) * times)


class Velocity(nn.Module):
    """Tells the velocity from a noisy curve and the time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(LENGTH + 1, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, LENGTH)
        )

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return self.inner(torch.cat([x, time], 1))

    def loss(self, time: torch.Tensor) -> torch.Tensor:
        """The squared error for each of a few curves at these times."""
        clean = curves(len(time))
        noise = torch.randn(len(time), LENGTH)
        return (self((1 - time) * clean + time * noise, time) - (noise - clean)).square().mean(1)


def train(shift: float) -> None:
    """Train with a shift, and log the loss by noise, which the sampler's shift of 8 mostly asks for."""
    torch.manual_seed(0)
    model = Velocity()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        loss = model.loss(shifted(torch.rand(BATCH, 1), shift)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            with torch.no_grad():
                pairs = pairwise(BINS)
                by_time = {
                    f"diffusion/loss_by_timestep/{low}-{high}": model.loss(
                        low + (high - low) * torch.rand(500, 1)
                    ).mean()
                    for low, high in pairs
                }
            log(step, loss=loss, **by_time)


if __name__ == "__main__":
    train(SHIFT if sys.argv[1] == "healthy" else 1.0)
