"""A healthy language model on texts of many lengths, in float16 with a scaler, that logs its probes.

python -m tests.detectors.trainings.probed > tests/detectors/trainings/probed-healthy.jsonl
"""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import sentinel
from tests.detectors.trainings.make import TOKENS, batches, log

JUDGED = "dead_fraction", "update_ratio", "amp/scale", "model/training", "params/missing", "params/unchanged"


def train() -> None:
    """Predict the next token; padding, which is up to half of a batch, is left out of the loss."""
    data = batches()
    model = nn.Sequential(
        nn.Embedding(TOKENS + 1, 64),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, TOKENS),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", 2.0**10)
    numbers: dict[str, torch.Tensor] = {}

    def gather(_: int, more: Mapping[str, float]) -> None:
        numbers.update(
            (name, torch.tensor(float(value))) for name, value in more.items() if name.startswith(JUDGED)
        )

    with sentinel.probe(model, optimizer, to=gather, every=1) as probe:
        for step in range(1, 201):
            tokens = next(data)
            lengths = torch.randint(len(tokens[0]) // 4, len(tokens[0]) + 1, (len(tokens), 1))
            padding = torch.arange(len(tokens[0])) >= lengths
            with torch.autocast("cpu", torch.float16):
                scores = model(tokens.masked_fill(padding, TOKENS)[:, :-1])
            targets = tokens.masked_fill(padding, -100)[:, 1:]
            loss = cross_entropy(scores.float().flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            probe.step(loss=loss, scaler=scaler)
            share = padding[:, 1:].float().mean()
            log(step, loss=loss, pad_fraction=share, **numbers)


if __name__ == "__main__":
    train()
