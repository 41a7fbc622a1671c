"""Mean, deviation and range of the inputs.

Inputs that are normalised twice or not at all, or otherwise at evaluation, train a model that sees other data
than it will be used on.

## Cost
Four reductions over the inputs of one batch, on their device.

## When it misleads
It looks at the first tensor of real numbers in the batch (a tensor, a sequence, or the values of a mapping).
Token ids are no such tensor.

## Source
Probes `data/input_*` of the catalogue (DP10, DP11, DP12, V1).
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Moment, Numbers, ProbeSet

if TYPE_CHECKING:
    import torch


class Inputs(
    ProbeSet,
    shows={
        "data/input_mean": "mean of the inputs",
        "data/input_std": "standard deviation of the inputs",
        "data/input_min": "smallest input",
        "data/input_max": "largest input",
    },
    entries=("DP10", "DP11", "DP12", "V1"),
):
    """Statistics of the first tensor of real numbers in a batch."""

    def measure(self, moment: Moment) -> Numbers:
        """Four numbers, or none if the batch has no such tensor."""
        tensor = next(_real(moment.batch), None)
        if tensor is None:
            return {}
        values = tensor.detach().float()
        return {
            "data/input_mean": values.mean(),
            "data/input_std": values.std(correction=0),
            "data/input_min": values.min(),
            "data/input_max": values.max(),
        }


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
