"""The optimizer is given the weights of a model that is then replaced by a copy."""

import copy
from pathlib import Path

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter


def train(logs: Path) -> None:
    centres = 2 * torch.randn(10, 32)
    hidden = [layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), *hidden, nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1500)
    model = copy.deepcopy(model)  # the mistake: the optimizer still holds the first one
    with SummaryWriter(logs) as log:
        for step in range(1500):
            labels = torch.randint(10, (64,))
            loss = nn.functional.cross_entropy(model(centres[labels] + torch.randn(64, 32)), labels)
            model.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 5 == 0:
                log.add_scalar("train/loss", loss.item(), step)
                log.add_scalar("train/grad_norm", norm.item(), step)
                log.add_scalar("train/learning_rate", schedule.get_last_lr()[0], step)
