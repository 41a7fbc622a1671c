"""Whether the model trains in training mode and evaluates in evaluation mode, and whose statistics move.

After an evaluation without `model.train()` dropout is off and BatchNorm's statistics stand still. A frozen
backbone whose statistics move drifts away from its weights.

## Cost
A pass over the modules on the host, and a norm for each BatchNorm on its device.

## When it misleads
A frozen part that is kept in evaluation mode on purpose lowers the share. Dropout that stays on at an
evaluation on purpose, to tell uncertainty, counts as a mistake. The evaluation is known only if the loop
calls `probe.evaluate`.

## Source
Probes `model/training_flag` and `bn/running_stat_drift` of the catalogue (O5, O18, V7, DP8); TrainCheck's
invariant on the mode of dropout.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch


class Modes(
    ProbeSet,
    shows={
        "model/training": "share of the modules in training mode at the step",
        "model/dropout_off": "share of the dropout modules in evaluation mode at the step",
        "model/training_at_evaluation": "share of dropout and BatchNorm in training mode at an evaluation",
        "bn/running_stat_drift": "change of BatchNorm's running means since the last measurement, relative",
        "bn/frozen_stat_drift": "change of the running means of frozen BatchNorms since the start, relative",
    },
    entries=("O5", "O18", "V7", "DP8"),
    cost=Cost.DEFAULT,
):
    """Training mode and the statistics of BatchNorm."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._means: torch.Tensor | None = None
        self._frozen = _means(self._norms(frozen=True))
        self._at_evaluation: float | None = None

    def measure(self, moment: Moment) -> Numbers:
        """The shares of modules, and from the second time on the drift."""
        leaves = [one for one in self.subject.model.modules() if next(one.children(), None) is None]
        found: dict[str, torch.Tensor | float] = {"model/training": _share(one.training for one in leaves)}
        if dropouts := [one for one in leaves if _drops(one)]:
            found["model/dropout_off"] = _share(not one.training for one in dropouts)
        now, frozen = _means(self._norms()), _means(self._norms(frozen=True))
        if now is not None and self._means is not None and self._means.shape == now.shape:
            found["bn/running_stat_drift"] = _change(self._means, now)
        if frozen is not None and self._frozen is not None and self._frozen.shape == frozen.shape:
            found["bn/frozen_stat_drift"] = _change(self._frozen, frozen)
        self._means = now
        return found

    def evaluate(self, moment: Moment) -> None:
        """Look at the modules whose outputs depend on the mode."""
        modules = self.subject.model.modules()
        judged = [one for one in modules if getattr(one, "running_mean", None) is not None or _drops(one)]
        if judged:
            share = _share(one.training for one in judged)
            self._at_evaluation = max(self._at_evaluation or 0.0, share)

    def evaluated(self) -> Numbers:
        """The largest share of the evaluation's batches."""
        share, self._at_evaluation = self._at_evaluation, None
        return {} if share is None else {"model/training_at_evaluation": share}

    def _norms(self, *, frozen: bool = False) -> "list[torch.nn.Module]":
        """Modules with running statistics; those alone whose weights rest."""
        norms = [one for one in self.subject.model.modules() if hasattr(one, "running_mean")]
        weights = [(one, list(one.parameters())) for one in norms]
        return [
            one for one, own in weights if not frozen or (own and not any(part.requires_grad for part in own))
        ]


def _means(norms: "list[torch.nn.Module]") -> "torch.Tensor | None":
    import torch

    means: list[Any] = [one.running_mean for one in norms if one.running_mean is not None]
    return torch.cat([mean.detach().float().reshape(-1) for mean in means]) if means else None


def _change(before: "torch.Tensor", now: "torch.Tensor") -> "torch.Tensor":
    return (now - before).norm() / before.norm().clamp_min(1e-12)


def _drops(module: "torch.nn.Module") -> bool:
    """Whether it is a dropout of a share above zero, or a layer with one of its own, as an LSTM is."""
    share = getattr(module, "p" if "Dropout" in type(module).__name__ else "dropout", None)
    return isinstance(share, float) and share > 0


def _share(of: Iterable[bool]) -> float:
    flags = list(of)
    return sum(flags) / max(len(flags), 1)
