"""Where the numbers of a probe go: to the logger that the training has."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Write = Callable[[int, Mapping[str, float]], object]
Target = Any
"""A SummaryWriter, a W&B run, a `Monitor`, a path of JSON lines, or a function like `Write`."""


def target(to: Target) -> Write:
    """Return the function that writes a step's numbers. Raises TypeError for what is no target."""
    if isinstance(to, str | os.PathLike):
        return _json_lines(Path(to))
    if hasattr(to, "add_scalar"):
        return _tensorboard(to)
    if hasattr(to, "log") and hasattr(to, "define_metric"):
        # They join the row that the training logs next: a row of their own would move its steps.
        return lambda _, numbers: to.log(dict(numbers), commit=False)
    if hasattr(to, "log") and hasattr(to, "news"):
        return lambda step, numbers: to.log(step, numbers)
    if callable(to):
        return to  # type: ignore[no-any-return]
    kinds = "a SummaryWriter, a W&B run, a Monitor, a path, or a function of a step and its numbers"
    raise TypeError(f"to={type(to).__name__}: give {kinds}")


def _json_lines(path: Path) -> Write:
    def write(step: int, numbers: Mapping[str, float]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **numbers}) + "\n")

    return write


def _tensorboard(writer: Any) -> Write:
    def write(step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)

    return write
