"""Whether the model trains in training mode, and whether its running statistics move.

After an evaluation without `model.train()` dropout is off and BatchNorm's statistics stand still. A frozen
backbone whose statistics move drifts away from its weights.

## Cost
A pass over the modules on the host, and a norm for each BatchNorm on its device.

## When it misleads
A frozen part that is kept in evaluation mode on purpose lowers the share.

## Source
Probes `model/training` and `bn/running_stat_drift` of the catalogue (O5, O18, V7, DP8).
"""

from typing import TYPE_CHECKING

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch


class Modes(
    ProbeSet,
    shows={
        "model/training": "share of the modules in training mode at the step",
        "bn/running_stat_drift": "change of BatchNorm's running means since the last measurement, relative",
    },
    entries=("O5", "O18", "V7", "DP8"),
):
    """Training mode and the statistics of BatchNorm."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._means: torch.Tensor | None = None

    def measure(self, moment: Moment) -> Numbers:
        """The share of modules, and from the second time on the drift."""
        import torch

        modules = [module for module in self.subject.model.modules() if next(module.children(), None) is None]
        found: dict[str, torch.Tensor | float] = {
            "model/training": sum(module.training for module in modules) / max(len(modules), 1)
        }
        means = [
            module.running_mean for module in modules if getattr(module, "running_mean", None) is not None
        ]
        if means:
            now = torch.cat([mean.detach().float().reshape(-1) for mean in means])
            if self._means is not None and self._means.shape == now.shape:
                drift = (now - self._means).norm() / self._means.norm().clamp_min(1e-12)
                found["bn/running_stat_drift"] = drift
            self._means = now
        return found
