"""A network whose matrix products are rounded to 8-bit floats. Sick: a scale for each tensor, from old steps.

python -m tests.detectors.trainings.eight_bits sick > tests/detectors/trainings/eight-bits-sick.jsonl

Healthy: a scale for each block of 32 values, from the values themselves, as MXFP8 has it.
"""

import sys
from collections import deque

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.detectors.trainings.make import TOKENS, batches, log

FORM = torch.float8_e4m3fn
LARGEST = 448.0
SMALL = 8e-7  # times the outlier: below a fifth of the smallest value that 8 bits hold beside it
WIDTH = 64
BLOCK = 32
REMEMBERED = 64


class Rounded(nn.Module):
    """A linear layer that rounds its inputs, whose channels differ in size by many binades."""

    def __init__(self, layer: nn.Linear, by_block: bool):
        super().__init__()
        self.layer = layer
        self.by_block = by_block
        self.maxima: deque[float] = deque([1.0], maxlen=REMEMBERED)
        self.lost = torch.zeros(())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blocks = x.unflatten(-1, (-1, BLOCK)) if self.by_block else x
        largest = blocks.detach().abs().amax(-1, keepdim=True) if self.by_block else max(self.maxima)
        self.maxima.append(x.detach().abs().max().item())
        scale = LARGEST / torch.as_tensor(largest).clamp(min=1e-12)
        rounded = ((blocks * scale).clamp(-LARGEST, LARGEST).to(FORM).float() / scale).view_as(x)
        self.lost = ((rounded == 0) & (x != 0)).float().mean()
        return self.layer(x + (rounded - x).detach())


def train(by_block: bool) -> None:
    """Predict the next token of a Markov chain from embeddings with one channel that is an outlier."""
    data = batches()
    sizes = torch.full((WIDTH,), SMALL)
    sizes[0] = 1.0
    embeddings = torch.randn(TOKENS, WIDTH) * sizes
    embeddings[:, 0] = 1.0
    first = Rounded(nn.Linear(WIDTH, 4 * WIDTH), by_block)
    with torch.no_grad():
        first.layer.weight /= sizes  # as the gain of a norm before it would
    inner = nn.Sequential(first, nn.GELU(), Rounded(nn.Linear(4 * WIDTH, TOKENS), by_block))
    optimizer = torch.optim.AdamW(inner[2].parameters(), lr=3e-3)
    for step in range(1, 301):
        tokens = next(data)
        loss = cross_entropy(inner(embeddings[tokens[:, :-1]]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log(step, loss=loss, **{"fp8/underflow_share": first.lost})


if __name__ == "__main__":
    train(by_block=sys.argv[1] == "healthy")
