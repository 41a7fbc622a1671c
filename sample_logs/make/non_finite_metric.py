"""A mean over the valid words of each text, and one text among twelve thousand that has none."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

TEXTS, WORDS, LENGTH, BATCH = 12_000, 50, 12, 16
EMPTY = 6_400


def train(logs: Path) -> None:
    texts = torch.randint(WORDS, (TEXTS, LENGTH)).cumsum(1) % WORDS
    lengths = torch.randint(4, LENGTH, (TEXTS,))
    lengths[EMPTY] = 0  # the mistake: nobody dropped it
    model = nn.Sequential(nn.Embedding(WORDS, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, WORDS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with SummaryWriter(logs) as log:
        for step in range(TEXTS // BATCH):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            words, valid = texts[rows], torch.arange(LENGTH) < lengths[rows, None]
            right = (words + 1) % WORDS
            each = nn.functional.cross_entropy(model(words).transpose(1, 2), right, reduction="none")
            loss = ((each * valid).sum(1) / valid.sum(1)).mean()  # zero by zero for the empty text
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 2 == 0:
                log.add_scalar("train/loss", loss.item(), step)
                log.add_scalar("train/grad_norm", norm.item(), step)
                log.add_scalar("train/learning_rate", 1e-3, step)
