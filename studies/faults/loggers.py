"""The loggers that trainings log with."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _nothing(*_: object) -> None:
    """Most loggers keep no settings, and some trainers log by themselves."""


@dataclass(frozen=True)
class Log:
    """Where a training logs: ``write`` takes a step and its metrics, ``config`` the settings of the run."""

    directory: Path
    write: Callable[[int, Mapping[str, float]], None] = _nothing
    config: Callable[[Mapping[str, Any]], None] = _nothing


@contextmanager
def own(directory: Path) -> Iterator[Log]:
    """For a trainer that logs by itself."""
    yield Log(directory)


@contextmanager
def tensorboard(directory: Path) -> Iterator[Log]:
    """PyTorch's SummaryWriter."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(directory) as writer:

        def write(step: int, values: Mapping[str, float]) -> None:
            for tag, value in values.items():
                writer.add_scalar(tag, value, step)

        yield Log(directory, write)


@contextmanager
def wandb(directory: Path) -> Iterator[Log]:
    """An offline run of W&B."""
    import wandb

    with wandb.init(mode="offline", dir=directory, settings=wandb.Settings(silent=True)) as run:
        yield Log(directory, lambda step, values: run.log(dict(values), step=step), run.config.update)


@contextmanager
def jsonl(directory: Path) -> Iterator[Log]:
    """A line of JSON for each step, and one for the settings."""
    with open(directory / "metrics.jsonl", "w") as file:
        yield Log(
            directory,
            lambda step, values: print(json.dumps({"step": step, **values}), file=file),
            lambda settings: print(json.dumps({"config": settings}), file=file),
        )


@contextmanager
def table(directory: Path) -> Iterator[Log]:
    """A CSV file with a row for each step; the first step has all columns."""
    with open(directory / "metrics.csv", "w", newline="") as file:
        rows = csv.writer(file)

        def write(step: int, values: Mapping[str, float]) -> None:
            if not file.tell():
                rows.writerow(["step", *values])
            rows.writerow([step, *values.values()])

        yield Log(directory, write)


Logger = Callable[[Path], AbstractContextManager[Log]]
