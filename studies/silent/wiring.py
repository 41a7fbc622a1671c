"""Errors in what the optimizer, the scheduler and the ranks hold."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from studies.silent.error import STEPS, Blobs, Run, descend, layers, norm_of, on_two_ranks, silent


@silent("O2", title="a layer is added after the optimizer was made")
def layer_left_out(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model[2:].parameters() if run.broken else model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model, optimizer, task.batch())


@silent("O17", title="layers are frozen while their last gradient stays, and momentum and decay move them")
def frozen_layers_stepped(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    if not run.broken:
        model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            if step == 50:
                model[0].requires_grad_(False)
            batch = task.batch()
            loss = cross_entropy(model(batch[0]), batch[1])
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            run.log(step, loss=loss, grad_norm=norm_of(model), learning_rate=1e-3)
            optimizer.step()
            probe.step(batch=batch, loss=loss)


@silent("N-two-optimizers", title="the optimizer of the head holds the whole model as well")
def two_optimizers(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    body = torch.optim.AdamW(model[:4].parameters(), 1e-3)
    head = torch.optim.AdamW(model.parameters() if run.broken else model[4].parameters(), 3e-3)
    with run.probe(model, [body, head]) as probe:
        for step in range(STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0]), batch[1])
            model.zero_grad()
            loss.backward()
            run.log(step, loss=loss, grad_norm=norm_of(model), learning_rate=1e-3)
            body.step()
            head.step()
            probe.step(batch=batch, loss=loss)


class Tied(nn.Module):
    """Predicts the next of 50 tokens by the embeddings, which are the head as well."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.mixed = nn.Linear(32, 32)
        self.head = nn.Linear(32, 50, False)
        self.head.weight = self.embed.weight if tied else nn.Parameter(self.embed.weight.detach().clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return linear(torch.tanh(self.mixed(self.embed(tokens))), self.head.weight)


@silent("N-untied-weights", title="the head is a copy of the embeddings")
def tie_lost(run: Run) -> None:
    model = Tied(tied=not run.broken)
    follows = torch.randperm(50)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            tokens = torch.randint(50, (128,))
            loss = cross_entropy(model(tokens), follows[tokens])
            descend(run, probe, step, model, optimizer, tokens, loss)


@silent("N-lost-updates", title="weights in bfloat16 without a copy in 32 bits, at a small rate")
def half_weights(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    kind = torch.bfloat16 if run.broken else torch.float32
    model = model.to(kind)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-5)
    with run.probe(model, optimizer) as probe:
        for step in range(5 * STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0].to(kind)).float(), batch[1])
            descend(run, probe, step, model, optimizer, batch, loss)


@silent("N-group-left-behind", title="a group is added after the scheduler was made, by hand")
def group_forgotten(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    groups = [{"params": model[:4].parameters()}, {"params": model[4].parameters(), "lr": 5e-3}]
    optimizer = torch.optim.AdamW(groups, 1e-3)
    first = [group["lr"] for group in optimizer.param_groups]
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            for group, rate in list(zip(optimizer.param_groups, first, strict=True))[
                : 1 if run.broken else 2
            ]:
                group["lr"] = rate * (1 - step / STEPS)
            batch = task.batch()
            descend(run, probe, step, model, optimizer, batch)


@silent("R4", "O8", title="a resume restores the optimizer and not the scheduler")
def stale_scheduler(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.5, 4 * STEPS)
    for _ in range(STEPS):  # what the checkpoint holds
        optimizer.zero_grad()
        cross_entropy(model(task.batch()[0]), torch.randint(10, (64,))).backward()
        optimizer.step()
        if not run.broken:
            scheduler.step()
    with run.probe(model, optimizer, scheduler=scheduler, first_step=STEPS) as probe:
        for step in range(STEPS, 2 * STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0]), batch[1])
            optimizer.zero_grad()
            loss.backward()
            rate = optimizer.param_groups[0]["lr"]
            run.log(step, loss=loss, grad_norm=norm_of(model), learning_rate=rate)
            optimizer.step()
            scheduler.step()
            probe.step(batch=batch, loss=loss)


@silent("N-ranks-apart", title="the loop calls the module within DDP, so no gradient is averaged")
def ranks_diverge(run: Run) -> None:
    on_two_ranks(run, call_the_module)


def call_the_module(run: Run, rank: int) -> None:
    """One of the two ranks. The broken one averages no gradient."""
    task = Blobs()
    model = nn.parallel.DistributedDataParallel(layers(32, 64, 10))
    torch.manual_seed(10 * run.seed + rank)  # each rank has data of its own
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model.module if run.broken else model, optimizer, task.batch())
