"""Padding, valid tokens and masked labels of a batch.

A loss that averages over padding falls and rises with the lengths of a batch. Labels that are all masked
train nothing.

## Cost
Two means of the masks of one batch, on their device.

## When it misleads
It knows batches by the usual names: a mapping with `attention_mask` and `labels`, where masked labels are
-100. It is silent about others. A packed batch has no padding, whatever its texts.

## Source
Probes `data/pad_fraction`, `data/valid_tokens`, `data/masked_label_fraction` of the catalogue (O15, L2, L7);
-100 is the `ignore_index` of torch's cross-entropy.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet

if TYPE_CHECKING:
    import torch

_MASKED = -100


class BatchTokens(
    ProbeSet,
    shows={
        "data/pad_fraction": "share of padding in the batch",
        "data/valid_tokens": "tokens of the batch that are no padding",
        "data/masked_label_fraction": "share of labels that do not count",
    },
    entries=("O15", "L2", "L7"),
    cost=Cost.DEFAULT,
):
    """Shares of a batch of token sequences."""

    def measure(self, moment: Moment) -> Numbers:
        """What the names of the batch tell."""
        batch = moment.batch
        found: dict[str, torch.Tensor | float] = {}
        if not isinstance(batch, Mapping) and not hasattr(batch, "keys"):
            return found
        if "attention_mask" in batch:
            mask = batch["attention_mask"]
            valid = (mask != 0).sum()
            found["data/valid_tokens"] = valid
            found["data/pad_fraction"] = 1.0 - valid / mask.numel()
        if "labels" in batch and batch["labels"].ndim > 1:
            found["data/masked_label_fraction"] = (batch["labels"] == _MASKED).float().mean()
        return found
