"""Mean, deviation and range of the inputs.

Inputs that are normalised twice or not at all, or otherwise at evaluation, train a model that sees other data
than it will be used on.

## Cost
Five reductions over the inputs of one batch, on their device, and of the first batch of an evaluation.

## When it misleads
It looks at the first tensor of real numbers in the batch (a tensor, a sequence, or the values of a mapping).
Token ids are no such tensor. Augmentation such as erasing or mixing shifts training a little. The evaluation
is known only if the loop calls `probe.evaluate(batch=...)`.

## Source
Probes `data/input_*` of the catalogue (DP10, DP11, DP12, V1).
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject

_IMAGE_DIMENSIONS = 4  # of a batch of images: samples x channels x height x width
_MAX_CHANNELS = 4  # of an image

Array = Any  # a tensor of torch or an array of NumPy


class Inputs(
    ProbeSet,
    shows={
        "data/input_mean": "mean of the inputs",
        "data/input_std": "standard deviation of the inputs",
        "data/input_min": "smallest input",
        "data/input_max": "largest input",
        "data/input_mean/<channel>": "mean of a channel of images",
        "data/eval_input_mean": "mean of the inputs of an evaluation",
        "data/eval_input_std": "standard deviation of the inputs of an evaluation",
        "data/eval_input_shift": "largest difference of a mean from training's, or of the logarithms of the "
        "deviations; means in training's deviations",
    },
    entries=("DP10", "DP11", "DP12", "V1", "V2"),
    needs_torch=False,
):
    """Statistics of the first tensor of real numbers in a batch."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._trained: Statistics | None = None
        self._evaluated: Statistics | None = None

    def measure(self, moment: Moment) -> Numbers:
        """Return four numbers and one a channel, or none if the batch has no such tensor."""
        values = next(_real(moment.batch), None)
        if values is None:
            return {}
        self._trained = Statistics.of(values)
        numbers = {
            "data/input_mean": self._trained.mean,
            "data/input_std": self._trained.std,
            "data/input_min": values.min(),
            "data/input_max": values.max(),
        }
        return numbers | {f"data/input_mean/{i}": mean for i, mean in enumerate(self._trained.channels)}

    def evaluate(self, moment: Moment) -> None:
        """Keep the statistics of the evaluation's first batch."""
        if self._evaluated is None and (values := next(_real(moment.batch), None)) is not None:
            self._evaluated = Statistics.of(values)

    def evaluated(self) -> Numbers:
        """Return those, and how far they are from training's."""
        evaluated = self._evaluated
        self._evaluated = None
        if evaluated is None:
            return {}
        numbers = {"data/eval_input_mean": evaluated.mean, "data/eval_input_std": evaluated.std}
        shift = {"data/eval_input_shift": evaluated.shift_from(self._trained)} if self._trained else {}
        return numbers | shift


class Statistics(NamedTuple):
    """Mean and deviation of a tensor, and the means of its channels if it holds images."""

    mean: Array
    std: Array
    channels: tuple[Array, ...]

    @classmethod
    def of(cls, values: Array) -> "Statistics":
        """Return those over all samples."""
        are_images = values.ndim == _IMAGE_DIMENSIONS and values.shape[1] <= _MAX_CHANNELS
        channels = tuple(values.mean((0, 2, 3))) if are_images else ()
        return cls(values.mean(), _library(values).std(values, correction=0), channels)

    def shift_from(self, other: "Statistics") -> Array:
        """Return the largest difference of a mean, in the other's deviations, or of both logarithms."""
        library = _library(self.mean)
        least = float(np.finfo(np.float32).tiny)
        means = zip((self.mean, *self.channels), (other.mean, *other.channels), strict=False)
        away = [abs(mean - expected) / (other.std + least) for mean, expected in means]
        wider = abs(library.log((self.std + least) / (other.std + least)))
        return library.stack([*away, wider]).max()


def _library(values: Array) -> Any:
    """Return what the values are of: torch or NumPy, whose functions have the same names."""
    return sys.modules["torch"] if hasattr(values, "is_floating_point") else np


def _real(batch: Any) -> Iterator[Array]:
    """Yield the tensors and arrays of real numbers in a batch, in 32 bits or more."""
    if hasattr(batch, "is_floating_point"):
        if batch.is_floating_point() and batch.numel():
            yield batch.detach().float()
    elif isinstance(batch, np.ndarray):
        if batch.dtype.kind == "f" and batch.size:
            yield batch
    elif isinstance(batch, Mapping | list | tuple):
        for value in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _real(value)
