"""How far an optimizer's step moves the weights, and which it does not move at all.

A healthy step changes a weight by about a thousandth of its size. Tensors that a step leaves as they were,
byte for byte, get no gradient or are held by nobody.

## Cost
A copy of at most 65,536 weights of each tensor, on the device, at each measurement.

## When it misleads
In warm-up the ratio is small because the rate is. Tensors that start at zero, such as biases and LoRA's
second matrix, have a large ratio at first. A step that the scaler skipped moves nothing.

## Source
Probes `update_ratio/<group>` and `params/unchanged_after_step` of the catalogue (O22); a ratio of 1e-3 is
Karpathy's rule of thumb.
"""

from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_MOST_OF_A_TENSOR = 1 << 16  # weights; their ratio tells that of the whole within a percent


class Updates(
    ProbeSet,
    shows={
        "update_ratio/<group>": "norm of a group's update over the norm of its weights",
        "params/unchanged_after_step": "share of the tensors that the step left as they were",
    },
    entries=("O22", "O7", "O17", "G3", "X3", "O2", "O4"),
):
    """Compares weights before and after the step of their optimizer."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._hooks = Hooks()
        self._before: dict[int, torch.Tensor] = {}
        self._found: Numbers = {}

    def arm(self) -> None:
        """Let the optimizers say when they step."""
        self._found = {}
        for optimizer in self.subject.optimizers:
            self._hooks.add(optimizer.register_step_pre_hook(self._keep))
            self._hooks.add(optimizer.register_step_post_hook(self._compare))

    def measure(self, moment: Moment) -> Numbers:
        """What the step's hooks found; nothing if no optimizer stepped."""
        return self._found

    def disarm(self) -> None:
        """Remove the hooks and forget the copies."""
        self._hooks.remove()
        self._before, self._found = {}, {}

    def _keep(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        for group in optimizer.param_groups:
            self._before |= {id(one): _sample(one).clone() for one in group["params"] if one.requires_grad}

    def _compare(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        import torch

        held = {id(one) for group in optimizer.param_groups for one in group["params"]}
        unchanged: list[torch.Tensor] = []
        found: dict[str, torch.Tensor | float] = {}
        for name, group in self.subject.groups():
            pairs = [
                (self._before[id(one)], _sample(one))
                for one in group["params"]
                if id(one) in held and id(one) in self._before
            ]
            if not pairs:
                continue
            moved = torch.stack([(new.float() - old.float()).square().sum() for old, new in pairs]).sum()
            size = torch.stack([old.float().square().sum() for old, _ in pairs]).sum()
            found[f"update_ratio/{name}"] = (moved / size.clamp_min(1e-30)).sqrt()
            unchanged += [(old == new).all() for old, new in pairs]
        if unchanged:
            found["params/unchanged_after_step"] = torch.stack(unchanged).float().mean()
        self._before = {}
        self._found = {**self._found, **found}


def _sample(parameter: "torch.Tensor") -> "torch.Tensor":
    """Evenly spread weights of a tensor; of a sharded one, of the part that lies here."""
    part: Any = parameter.detach()
    here = part.to_local() if hasattr(part, "to_local") else part
    flat: torch.Tensor = here.reshape(-1)
    return flat[:: max(1, flat.numel() // _MOST_OF_A_TENSOR)]
