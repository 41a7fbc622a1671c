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

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_IMAGES, _MOST_CHANNELS = 4, 4  # dimensions of a batch of images: samples x channels x height x width


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
):
    """Statistics of the first tensor of real numbers in a batch."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._trained: Statistics | None = None
        self._evaluated: Statistics | None = None

    def measure(self, moment: Moment) -> Numbers:
        """Four numbers and one a channel, or none if the batch has no such tensor."""
        values = next(_real(moment.batch), None)
        if values is None:
            return {}
        self._trained = Statistics.of(values)
        found = {
            "data/input_mean": self._trained.mean,
            "data/input_std": self._trained.std,
            "data/input_min": values.detach().min(),
            "data/input_max": values.detach().max(),
        }
        return found | {f"data/input_mean/{i}": one for i, one in enumerate(self._trained.channels)}

    def evaluate(self, moment: Moment) -> None:
        """Keep the statistics of the evaluation's first batch."""
        if self._evaluated is None and (values := next(_real(moment.batch), None)) is not None:
            self._evaluated = Statistics.of(values)

    def evaluated(self) -> Numbers:
        """Those, and how far they are from training's."""
        here, self._evaluated = self._evaluated, None
        if here is None:
            return {}
        found = {"data/eval_input_mean": here.mean, "data/eval_input_std": here.std}
        return found | ({"data/eval_input_shift": here.shift_from(self._trained)} if self._trained else {})


class Statistics(NamedTuple):
    """Mean and deviation of a tensor, and the means of its channels if it holds images."""

    mean: "torch.Tensor"
    std: "torch.Tensor"
    channels: "tuple[torch.Tensor, ...]"

    @classmethod
    def of(cls, tensor: "torch.Tensor") -> "Statistics":
        """Over all samples."""
        values = tensor.detach().float()
        are_images = values.ndim == _IMAGES and values.shape[1] <= _MOST_CHANNELS
        channels = tuple(values.mean((0, 2, 3))) if are_images else ()
        return cls(values.mean(), values.std(correction=0), channels)

    def shift_from(self, other: "Statistics") -> "torch.Tensor":
        """The largest difference of a mean, in the other's deviations, or of the logarithms of both."""
        import torch

        least = torch.finfo(torch.float32).tiny
        means = zip((self.mean, *self.channels), (other.mean, *other.channels), strict=False)
        away = [(one - of).abs() / other.std.clamp_min(least) for one, of in means]
        return torch.stack(
            [*away, (self.std.clamp_min(least) / other.std.clamp_min(least)).log().abs()]
        ).max()


def _real(batch: Any) -> "Iterator[torch.Tensor]":
    if hasattr(batch, "is_floating_point"):
        if batch.is_floating_point() and batch.numel():
            yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from _real(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from _real(value)
