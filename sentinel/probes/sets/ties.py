"""Whether weights that are one tensor stay one.

A language model whose head is the transpose of its embeddings trains two tensors once a copy, a cast or a
resized vocabulary has parted them. The loss falls as before.

## Cost
A pass over the names of the parameters, on the host.

## When it misleads
A head that is a copy of the embeddings at the start, and free on purpose, counts as parted.

## Source
TrainCheck's invariant that tied weights stay tied; entry N-untied-weights.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch


class Ties(
    ProbeSet,
    shows={"params/untied": "tensors that were, or ought to be, the same as another one and are not"},
    entries=("N-untied-weights", "O2"),
    cost=Cost.DEFAULT,
):
    """Compares names that meant one tensor at the start, and the ties that a model declares."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        names: dict[int, list[str]] = {}
        for name, parameter in subject.parts.parameters:
            names.setdefault(id(parameter), []).append(name)
        self._tied = [aliases for aliases in names.values() if len(aliases) > 1]
        self._copies = _copies(subject)

    def measure(self, moment: Moment) -> Numbers:
        """Return how many names mean a tensor of their own by now."""
        now = dict(self.subject.parts.parameters) if self._tied else {}
        parted = sum(
            now.get(name) is not now.get(aliases[0]) for aliases in self._tied for name in aliases[1:]
        )
        return {"params/untied": parted + self._copies}


def _copies(subject: Subject) -> int:
    """Count the heads that began as a copy of embeddings, which is how a tie that was lost earlier looks."""
    import torch

    modules = subject.parts.modules
    embeddings, heads = (_weights(modules, kind) for kind in (torch.nn.Embedding, torch.nn.Linear))
    return sum(
        head is not table and head.shape == table.shape and bool(torch.equal(head, table))
        for head in heads
        for table in embeddings
        if head.requires_grad and table.requires_grad and not hasattr(head, "to_local")
    )


def _weights(modules: "Iterable[torch.nn.Module]", kind: "type[torch.nn.Module]") -> "list[torch.Tensor]":
    """Return the stored weights: asking a module with spectral norm for its weight changes its estimate."""
    by_name = [dict(module.named_parameters(recurse=False)) for module in modules if isinstance(module, kind)]
    return [parameters["weight"] for parameters in by_name if "weight" in parameters]
