"""The share of a layer's outputs that are dead: zero for a whole batch, or saturated.

A ReLU unit that is zero for every sample has no gradient and does not come back; a sigmoid or tanh near its
ends passes next to none on.

## Cost
One comparison over the output of at most eight activations, at measured steps only.

## When it misleads
A small batch makes units look dead that are only rare. Sparse activations on purpose, as in a mixture of
experts, are dead by this measure. Functional activations (`F.relu`) are no modules, so they are not seen.

## Source
Probe `dead_fraction/<layer>` of the catalogue (O25, O26).
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject, Unsuitable

if TYPE_CHECKING:
    import torch

_ZERO_ACTIVATION = {"ReLU", "ReLU6", "LeakyReLU", "GELU", "SiLU", "Hardswish"}  # dead where they are zero
_SATURATED = {"Sigmoid", "Tanh", "Hardsigmoid", "Hardtanh"}  # dead near their ends
_NEAR_END = 0.99  # an output beyond it, or below 1 minus it, is saturated
_MAX_LAYERS = 8  # that are watched, evenly spread over the model


class DeadOutputs(
    ProbeSet,
    shows={
        "dead_fraction/<layer>": "share of an activation's outputs that are zero for the batch, or saturated"
    },
    entries=("O25", "O26"),
):
    """Counts outputs by hooks that live for one step."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        if subject.is_compiled():
            raise Unsuitable("hooks would make torch.compile compile the model again")
        kinds = _ZERO_ACTIVATION | _SATURATED
        modules = subject.model.named_modules()
        layers = [(name, module) for name, module in modules if type(module).__name__ in kinds]
        self._layers = layers[:: max(1, -(-len(layers) // _MAX_LAYERS))]
        self._hooks = Hooks()
        self._shares: dict[str, torch.Tensor | float] = {}

    def arm(self) -> None:
        """Look at the outputs of the next forward pass."""
        for name, layer in self._layers:
            self._hooks.add(layer.register_forward_hook, partial(self._measure_output, name or "model"))

    def measure(self, moment: Moment) -> Numbers:
        """Return one number a layer."""
        self._hooks.raise_failure()
        return self._shares

    def disarm(self) -> None:
        """Remove the hooks."""
        self._hooks.remove()
        self._shares = {}

    def _measure_output(self, name: str, layer: "torch.nn.Module", _: Any, output: Any) -> None:
        import torch

        if not isinstance(output, torch.Tensor) or not layer.training or output.ndim < 2:
            return
        with torch.no_grad():
            flat = output.detach().transpose(0, 1).reshape(output.shape[1], -1)
            dead = flat == 0
            if type(layer).__name__ in _SATURATED:
                dead = flat.abs() > _NEAR_END
                if type(layer).__name__ == "Sigmoid":
                    dead |= flat < 1 - _NEAR_END
            share = dead.all(dim=1).float().mean()
        self._shares[f"dead_fraction/{name}"] = share
