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

from collections.abc import Iterable, Sequence
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
        norms = _norms(subject.parts.modules)
        self._means: torch.Tensor | None = None
        self._frozen = _means(_frozen(norms))
        self._at_evaluation: float | None = None

    def measure(self, moment: Moment) -> Numbers:
        """Return the shares of modules, and from the second time on the drift."""
        modules = self.subject.parts.modules
        leaves = [module for module in modules if next(module.children(), None) is None]
        norms = _norms(modules)
        numbers: dict[str, torch.Tensor | float] = {"model/training": _share(leaves)}
        if dropouts := [leaf for leaf in leaves if _drops(leaf)]:
            numbers["model/dropout_off"] = 1.0 - _share(dropouts)
        now = _means(norms)
        frozen = _means(_frozen(norms))
        if now is not None and self._means is not None and self._means.shape == now.shape:
            numbers["bn/running_stat_drift"] = _change(self._means, now)
        if frozen is not None and self._frozen is not None and self._frozen.shape == frozen.shape:
            numbers["bn/frozen_stat_drift"] = _change(self._frozen, frozen)
        self._means = now
        return numbers

    def evaluate(self, moment: Moment) -> None:
        """Look at the modules whose outputs depend on the mode."""
        modules = self.subject.parts.modules
        if modules_of_mode := [*_norms(modules), *filter(_drops, modules)]:
            self._at_evaluation = max(self._at_evaluation or 0.0, _share(modules_of_mode))

    def evaluated(self) -> Numbers:
        """Return the largest share of the evaluation's batches."""
        share = self._at_evaluation
        self._at_evaluation = None
        return {} if share is None else {"model/training_at_evaluation": share}


def _norms(modules: "Iterable[torch.nn.Module]") -> "list[torch.nn.Module]":
    """Return those with running statistics."""
    return [module for module in modules if getattr(module, "running_mean", None) is not None]


def _frozen(norms: "Iterable[torch.nn.Module]") -> "list[torch.nn.Module]":
    """Return those whose weights rest."""
    weights = [(norm, [parameter.requires_grad for parameter in norm.parameters()]) for norm in norms]
    return [norm for norm, ask in weights if ask and not any(ask)]


def _means(norms: "Sequence[torch.nn.Module]") -> "torch.Tensor | None":
    import torch

    means: list[Any] = [norm.running_mean for norm in norms]
    return torch.cat([mean.reshape(-1) for mean in means]).float() if means else None


def _change(before: "torch.Tensor", now: "torch.Tensor") -> "torch.Tensor":
    return (now - before).norm() / before.norm().clamp_min(1e-12)


def _drops(module: "torch.nn.Module") -> bool:
    """Return whether it is a dropout of a share above zero, or a layer with one of its own, as an LSTM is."""
    share = vars(module).get("p" if "Dropout" in type(module).__name__ else "dropout")
    return isinstance(share, float) and share > 0


def _share(modules: "Sequence[torch.nn.Module]") -> float:
    """Return which fraction of them is in training mode."""
    flags = [bool(module.training) for module in modules]
    return sum(flags) / max(len(flags), 1)
