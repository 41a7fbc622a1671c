"""Losses that are computed wrongly."""

import torch
from torch.nn.functional import binary_cross_entropy, cross_entropy

from studies.faults.fault import fault
from studies.faults.loggers import Log, table, wandb
from studies.faults.tasks import Blobs, accuracy, layers, update

STEPS = 600


@fault(
    "O12",
    title="softmax before the cross-entropy, for all, half or a tenth of the samples",
    strengths=(1.0, 0.5, 0.1),
    logger=wandb,
)
def double_softmax(strength: float, log: Log) -> None:
    """``strength`` is the share of the samples, as where one of several paths applies softmax."""
    log.config({"learning_rate": 1e-3, "num_classes": 10, "optimizer": "AdamW", "total_steps": STEPS})
    task = Blobs()
    model = layers(32, 128, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(STEPS):
        inputs, labels = task.batch(64)
        scores = model(inputs)
        share = round(strength * len(inputs))
        loss = cross_entropy(torch.cat([scores[:share].softmax(-1), scores[share:]]), labels)
        values = {"train/loss": loss.item(), "train/accuracy": accuracy(scores, labels)}
        log.write(step, values | {"train/grad_norm": update(loss, model, optimizer)})


@fault(
    "O13",
    title="sigmoid and BCELoss, and all, a twentieth or one in a thousand inputs not normalised",
    strengths=(1.0, 0.05, 0.001),
    logger=wandb,
)
def saturated_bce(strength: float, log: Log) -> None:
    """``strength`` is the share of the inputs that come a hundred times too large."""
    log.config({"learning_rate": 1e-3, "loss": "BCELoss", "optimizer": "AdamW", "total_steps": STEPS})
    task = Blobs(classes=2, noise=4.0)
    model = layers(32, 64, 1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(STEPS):
        inputs, labels = task.batch(128)
        inputs[torch.rand(len(inputs)) < strength] *= 100
        odds = model(inputs).squeeze(-1).sigmoid()
        loss = binary_cross_entropy(odds, labels.float())
        hits = ((odds > 0.5) == labels).float().mean().item()
        norm = update(loss, model, optimizer)
        log.write(step, {"train/loss": loss.item(), "train/accuracy": hits, "train/grad_norm": norm})


@fault(
    "O15",
    "L2",
    title="the mean of the loss counts all, a third or a tenth of the padding",
    strengths=(1.0, 0.3, 0.1),
    logger=table,
)
def padded_loss(strength: float, log: Log) -> None:
    """``strength`` is the share of the padding that the mean divides by. A walk over words is predicted."""
    moves = torch.softmax(2 * torch.randn(64, 64), -1)
    model = torch.nn.Sequential(torch.nn.Embedding(64, 64), layers(64, 128, 64))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    walks = torch.randint(64, (4096, 1))
    while walks.shape[1] < 49:
        walks = torch.cat([walks, torch.multinomial(moves[walks[:, -1]], 1)], 1)
    for step in range(STEPS):
        words = walks[torch.randint(len(walks), (16,))]
        lengths = (48 * torch.rand(16) ** (3 * torch.rand(()))).long() + 1  # batches differ in their padding
        longest = int(lengths.max())
        valid = (torch.arange(longest) < lengths[:, None]).float()
        scores = model(words[:, :longest]).transpose(1, 2)
        each = cross_entropy(scores, words[:, 1 : longest + 1], reduction="none")
        padding = valid.numel() - valid.sum()
        loss = (each * valid).sum() / (valid.sum() + strength * padding)
        values = {"loss": loss.item(), "pad_fraction": padding.item() / valid.numel()}
        log.write(step, values | {"grad_norm": update(loss, model, optimizer), "tokens": valid.sum().item()})
