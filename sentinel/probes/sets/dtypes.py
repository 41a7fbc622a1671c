"""In which types weights and gradients are kept.

A model whose weights are in 16 bits, without a copy in 32, loses most small updates to rounding. Gradients
in another type than their weights come from a cast that nobody meant.

## Cost
A pass over the list of parameters, on the host.

## When it misleads
A library may keep a copy in 32 bits beside weights in 16 (DeepSpeed, Megatron); then the share means nothing.

## Source
TrainCheck's invariants on types; entries N-lost-updates and O10 of the catalogue.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet

if TYPE_CHECKING:
    import torch

_BYTES_OF_HALF = 2


class Dtypes(
    ProbeSet,
    shows={
        "params/half_share": "share of the trained weights that are kept in 16 bits or fewer",
        "grad/other_dtype": "gradients whose type is not that of their weights",
    },
    entries=("N-lost-updates", "O10"),
    cost=Cost.DEFAULT,
):
    """Shares and counts by type."""

    def measure(self, moment: Moment) -> Numbers:
        """Two numbers."""
        trained = self.subject.optimized()
        half = [weights for weights in trained if weights.element_size() <= _BYTES_OF_HALF]
        pairs = [(weights, weights.grad) for weights in trained]
        return {
            "params/half_share": _count(half) / max(_count(trained), 1),
            "grad/other_dtype": sum(of is not None and of.dtype != weights.dtype for weights, of in pairs),
        }


def _count(tensors: "Sequence[torch.Tensor]") -> int:
    return sum(tensor.numel() for tensor in tensors)
