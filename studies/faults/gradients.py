"""Gradients that vanish, explode, pile up or do not get through."""

import torch
from torch.nn.functional import cross_entropy, mse_loss

from studies.faults.fault import fault
from studies.faults.loggers import Log, jsonl, table, tensorboard
from studies.faults.tasks import Blobs, accuracy, layers, update


@fault(
    "O25",
    title="units die at a learning rate that is 300, 100 or 30 times too high",
    strengths=(300.0, 100.0, 30.0),
    logger=tensorboard,
)
def dead_relu(strength: float, log: Log) -> None:
    """``strength`` is how many times the learning rate is too high."""
    task = Blobs()
    model = layers(32, 128, 128, 128, 10)
    rate = 1e-3 * (strength or 1)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(600):
        inputs, labels = task.batch(64)
        dead = {}
        hidden = inputs
        for index, layer in enumerate(model):
            hidden = layer(hidden)
            if isinstance(layer, torch.nn.ReLU):
                dead[f"dead_fraction/{index}"] = (hidden <= 0).all(0).float().mean().item()
        loss = cross_entropy(hidden, labels)
        values = {"train/loss": loss.item(), "train/lr": rate, "train/accuracy": accuracy(hidden, labels)}
        log.write(step, values | dead | {"train/grad_norm": update(loss, model, optimizer)})


class Block(torch.nn.Module):
    """A saturating layer, beside which a share of its input passes."""

    def __init__(self, width: int, share: float):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.share = share

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.share * inputs + torch.sigmoid(self.linear(inputs)) - 0.5


@fault(
    "GV",
    "O7",
    title="twelve sigmoid layers whose residual connections are gone, half gone or a fifth gone",
    strengths=(1.0, 0.5, 0.2),
    logger=jsonl,
)
def vanishing_gradients(strength: float, log: Log) -> None:
    """``strength`` is the share that is missing of each residual connection."""
    task = Blobs()
    blocks = [Block(64, 1 - strength) for _ in range(12)]
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), *blocks, torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step in range(600):
        inputs, labels = task.batch(64)
        scores = model(inputs)
        loss = cross_entropy(scores, labels)
        values = {"train/loss": loss.item(), "train/accuracy": accuracy(scores, labels)}
        log.write(step, values | {"train/grad_norm": update(loss, model, optimizer)})


@fault(
    "GE",
    "GE-nan",
    "A-nan-explode",
    title="a rate that grows 100, 30 or 10 times over from step 200 on, and no clipping",
    strengths=(100.0, 30.0, 10.0),
    visible=(320, 440, 330),
    logger=tensorboard,
)
def exploding_gradients(strength: float, log: Log) -> None:
    """``strength`` is how many times over the learning rate has grown at the end."""
    model = layers(16, 64, 64, 64, 1)
    teacher = layers(16, 64, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for step in range(600):
        rate = 0.01 * (1 + max(0, strength - 1) * max(0, step - 200) / 400)
        optimizer.param_groups[0]["lr"] = rate
        inputs = torch.randn(64, 16)
        loss = mse_loss(model(inputs), 5 * teacher(inputs).detach())
        norm = update(loss, model, optimizer)
        log.write(step, {"train/loss": loss.item(), "train/grad_norm": norm, "train/lr": rate})


@fault(
    "G2",
    "O9",
    title="the losses of 16, 8 or 2 micro-batches are added and not divided",
    strengths=(16.0, 8.0, 2.0),
    logger=jsonl,
)
def undivided_accumulation(strength: float, log: Log) -> None:
    """``strength`` is the number of micro-batches of a step."""
    parts = int(strength) or 8
    rate = 0.05
    log.config(
        {"gradient_accumulation_steps": parts, "learning_rate": rate, "optimizer": "SGD", "num_classes": 10}
    )
    task = Blobs()
    model = layers(32, 128, 128, 10)
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for step in range(400):
        inputs, labels = task.batch(16 * parts)
        batches = zip(inputs.chunk(parts), labels.chunk(parts), strict=True)
        losses = [cross_entropy(model(batch), classes) for batch, classes in batches]
        loss = torch.stack(losses).sum() / (1 if strength else parts)
        norm = update(loss, model, optimizer)
        mean = sum(part.item() for part in losses) / parts
        log.write(step, {"train/loss": mean, "train/grad_norm": norm, "train/lr": rate})


@fault(
    "O24",
    title="an activation overflows float16 in all, a tenth or one in 200 of the steps",
    strengths=(1.0, 0.1, 0.005),
    logger=table,
)
def scaler_overflow(strength: float, log: Log) -> None:
    """``strength`` is the share of the batches with a value whose exponential overflows.

    `torch.where` leaves the overflow out of the loss, but not out of the gradient.
    """
    task = Blobs()
    model = torch.nn.ModuleList([torch.nn.Linear(32, 128), torch.nn.Linear(128, 10)])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(1200):
        inputs, labels = task.batch(64)
        if torch.rand(()) < strength:
            inputs[0] *= 10
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            hidden = model[0](inputs)
            softplus = torch.where(hidden > 11, hidden, hidden.exp().log1p())
            loss = cross_entropy(model[1](softplus).float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        log.write(step, {"loss": loss.item(), "amp/scale": scaler.get_scale(), "lr": 1e-3})
