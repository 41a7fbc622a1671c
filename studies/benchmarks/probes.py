"""What probes cost a training: `.venv/trainers/bin/python -m studies.benchmarks.probes`.

Two equal trainings take turns, one with probes and one without, so that what else the machine does slows both
alike. CPU time of one thread is measured. Every second step is measured by the probes, and what such a step
takes more is told as a share of a hundred steps; what the steps between take more is added.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import sentinel

EVERY = 100  # steps, for which the cost is told
TURNS = 25
WARM_UP = 5
Batches = Callable[[], dict[str, torch.Tensor]]


class Transformer(nn.Module):
    """Four layers of width 128 that predict the next of 1,000 tokens."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True)
        self.embed = nn.Embedding(1000, 128)
        self.blocks = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores: sequences x tokens x places, as the loss takes them."""
        scores: torch.Tensor = self.head(self.blocks(self.embed(tokens))).transpose(1, 2)
        return scores


def network() -> nn.Module:
    """Three convolutions with BatchNorm for pictures of 32 x 32."""
    parts: list[nn.Module] = []
    for before, after in (3, 32), (32, 64), (64, 128):
        parts += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def pictures() -> dict[str, torch.Tensor]:
    """128 pictures and their classes."""
    return {"inputs": torch.randn(128, 3, 32, 32), "labels": torch.randint(10, (128,))}


def texts() -> dict[str, torch.Tensor]:
    """16 texts of 64 tokens, and the token after each."""
    tokens = torch.randint(1000, (16, 65))
    return {"inputs": tokens[:, :-1], "labels": tokens[:, 1:]}


TRAININGS: dict[str, tuple[Callable[[], nn.Module], Batches]] = {
    "small CNN": (network, pictures),
    "small transformer": (Transformer, texts),
}


class Training:
    """One training, step by step, with a probe or without."""

    def __init__(self, make: Callable[[], nn.Module], batches: Batches, **probes: Any) -> None:
        torch.manual_seed(0)
        self.model = make()
        self.batches = batches
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.probe = sentinel.probe(self.model, self.optimizer, to=_forget, **probes) if probes else None

    def seconds(self, steps: int) -> float:
        """CPU time of some steps, without that of making their batches."""
        taken = 0.0
        for _ in range(steps):
            batch = self.batches()
            begun = time.process_time()
            loss = cross_entropy(self.model(batch["inputs"]), batch["labels"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.probe is not None:
                self.probe.step(batch=batch, loss=loss)
            taken += time.process_time() - begun
        return taken

    def idle_seconds(self, steps: int) -> float:
        """CPU time that the probe takes at each step that it does not measure."""
        assert self.probe is not None
        batch = self.batches()
        loss = torch.zeros(())
        begun = time.process_time()
        for _ in range(steps):
            self.probe.step(batch=batch, loss=loss)
        return (time.process_time() - begun) / steps


def _forget(step: int, numbers: object) -> None:
    """A logger that costs nothing."""


def measured(make: Callable[[], nn.Module], batches: Batches, sets: Any) -> tuple[float, float, float]:
    """Seconds of a step without probes, of a measurement, and of a step between measurements."""
    idle = Training(make, batches, sets=sets, every=10**9)
    idle.idle_seconds(10)
    between = median(idle.idle_seconds(50) for _ in range(9))
    bare = Training(make, batches)
    probed = Training(make, batches, sets=sets, every=2)
    for one in bare, probed:
        one.seconds(WARM_UP * 2)
    pairs = [(bare.seconds(2), probed.seconds(2)) for _ in range(TURNS)]
    extra = median(more - less for less, more in pairs)
    return median(less for less, _ in pairs) / 2, max(0.0, extra - 2 * between), between


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print(f"{'':19}{'sets':9}{'a step':>10}{'measuring':>12}{'else':>10}{f'every={EVERY}':>11}{'allowed':>9}")
    for name, (make, batches) in TRAININGS.items():
        for sets, allowed in ("default", 0.001), ("cheap", 0.01):
            step, measurement, between = measured(make, batches, sets)
            share = (measurement / EVERY + between) / step
            print(
                f"{name:19}{sets:9}{step * 1e3:7.1f} ms{measurement * 1e3:9.2f} ms"
                f"{between * 1e6:7.1f} us{share:11.3%}{allowed:9.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
