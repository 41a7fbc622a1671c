"""Losses, optimizers and schedules that are not wired to the model as they should be."""

import copy

import torch
from torch.nn.functional import cross_entropy

from studies.faults.fault import fault
from studies.faults.loggers import Log, jsonl, tensorboard
from studies.faults.tasks import Blobs, accuracy, layers, update

STEPS = 600
RATE = 1e-3


@fault(
    "O2",
    title="the optimizer holds none of the layers, only the last, all but the first",
    strengths=(1.0, 0.75, 0.25),
    logger=tensorboard,
)
def missing_parameters(strength: float, log: Log) -> None:
    """``strength`` is the share of the layers that the optimizer does not hold."""
    task = Blobs()
    model = layers(32, 128, 128, 128, 10)
    linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    held = linear[round(strength * len(linear)) :] or [copy.deepcopy(model)]
    optimizer = torch.optim.AdamW([weight for layer in held for weight in layer.parameters()], RATE)
    for step in range(STEPS):
        inputs, labels = task.batch(64)
        scores = model(inputs)
        loss = cross_entropy(scores, labels)
        values = {"train/loss": loss.item(), "train/accuracy": accuracy(scores, labels)}
        log.write(step, values | {"train/grad_norm": update(loss, model, optimizer), "train/lr": RATE})


@fault(
    "O3",
    title="the losses of all, three or one of four heads are detached",
    strengths=(1.0, 0.75, 0.25),
    logger=jsonl,
)
def detached_loss(strength: float, log: Log) -> None:
    """``strength`` is the share of the heads whose loss is cut off from the graph."""
    log.config({"learning_rate": RATE, "total_steps": STEPS, "optimizer": "AdamW"})
    task = Blobs()
    body = layers(32, 128, 128)
    heads = [torch.nn.Linear(128, 10) for _ in range(4)]
    model = torch.nn.ModuleList([body, *heads])
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    for step in range(STEPS):
        inputs, labels = task.batch(64)
        losses = [cross_entropy(head(body(inputs).relu()), labels) for head in heads]
        cut = round(strength * len(heads))
        # whoever meets the error of backward() that there is no graph is tempted to ask for one
        losses[:cut] = [loss.detach().requires_grad_() for loss in losses[:cut]]
        loss = torch.stack(losses).mean()
        norm = update(loss, model, optimizer)
        log.write(step, {"train/loss": loss.item(), "train/grad_norm": norm, "train/lr": RATE})
