"""Errors in the batches."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from studies.silent.error import STEPS, Blobs, Run, descend, layers, silent


class Augmented(Dataset):
    """Points that are moved by noise of their own, whose numbers come with them."""

    def __init__(self, task: Blobs, seeds: list[int]) -> None:
        self.points, self.labels = task.batch(64 * STEPS)
        self.seeds = seeds
        self.random: np.random.Generator | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self.random is None:
            self.random = np.random.default_rng(self.seeds[get_worker_info().id])
        moved = torch.from_numpy(0.3 * self.random.standard_normal(32)).float()
        return self.points[at] + moved, moved, self.labels[at]


@silent("DP1", title="all workers draw their augmentation from one seed")
def augmented_alike(run: Run) -> None:
    data = Augmented(Blobs(), [7, 7] if run.broken else [7, 8])
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step, (inputs, moved, labels) in enumerate(DataLoader(data, 64, shuffle=True, num_workers=2)):
            loss = cross_entropy(model(inputs), labels)
            descend(run, probe, step, model, optimizer, (inputs, labels), loss, augmentation=moved)


class Stream(IterableDataset):
    """Points in their order, of which each of several workers ought to give its part."""

    def __init__(self, task: Blobs, sharded: bool) -> None:
        self.points, self.labels = task.batch(64 * STEPS)
        self.sharded = sharded

    def __iter__(self):
        worker = get_worker_info()
        part = slice(worker.id, None, worker.num_workers) if self.sharded else slice(None)
        yield from zip(self.points[part], self.labels[part], strict=True)


@silent("DP2", title="an iterable dataset gives each of two workers all of its samples")
def not_sharded(run: Run) -> None:
    data = Stream(Blobs(), sharded=not run.broken)
    model = layers(32, 64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step, batch in zip(range(STEPS), DataLoader(data, 64, num_workers=2), strict=False):
            descend(run, probe, step, model, optimizer, batch)


@silent("A-nan-data", "L8", "L2", title="a prompt fills every tenth batch, so all its labels are masked")
def labels_all_masked(run: Run) -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(50, 32), torch.nn.Linear(32, 50))
    follows = torch.randperm(50)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            tokens = torch.randint(50, (8, 32))
            prompt = 32 if run.broken and step % 10 == 0 else 12
            labels = follows[tokens].masked_fill(torch.arange(32) < prompt, -100)
            losses = cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), reduction="sum")
            loss = losses / (labels >= 0).sum().clamp_min(1)
            descend(run, probe, step, model, optimizer, {"input_ids": tokens, "labels": labels}, loss)
