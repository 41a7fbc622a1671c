"""Padding, valid tokens and masked labels of a batch.

A loss that averages over padding falls and rises with the lengths of a batch. Labels that are all masked
train nothing.

## Cost
Two means of the masks of one batch, on their device. At each step a comparison of labels that lie on the
host; of a device only the labels of measured steps count.

## When it misleads
It knows batches by the usual names: a mapping with `attention_mask` and `labels`, where masked labels are
-100. It is silent about others. A packed batch has no padding, whatever its texts.

## Source
Probes `data/pad_fraction`, `data/valid_tokens`, `data/masked_label_fraction` of the catalogue (O15, L2, L7);
-100 is the `ignore_index` of torch's cross-entropy.
"""

import math
from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject, is_on_host

if TYPE_CHECKING:
    import torch

_MASKED = -100  # label of a token that the loss ignores


class BatchTokens(
    ProbeSet,
    shows={
        "data/pad_fraction": "share of padding in the batch",
        "data/valid_tokens": "tokens of the batch that are no padding",
        "data/masked_label_fraction": "share of labels that do not count",
        "data/batches_all_masked": "share of the batches so far of whose labels none counts",
    },
    entries=("O15", "L2", "L7", "L8", "A-nan-data"),
    cost=Cost.DEFAULT,
    needs_torch=False,
):
    """Shares of a batch of token sequences."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._batches = 0
        self._all_masked: torch.Tensor | int = 0

    def glance(self, moment: Moment) -> None:
        """Count the batches that train nothing."""
        labels = _labels(moment)
        if labels is not None and is_on_host(labels):
            self._count(labels)

    def measure(self, moment: Moment) -> Numbers:
        """Return what the names of the batch tell."""
        numbers: dict[str, torch.Tensor | float] = {}
        mask = moment.batch.get("attention_mask") if hasattr(moment.batch, "keys") else None
        if mask is not None:
            valid = (mask != 0).sum()
            numbers["data/valid_tokens"] = valid
            numbers["data/pad_fraction"] = 1.0 - valid / math.prod(mask.shape)
        labels = _labels(moment)
        if labels is not None:
            numbers["data/masked_label_fraction"] = (labels == _MASKED).sum() / math.prod(labels.shape)
            if not is_on_host(labels):
                self._count(labels)
            numbers["data/batches_all_masked"] = self._all_masked / self._batches
        return numbers

    def _count(self, labels: "torch.Tensor") -> None:
        self._batches += 1
        self._all_masked = self._all_masked + (labels == _MASKED).all()


def _labels(moment: Moment) -> "torch.Tensor | None":
    """Return the labels of a batch of sequences."""
    labels: Any = moment.batch.get("labels") if hasattr(moment.batch, "keys") else None
    return labels if getattr(labels, "ndim", 0) > 1 else None
