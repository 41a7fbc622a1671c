"""The learning rate of each parameter group.

Most loggers show the rate of the first group alone, so a group that was forgotten by the scheduler, or that
destroys pretrained features, cannot be seen.

## Cost
Nothing that can be measured: the numbers lie on the host.

## When it misleads
A group whose rate is constant on purpose beside one with a schedule counts as left behind.

## Source
Probe `optim/lr/<group>` of the catalogue (O23, O19, X3).
"""

from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_MOVED_RATE = 0.01  # of a rate, by which a schedule has moved it


class LearningRates(
    ProbeSet,
    shows={
        "lr/<group>": "learning rate of a parameter group",
        "optim/groups_left_behind": "groups whose rate rests while another one of the optimizer moved",
    },
    entries=("O23", "O19", "X3", "N-group-left-behind"),
    cost=Cost.DEFAULT,
):
    """The rate of each group of each optimizer."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._first = [self._rates(optimizer) for optimizer in subject.optimizers]

    def measure(self, moment: Moment) -> Numbers:
        """Return one number a group, and how many rest that should not."""
        lag: torch.Tensor | float = 0
        for optimizer, first in zip(self.subject.optimizers, self._first, strict=True):
            pairs = list(zip(self._rates(optimizer), first, strict=False))  # a group may be added later
            moved = sum(abs(now - before) > _MOVED_RATE * before for now, before in pairs)
            lag += sum(now == before for now, before in pairs) * (moved > 0)
        rates = {f"lr/{name}": group["lr"] for name, group in self.subject.parts.groups}
        return {**rates, "optim/groups_left_behind": lag}

    @staticmethod
    def _rates(optimizer: "torch.optim.Optimizer") -> "list[torch.Tensor | float]":
        """Return the rates as they are now. A rate may be a tensor on a device, which changes in place."""
        rates = (group["lr"] for group in optimizer.param_groups)
        return [rate.detach().clone() if hasattr(rate, "detach") else rate for rate in rates]
