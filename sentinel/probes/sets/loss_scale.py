"""The loss scale of a GradScaler.

A scale that falls again and again says that gradients overflow at every scale, and that steps are skipped.

## Cost
A copy of one number from the device.

## When it misleads
A scaler that is switched off has a scale of 1.

## Source
Probe `amp/scale` of the catalogue (O24, GA); `torch.amp.GradScaler.get_scale`.
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet


class LossScale(
    ProbeSet,
    shows={"amp/scale": "loss scale of the GradScaler"},
    entries=("O24", "GA"),
):
    """The scale that is in force after the step."""

    def measure(self, moment: Moment) -> Numbers:
        """The scale, if the loop hands its scaler over."""
        return {} if moment.scaler is None else {"amp/scale": moment.scaler.get_scale()}
