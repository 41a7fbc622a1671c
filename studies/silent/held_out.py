"""Errors that nothing was tuned on: other models and other magnitudes of the same classes."""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from studies.silent.error import STEPS, Run, descend, evaluate, norm_of, on_two_ranks, silent

OFTEN = 25


class Sentences:
    """Sequences of 30 tokens, each of which mostly follows from the one before."""

    def __init__(self) -> None:
        self.follows = torch.randperm(40)
        self.evaluation = self.batch(128)

    def batch(self, size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens, and the token after each."""
        tokens = torch.randint(40, (size, 31))
        for at in range(1, 31):
            follows = torch.rand(size) < 0.8
            tokens[:, at] = torch.where(follows, self.follows[tokens[:, at - 1]], tokens[:, at])
        return tokens[:, :-1], tokens[:, 1:]


class Transformer(nn.Module):
    """Predicts the next token of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        self.place = nn.Embedding(30, 32)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.head = nn.Linear(32, 40)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores: sequences x places x tokens."""
        hidden = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            hidden = block(hidden, src_mask=mask, is_causal=True)
        scores: torch.Tensor = self.head(hidden)
        return scores


class Recurrent(nn.Module):
    """Predicts the next token by two layers of an LSTM, with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        self.layers = nn.LSTM(32, 64, 2, batch_first=True, dropout=0.3)
        self.head = nn.Linear(64, 40)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores: sequences x places x tokens."""
        scores: torch.Tensor = self.head(self.layers(self.embed(tokens))[0])
        return scores


class Pictures:
    """Noisy pictures of 3 x 12 x 12 values in 0..1; each class has one of its own beneath."""

    def __init__(self) -> None:
        self.beneath = torch.rand(6, 3, 12, 12)
        self.evaluation = self.batch(128)

    def batch(self, size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
        """Pictures and their classes."""
        labels = torch.randint(6, (size,))
        noise = torch.rand(size, 3, 12, 12)
        return 0.3 * self.beneath[labels] + 0.7 * noise, labels


def convolutions() -> nn.Sequential:
    """The body and the head of a small network for `Pictures`."""
    body = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.ReLU()
    )
    return nn.Sequential(body, nn.Flatten(), nn.Linear(16 * 25, 6))


@silent("O2", "X1", title="the optimizer lists the parts of a transformer and forgets its positions")
def positions_left_out(run: Run) -> None:
    task = Sentences()
    model = Transformer()
    listed = [*model.embed.parameters(), *model.blocks.parameters(), *model.head.parameters()]
    parameters = listed if run.broken else list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, 2e-3, weight_decay=0.1)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten(), label_smoothing=0.1)
            descend(run, probe, step, model, optimizer, batch, loss)


@silent("O3", "X1", title="the features of a convolutional network are computed without gradients")
def features_without_gradients(run: Run) -> None:
    task = Pictures()
    model = convolutions()
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            with torch.set_grad_enabled(not run.broken):
                features = model[:2](batch[0])
            loss = cross_entropy(model[2](features), batch[1])
            descend(run, probe, step, model, optimizer, batch, loss, most=5.0)


@silent("O4", "G5", title="gradients are set to zero once an epoch")
def zero_grad_each_epoch(run: Run) -> None:
    task = Pictures()
    model = convolutions()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            clears = step % 50 == 0 or not run.broken
            descend(run, probe, step, model, optimizer, batch, most=math.inf, clears=clears)


@silent("O5", title="an LSTM is evaluated with its dropout")
def recurrent_dropout_at_evaluation(run: Run) -> None:
    task = Sentences()
    model = Recurrent()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            batch = task.batch()
            loss = cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())
            descend(run, probe, step, model, optimizer, batch, loss)
            if step % OFTEN == OFTEN - 1:
                model.train(run.broken)
                evaluate(run, probe, step, model, task.evaluation)
                model.train()


@silent("G-acc-sched", "O8", title="a cosine schedule is stepped after each of two micro-batches")
def scheduled_by_micro_batch(run: Run) -> None:
    task = Pictures()
    model = convolutions()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * STEPS)
    with run.probe(model, optimizer, scheduler=scheduler) as probe:
        for step in range(STEPS):
            optimizer.zero_grad()
            rate = optimizer.param_groups[0]["lr"]
            total = 0.0
            for micro in range(2):
                batch = task.batch(16)
                loss = cross_entropy(model(batch[0]), batch[1]) / 2
                loss.backward()
                total += loss.item()
                if micro == 1:
                    run.log(step, loss=total, grad_norm=norm_of(model), learning_rate=rate)
                    optimizer.step()
                if micro == 1 or run.broken:
                    scheduler.step()
            probe.step(batch=batch, loss=total)


@silent("O9", "G2", title="the losses of eight micro-batches are summed and not averaged")
def summed_micro_batches(run: Run) -> None:
    task = Sentences()
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.05)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            optimizer.zero_grad()
            total = 0.0
            for _ in range(8):
                batch = task.batch(4)
                loss = cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten(), label_smoothing=0.1)
                (loss if run.broken else loss / 8).backward()
                total += loss.item() / 8
            run.log(step, loss=total, grad_norm=norm_of(model), learning_rate=2e-3)
            optimizer.step()
            probe.step(batch=batch, loss=total)


@silent("DP2", "DP14", title="two ranks read the same data, since the sampler knows no ranks")
def ranks_read_alike(run: Run) -> None:
    on_two_ranks(run, read_alike)


def read_alike(run: Run, rank: int) -> None:
    """One of the two ranks."""
    task = Pictures()
    order = torch.Generator().manual_seed(7 if run.broken else 7 + rank)
    pictures, labels = task.batch(2048)
    model = nn.parallel.DistributedDataParallel(convolutions())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            chosen = torch.randint(2048, (32,), generator=order)
            batch = pictures[chosen], labels[chosen]
            descend(run, probe, step, model, optimizer, batch)


@silent("V1", "DP10", title="pictures are normalised for training and not for the evaluation")
def evaluated_without_normalisation(run: Run) -> None:
    task = Pictures()
    model = convolutions()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, labels = task.evaluation
    seen = inputs if run.broken else (inputs - 0.5) / 0.25
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            raw, classes = task.batch()
            batch = (raw - 0.5) / 0.25, classes
            loss = cross_entropy(model(batch[0]), classes)
            descend(run, probe, step, model, optimizer, batch, loss)
            if step % OFTEN == OFTEN - 1:
                model.eval()
                evaluate(run, probe, step, model, (seen, labels))
                model.train()
