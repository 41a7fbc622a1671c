"""The loss scale of a GradScaler, and the steps that it skips.

A scale that falls again and again says that gradients overflow at every scale, and that steps are skipped.

## Cost
Nothing that can be measured: a copy of one number, which nobody waits for.

## When it misleads
A scaler that is switched off has no scale. Skipped steps are those among the measured ones.

## Source
Probes `amp/scale` and `amp/skipped_steps` of the catalogue (O24, GA); `torch.amp.GradScaler`.
"""

from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch


class LossScale(
    ProbeSet,
    shows={
        "amp/scale": "loss scale of the GradScaler",
        "amp/skipped_steps": "measurements before which the scale fell, by skipped steps; cumulative",
    },
    entries=("O24", "GA"),
    cost=Cost.DEFAULT,
):
    """The scale that is in force after the step."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._before: torch.Tensor | None = None
        self._skipped: torch.Tensor | float = 0.0

    def measure(self, moment: Moment) -> Numbers:
        """Return the scale, if the loop hands its scaler over."""
        scale = getattr(moment.scaler, "_scale", None)  # the tensor, because `get_scale` waits for the device
        if scale is None:
            return {}
        if self._before is not None:
            self._skipped = self._skipped + (scale < self._before).float()
        self._before = scale.detach().clone()
        return {"amp/scale": scale, "amp/skipped_steps": self._skipped}
