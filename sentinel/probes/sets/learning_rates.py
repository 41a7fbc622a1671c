"""The learning rate of each parameter group.

Most loggers show the rate of the first group alone, so a group that was forgotten by the scheduler, or that
destroys pretrained features, cannot be seen.

## Cost
Nothing that can be measured: the numbers lie on the host.

## When it misleads
A rate that is kept as a tensor on a device is copied from there.

## Source
Probe `lr/<group>` of the catalogue.
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet


class LearningRates(
    ProbeSet,
    shows={"lr/<group>": "learning rate of a parameter group"},
    entries=("O23", "O19", "X3"),
):
    """The rate of each group of each optimizer."""

    def measure(self, moment: Moment) -> Numbers:
        """One number a group."""
        return {f"lr/{name}": group["lr"] for name, group in self.subject.groups()}
