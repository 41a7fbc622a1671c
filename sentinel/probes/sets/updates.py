"""How far an optimizer's step moves the weights, and which it does not move at all.

A healthy step changes a weight by about a thousandth of its size. Tensors that a step leaves as they were,
byte for byte, get no gradient or are held by nobody.

## Cost
A copy of at most 65,536 weights of each tensor, on the device, at each measurement.

## When it misleads
In warm-up the ratio is small because the rate is. Tensors that start at zero, such as biases and LoRA's
second matrix, have a large ratio at first. A step that the scaler skipped moves nothing. A library that keeps
a copy in 32 bits loses nothing of what it does not show in 16.

## Source
Probes `update_ratio/<group>` and `params/unchanged_after_step` of the catalogue (O22, O2, O4; N-lost-updates
for weights in 16 bits); a ratio of 1e-3 is Karpathy's rule of thumb.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_BYTES_OF_HALF = 2  # of a number in half precision
_MIN_SQUARE = 1e-30  # sum of squares of weights that are all zero
_MAX_WEIGHTS = 1 << 16  # of a tensor; their ratio tells that of the whole within a percent


class Updates(
    ProbeSet,
    shows={
        "update_ratio/<group>": "norm of a group's update over the norm of its weights",
        "params/unchanged_after_step": "share of the tensors that the step left as they were",
        "params/frozen_moved": "tensors that ask for no gradient and that the step moved",
        "params/lost_updates": "share of the weights in 16 bits that a gradient did not move",
    },
    entries=("O22", "O7", "O17", "G3", "X3", "O2", "O4", "N-lost-updates"),
):
    """Compares weights before and after the step of their optimizer."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._hooks = Hooks()
        self._before: dict[int, torch.Tensor] = {}
        self._numbers: Numbers = {}

    def arm(self) -> None:
        """Let the optimizers say when they step."""
        self._numbers = {}
        for optimizer in self.subject.optimizers:
            self._hooks.add(optimizer.register_step_pre_hook, self._keep_weights)
            self._hooks.add(optimizer.register_step_post_hook, self._compare)

    def measure(self, moment: Moment) -> Numbers:
        """Return what the step's hooks found; nothing if no optimizer stepped."""
        self._hooks.raise_failure()
        return self._numbers

    def disarm(self) -> None:
        """Remove the hooks and forget the copies."""
        self._hooks.remove()
        self._before = {}
        self._numbers = {}

    def _keep_weights(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        for group in optimizer.param_groups:
            self._before |= {id(parameter): _sample(parameter).clone() for parameter in group["params"]}

    def _compare(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        parameters = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        stepped = parameters & self._before.keys()
        groups = {
            name: [
                _Step(self._before[id(tensor)], tensor) for tensor in group["params"] if id(tensor) in stepped
            ]
            for name, group in self.subject.parts.groups
        }
        steps = [step for steps_of_group in groups.values() for step in steps_of_group]
        numbers = {**_update_ratios(groups), **_unmoved(steps), **_lost_updates(steps)}
        self._before = {}
        self._numbers = {**self._numbers, **numbers}


class _Step(NamedTuple):
    """Evenly spread weights of a tensor before a step, and the tensor after it."""

    old: "torch.Tensor"
    parameter: "torch.Tensor"

    def squares(self) -> "torch.Tensor":
        """Return the sums of squares of the update and of the weights."""
        import torch

        weights = self.old.float()
        update = _sample(self.parameter).float() - weights
        return torch.stack([update.square().sum(), weights.square().sum()])

    def moved(self) -> "torch.Tensor":
        """Return whether any weight is another one."""
        return (_sample(self.parameter) != self.old).any()

    def is_half(self) -> bool:
        """Return whether the weights are kept in 16 bits and have a gradient."""
        return self.parameter.grad is not None and self.parameter.element_size() <= _BYTES_OF_HALF

    def lost(self) -> "torch.Tensor":
        """Return how many weights a gradient did not move, and how many had a gradient."""
        import torch

        gradient: Any = self.parameter.grad
        has_gradient = _sample(gradient) != 0
        return torch.stack([(has_gradient & (_sample(self.parameter) == self.old)).sum(), has_gradient.sum()])


def _update_ratios(groups: "Mapping[str, Sequence[_Step]]") -> Numbers:
    """Return how far each group moved, as a fraction of the size of its weights."""
    import torch

    numbers: dict[str, torch.Tensor | float] = {}
    for name, steps in groups.items():
        if trained := [step for step in steps if step.parameter.requires_grad]:
            moved, size = torch.stack([step.squares() for step in trained]).sum(0)
            numbers[f"update_ratio/{name}"] = (moved / size.clamp_min(_MIN_SQUARE)).sqrt()
    return numbers


def _unmoved(steps: "Sequence[_Step]") -> Numbers:
    """Return which share of the trained tensors stayed as they were, and how many frozen ones moved."""
    import torch

    numbers: dict[str, torch.Tensor | float] = {}
    if trained := [step for step in steps if step.parameter.requires_grad]:
        unchanged = torch.stack([~step.moved() for step in trained])
        numbers["params/unchanged_after_step"] = unchanged.float().mean()
    if frozen := [step for step in steps if not step.parameter.requires_grad]:
        numbers["params/frozen_moved"] = torch.stack([step.moved() for step in frozen]).sum()
    return numbers


def _lost_updates(steps: "Sequence[_Step]") -> Numbers:
    """Return which share of the weights in 16 bits a gradient did not move."""
    import torch

    half = [step for step in steps if step.is_half()]
    if not half:
        return {}
    lost, with_gradient = torch.stack([step.lost() for step in half]).sum(0)
    return {"params/lost_updates": lost / with_gradient.clamp_min(1)}


def _sample(parameter: "torch.Tensor") -> "torch.Tensor":
    """Return evenly spread weights of a tensor; of a sharded one, of the part that lies here."""
    sample: Any = parameter.detach()
    local = sample.to_local() if hasattr(sample, "to_local") else sample
    flat: torch.Tensor = local.reshape(-1)
    return flat[:: max(1, flat.numel() // _MAX_WEIGHTS)]
