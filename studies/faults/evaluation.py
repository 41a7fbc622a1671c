"""Evaluations that do not measure what was trained, and data that comes in the same order each epoch."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from studies.faults.fault import fault
from studies.faults.loggers import Log, jsonl, tensorboard, wandb
from studies.faults.tasks import Blobs, accuracy, evaluated, layers, update


@fault(
    "V1",
    title="the evaluation's labels of all, half or a tenth of the samples are off by one",
    strengths=(1.0, 0.5, 0.1),
    visible=(50, 50, 50),
    logger=tensorboard,
)
def shifted_labels(strength: float, log: Log) -> None:
    """``strength`` is the share of the evaluation's samples that carry the class before theirs."""
    task = Blobs()
    model = layers(32, 128, 10)
    inputs, labels = task.evaluation
    shifted = torch.where(torch.rand(len(labels)) < strength, (labels - 1) % 10, labels)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(1, 1001):
        batch, classes = task.batch(64)
        scores = model(batch)
        loss = cross_entropy(scores, classes)
        values = {"train/loss": loss.item(), "train/accuracy": accuracy(scores, classes)}
        update(loss, model, optimizer)
        log.write(step, values | (evaluated(model, inputs, shifted) if step % 50 == 0 else {}))


@fault(
    "O5",
    title="the evaluation runs in training mode, with a dropout of 70, 40 or 10 %",
    strengths=(0.7, 0.4, 0.1),
    visible=(50, 50, 50),
    logger=wandb,
)
def evaluation_in_train_mode(strength: float, log: Log) -> None:
    """``strength`` is the share that dropout takes."""
    dropout = strength or 0.4
    log.config({"learning_rate": 1e-3, "dropout": dropout, "num_classes": 10})
    task = Blobs(noise=1.5)
    model = nn.Sequential(
        nn.Linear(32, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(dropout), nn.Linear(256, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(1, 1501):
        batch, classes = task.batch(64)
        scores = model(batch)
        loss = cross_entropy(scores, classes)
        values = {"train/loss": loss.item(), "train/accuracy": accuracy(scores, classes)}
        update(loss, model, optimizer)
        if step % 50 == 0:
            model.train(strength > 0)
            values |= evaluated(model, *task.evaluation)
            model.train()
        log.write(step, values)


@fault(
    "DP14",
    title="the sampler is not told the epoch, and samples differ much, somewhat or little in difficulty",
    strengths=(2.0, 1.0, 0.3),
    visible=(51, 51, 51),
    logger=jsonl,
)
def no_set_epoch(strength: float, log: Log) -> None:
    """``strength`` is how much the noise of the samples differs, as the deviation of its logarithm."""
    task = Blobs(noise=0)
    model = layers(32, 128, 10)
    inputs, labels = task.batch(50 * 16)
    inputs += 2 * torch.randn_like(inputs) * torch.exp((strength or 1) * torch.randn(len(inputs), 1))
    data = TensorDataset(inputs, labels)
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    for epoch in range(12):
        if not strength:
            sampler.set_epoch(epoch)
        for index, (batch, classes) in enumerate(DataLoader(data, 16, sampler=sampler)):
            loss = cross_entropy(model(batch), classes)
            values = {"train/loss": loss.item(), "epoch": epoch}
            update(loss, model, optimizer)
            log.write(50 * epoch + index + 1, values)
