"""Activations that are squared and keep growing, in a number format that ends at 65504."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

WIDTH, CLASSES = 64, 16


class Block(nn.Module):
    """The mistake: what the squares add up to is never normalised on its way through the blocks."""

    def __init__(self):
        super().__init__()
        self.normalise = nn.LayerNorm(WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.narrow(torch.relu(self.widen(self.normalise(x))).square())


def network() -> nn.Module:
    blocks = [Block() for _ in range(4)]
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES))


def train(logs: Path) -> None:
    teacher = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, CLASSES))
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2, weight_decay=0)
    scaler = torch.amp.GradScaler("cpu")
    with SummaryWriter(logs) as log:
        for step in range(1000):
            x = torch.randn(64, WIDTH)
            labels = teacher(x).argmax(-1)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(x)
            loss = nn.functional.cross_entropy(logits.float(), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if step % 2 == 0:
                log.add_scalar("train/loss", loss.item(), step)
                log.add_scalar("amp/scale", scaler.get_scale(), step)
