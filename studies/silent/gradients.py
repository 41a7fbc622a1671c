"""Errors between the loss and the step."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from studies.silent.error import STEPS, Blobs, Run, descend, layers, norm_of, silent


class Branches(nn.Module):
    """Two branches whose outputs are added. The second may be cut off from the graph."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.one = layers(32, 64, 10)
        self.two = layers(32, 64, 10)
        self.cut = cut

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        second = self.two(inputs)
        return self.one(inputs) + (second.detach() if self.cut else second)


@silent("O3", title="a branch is detached")
def detached_branch(run: Run) -> None:
    task = Blobs()
    model = Branches(cut=run.broken)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model, optimizer, task.batch())


@silent("O4", "G5", title="zero_grad is missing")
def zero_grad_missing(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            descend(run, probe, step, model, optimizer, batch, clears=not run.broken)


@silent("GA", "G2", title="the loss is scaled by the scaler and, by hand, once more")
def scaled_twice(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu", 2.0**10)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            with torch.autocast("cpu", torch.bfloat16):
                scores = model(batch[0])
            loss = cross_entropy(scores.float(), batch[1])
            optimizer.zero_grad()
            scaler.scale(loss * (scaler.get_scale() if run.broken else 1)).backward()
            scaler.unscale_(optimizer)
            run.log(step, loss=loss, grad_norm=norm_of(model), learning_rate=1e-3)
            scaler.step(optimizer)
            scaler.update()
            probe.step(batch=batch, loss=loss, scaler=scaler)


@silent("G4", "GA", title="gradients are clipped before they are unscaled")
def clipped_before_unscaling(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu", 2.0**16)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0]), batch[1])
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if not run.broken:
                scaler.unscale_(optimizer)
            run.log(step, loss=loss, grad_norm=norm_of(model), learning_rate=1e-3)
            scaler.step(optimizer)
            scaler.update()
            probe.step(batch=batch, loss=loss, scaler=scaler)


@silent("O9", "G2", title="the loss is divided twice by four accumulation steps")
def divided_twice(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            optimizer.zero_grad()
            total = 0.0
            for _ in range(4):
                batch = task.batch(32)
                loss = cross_entropy(model(batch[0]), batch[1]) / 4
                total += loss.item()
                (loss / 4 if run.broken else loss).backward()
            run.log(step, loss=total, grad_norm=norm_of(model), learning_rate=1e-3)
            optimizer.step()
            probe.step(batch=batch, loss=total)
