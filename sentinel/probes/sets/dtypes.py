"""In which types weights and gradients are kept.

A model whose weights are in 16 bits, without a copy in 32, loses most small updates to rounding. Gradients
in fewer bits than their weights are rounded before the optimizer sees them.

## Cost
A pass over the list of parameters, on the host.

## When it misleads
A library may keep a copy in 32 bits beside weights in 16 (DeepSpeed, Megatron); then the share means nothing.
No detector judges the share: weights in 16 bits are often meant, and `params/lost_updates` shows what they
lose.

## Source
TrainCheck's invariants on types; entries N-lost-updates and O10 of the catalogue.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet

if TYPE_CHECKING:
    import torch

_BYTES_OF_HALF = 2  # of a number in half precision


class Dtypes(
    ProbeSet,
    shows={
        "params/half_share": "share of the trained weights that are kept in 16 bits or fewer",
        "grad/fewer_bits": "gradients that are kept in fewer bits than their weights",
    },
    entries=("N-lost-updates", "O10"),
    cost=Cost.DEFAULT,
):
    """Shares and counts by type."""

    def measure(self, moment: Moment) -> Numbers:
        """Return two numbers."""
        trained = self.subject.optimized()
        half = [weights for weights in trained if weights.element_size() <= _BYTES_OF_HALF]
        pairs = [(weights, weights.grad) for weights in trained]
        return {
            "params/half_share": _weight_count(half) / max(_weight_count(trained), 1),
            "grad/fewer_bits": sum(
                state is not None and state.element_size() < weights.element_size()
                for weights, state in pairs
            ),
        }


def _weight_count(tensors: "Sequence[torch.Tensor]") -> int:
    return sum(tensor.numel() for tensor in tensors)
