"""LoRA of rank 64 on a frozen model. Sick: with the alpha of a recipe for rank 4. Healthy: rank-stabilised.

python -m tests.detectors.trainings.adapters sick > tests/detectors/trainings/adapters-sick.jsonl
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.detectors.trainings.make import log

RANK = 64
ALPHA = 4.0
WIDTH = 128
CLASSES = 10


class Adapted(nn.Module):
    """A frozen linear layer and its adapter, whose product is scaled."""

    def __init__(self, layer: nn.Linear, scale: float):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.scale = scale
        self.down = nn.Parameter(torch.randn(RANK, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.scale * (x @ self.down.T @ self.up.T)

    def share(self) -> torch.Tensor:
        """The norm of the scaled product over that of the weight below it."""
        return (self.scale * (self.up @ self.down)).norm() / self.layer.weight.norm()


def train(scale: float) -> None:
    """Fine-tune a model that knows other classes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
    head = nn.Linear(WIDTH, CLASSES).requires_grad_(False)
    adapted = [Adapted(layer, scale) for layer in model if isinstance(layer, nn.Linear)]
    whole = nn.Sequential(adapted[0], nn.ReLU(), adapted[1], nn.ReLU(), head)
    centres = torch.randn(CLASSES, 32)
    optimizer = torch.optim.AdamW([p for p in whole.parameters() if p.requires_grad], lr=2e-4)
    for step in range(1, 301):
        labels = torch.randint(CLASSES, (64,))
        loss = cross_entropy(whole(centres[labels] + torch.randn(64, 32)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log(step, loss=loss, **{"lora/scaled_norm": torch.stack([a.share() for a in adapted]).mean()})


if __name__ == "__main__":
    train(ALPHA / (RANK**0.5 if sys.argv[1] == "healthy" else RANK))
