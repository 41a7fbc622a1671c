"""Whether a step begins with what is left of the last one's gradient.

Without `zero_grad` each step adds its gradient to all before. With Adam the loss falls at first, and later
wanders.

## Cost
Two norms for each of at most eight tensors, on the device.

## When it misleads
`probe.step` must follow the optimizer's step; after each micro-batch of an accumulation it would see the sum
so far.

## Source
Entries O4 and G5 of the catalogue.
"""

from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_MAX_TENSORS = 8  # that are watched, evenly spread over the model


class CarriedGradients(
    ProbeSet,
    shows={
        "grad/carried_over": "norm of the gradient that a step begins with over that of its own first one"
    },
    entries=("O4", "G5", "G-acc-zero"),
):
    """Looks at the gradient that lies there when the first new one of a step arrives."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._hooks = Hooks()
        self._old: dict[int, torch.Tensor | float] = {}
        self._new: dict[int, torch.Tensor] = {}
        self._stepped = False

    def arm(self) -> None:
        """Watch for the first gradients of the step."""
        self._old = {}
        self._new = {}
        self._stepped = False
        trained = self.subject.optimized()
        for parameter in trained[:: max(1, -(-len(trained) // _MAX_TENSORS))]:
            self._hooks.add(parameter.register_hook, self._watch(parameter))
        for optimizer in self.subject.optimizers:
            self._hooks.add(optimizer.register_step_post_hook, self._note_step)

    def measure(self, moment: Moment) -> Numbers:
        """Return one number; none if no optimizer stepped."""
        import torch

        self._hooks.raise_failure()
        if not self._new or not self._stepped:
            return {}
        new_gradients = torch.stack([*self._new.values()]).sum()
        return {
            "grad/carried_over": (
                torch.as_tensor(sum(self._old.values())) / new_gradients.clamp_min(1e-30)
            ).sqrt()
        }

    def disarm(self) -> None:
        """Remove the hooks and forget the norms."""
        self._hooks.remove()
        self._old = {}
        self._new = {}

    def _watch(self, parameter: "torch.Tensor") -> Any:
        def arrives(new_gradient: "torch.Tensor") -> None:
            if id(parameter) not in self._new:
                old_gradient = parameter.grad
                self._old[id(parameter)] = 0.0 if old_gradient is None else square(old_gradient)
                self._new[id(parameter)] = square(new_gradient)

        return arrives

    def _note_step(self, *_: Any) -> None:
        self._stepped = True


def square(gradient: "torch.Tensor") -> "torch.Tensor":
    """Return the squared norm of a gradient, or of the part of it that lies here."""
    dense: Any = gradient.detach()
    dense = dense.coalesce().values() if dense.is_sparse else dense
    dense = dense.to_local() if hasattr(dense, "to_local") else dense
    squared: torch.Tensor = dense.float().square().sum()
    return squared
