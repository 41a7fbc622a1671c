"""Trained tensors that no gradient reaches.

A branch behind a `detach()`, a `no_grad()` or an `argmax` has no gradient. The rest of the model learns, so
the loss falls.

## Cost
A pass over the list of parameters when the optimizer steps, on the host.

## When it misleads
An expert that no token chose, or a head that is not used yet, has no gradient for a while. The number counts
only tensors that had none at any measured step.

## Source
TrainCheck's invariant that gradients are not None; entry O3 of the catalogue.
"""

from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Cost, Hooks, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch


class MissingGradients(
    ProbeSet,
    shows={"grad/never": "trained tensors that had no gradient at any measured step"},
    entries=("O3", "O2", "X1"),
    cost=Cost.DEFAULT,
):
    """Looks at the gradients just before the optimizer steps."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._hooks = Hooks()
        self._reached: set[int] = set()
        self._stepped = False

    def arm(self) -> None:
        """Let the optimizers say when they step."""
        self._stepped = False
        for optimizer in self.subject.optimizers:
            self._hooks.add(optimizer.register_step_pre_hook, self._note_reached)

    def measure(self, moment: Moment) -> Numbers:
        """Return how many tensors were never reached; nothing if no optimizer stepped."""
        self._hooks.raise_failure()
        if not self._stepped:
            return {}
        trained = self.subject.optimized()
        return {"grad/never": sum(id(parameter) not in self._reached for parameter in trained)}

    def disarm(self) -> None:
        """Remove the hooks."""
        self._hooks.remove()

    def _note_reached(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        self._stepped = True
        parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
        self._reached |= {id(parameter) for parameter in parameters if parameter.grad is not None}
