"""A classifier that is evaluated by the running average of its weights, which may reach far beyond its run.

python -m tests.detectors.trainings.averages sick > tests/detectors/trainings/averages-sick.jsonl
"""

import json
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 1_000


def train(decay: float) -> None:
    """Log the loss of training at each tenth step, and that of the average at each fiftieth."""
    print(json.dumps({"config": {"use_ema": True, "ema_decay": decay, "max_steps": STEPS}}))
    torch.manual_seed(0)
    centres = torch.randn(10, 32)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 10))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    held_out = torch.randint(10, (512,))
    inputs = centres[held_out] + torch.randn(512, 32)
    for step in range(1, STEPS + 1):
        labels = torch.randint(10, (64,))
        loss = cross_entropy(model(centres[labels] + torch.randn(64, 32)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        row = {"step": step, "train/loss": round(loss.item(), 4)}
        if step % 50 == 0:
            with torch.no_grad():
                row["eval/loss"] = round(cross_entropy(average(inputs), held_out).item(), 4)
        if step % 10 == 0:
            print(json.dumps(row))


if __name__ == "__main__":
    train(0.99 if sys.argv[1] == "healthy" else 0.9999)
