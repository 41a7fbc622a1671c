"""Muon with a learning rate that was tuned for AdamW. Healthy: its update is scaled to the size of AdamW's.

python -m tests.detectors.trainings.muon sick > tests/detectors/trainings/muon-sick.jsonl
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.detectors.trainings.make import TOKENS, batches, log

WIDTH = 64


def train(scale: str) -> None:
    """Predict the next token of a Markov chain by a network with square and wide matrices."""
    data = batches()
    square, wide, narrow = (
        nn.Linear(a, b, bias=False) for a, b in ((WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    )
    layers = [
        nn.Embedding(TOKENS, WIDTH),
        square,
        nn.GELU(),
        wide,
        nn.GELU(),
        narrow,
        nn.Linear(WIDTH, TOKENS),
    ]
    model = nn.Sequential(*layers)
    matrices = {"square": square.weight, "wide": wide.weight, "narrow": narrow.weight}
    others = [p for layer in (layers[0], layers[-1]) for p in layer.parameters()]
    optimizers = [
        torch.optim.Muon(matrices.values(), lr=1e-3, weight_decay=0.1, adjust_lr_fn=scale),
        torch.optim.AdamW(others, lr=1e-3),
    ]
    for step in range(1, 201):
        tokens = next(data)
        loss = cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        before = {name: weight.detach().clone() for name, weight in matrices.items()}
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step % 5 == 0:
            log(
                step,
                loss=loss,
                **{
                    f"update_ratio/{name}": (weight - before[name]).norm() / before[name].norm()
                    for name, weight in matrices.items()
                },
            )


if __name__ == "__main__":
    train("match_rms_adamw" if sys.argv[1] == "healthy" else "original")
