"""What a silent error is: a training that is broken or not, and what it logs."""

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import sentinel
from tests.tools.ranks import on_ranks

FAMILIES = "wiring", "gradients", "data", "evaluation", "held_out"
"""The modules of the errors."""

STEPS = 200
EVERY = 5
"""A measurement each so many steps, so that a training of seconds has as many as one of hours."""


class Run:
    """Writes the metrics of a training to one log, and to another one together with the probes' numbers."""

    def __init__(self, folder: Path, broken: bool, seed: int) -> None:
        torch.manual_seed(seed)
        self.folder = folder
        self.broken = broken
        self.seed = seed
        self._with, self._without = (SummaryWriter(folder / name) for name in ("with", "without"))

    def probe(self, model: nn.Module, optimizer: Any, **training: Any) -> sentinel.probe:
        """The probe that a person would put around the loop."""
        return sentinel.probe(model, optimizer, to=self._with, every=EVERY, sets="cheap", **training)

    def log(self, step: int, **metrics: float | torch.Tensor) -> None:
        """What a trainer logs. An evaluation's names begin with ``eval_``."""
        for writer in (self._with, self._without):
            for name, value in metrics.items():
                tag = name.replace("eval_", "eval/") if name.startswith("eval_") else f"train/{name}"
                writer.add_scalar(tag, torch.as_tensor(value).item(), step)

    def close(self) -> None:
        """Write what is left."""
        self._with.close()
        self._without.close()


Train = Callable[[Run], None]


@dataclass(frozen=True)
class SilentError:
    """A way to be wrong without a word. Each of the entries of the catalogue is a right cause."""

    name: str
    title: str
    catalogue: tuple[str, ...]
    train: Train

    @property
    def is_held_out(self) -> bool:
        """Whether nothing was tuned on it."""
        return self.train.__module__.endswith(".held_out")


def silent(*catalogue: str, title: str) -> Callable[[Train], SilentError]:
    """Make a silent error of a training, which is named for its function."""
    return lambda train: SilentError(train.__name__.replace("_", "-"), title, catalogue, train)


def all_errors() -> Mapping[str, SilentError]:
    """Every error by its name, in the order of `FAMILIES`."""
    modules = [import_module(f"studies.silent.{family}") for family in FAMILIES]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, SilentError)]
    return {one.name: one for one in found}


def layers(*widths: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU, and with dropout where it is asked for."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        parts += [nn.Linear(before, after), nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
    return nn.Sequential(*parts[: -2 if dropout else -1])


class Blobs:
    """Points around the centre of each of ten classes."""

    def __init__(self, features: int = 32) -> None:
        self.centres = torch.randn(10, features)
        self.evaluation = self.batch(256)

    def batch(self, size: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and their classes."""
        labels = torch.randint(10, (size,))
        return self.centres[labels] + 1.5 * torch.randn(size, self.centres.shape[1]), labels


def descend(
    run: Run,
    probe: sentinel.probe,
    step: int,
    model: nn.Module,
    optimizer: Any,
    batch: Any,
    loss: torch.Tensor | None = None,
    most: float = 1.0,
    clears: bool = True,
    **given: Any,
) -> None:
    """One step of a training, as a person would write it; without a loss that of a classifier."""
    if loss is None:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    if clears:
        optimizer.zero_grad()
    loss.backward()
    run.log(step, loss=loss, grad_norm=norm_of(model, most), learning_rate=optimizer.param_groups[0]["lr"])
    optimizer.step()
    probe.step(batch=batch, loss=loss, **given)


def evaluate(run: Run, probe: sentinel.probe, step: int, model: nn.Module, batch: Any) -> None:
    """Log an evaluation in the mode that the model is in, as a person would write it."""
    with torch.no_grad():
        scores = model(batch[0])
    probe.evaluate(batch=batch, outputs=scores)
    loss = nn.functional.cross_entropy(scores.flatten(0, -2), batch[1].flatten())
    run.log(step, eval_loss=loss, eval_accuracy=(scores.argmax(-1) == batch[1]).float().mean())


def on_two_ranks(run: Run, train: Callable[[Run, int], None]) -> None:
    """Train on two ranks, of which the first one writes the run's logs."""
    with tempfile.TemporaryDirectory() as elsewhere:
        on_ranks(2, _train, train, (run.folder, Path(elsewhere)), run.broken, run.seed)


def _train(
    rank: int, train: Callable[[Run, int], None], folders: Sequence[Path], broken: bool, seed: int
) -> None:
    run = Run(folders[rank], broken, seed)
    train(run, rank)
    run.close()


def norm_of(model: nn.Module, most: float = 1.0) -> torch.Tensor:
    """Clip, and give the norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), most)
