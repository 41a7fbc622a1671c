"""The gradient norm as backward left it and as the optimizer got it, and where in the model it vanishes.

The norm before clipping tells an explosion that clipping hides; both together tell how much is clipped away.
A first layer whose gradient is a thousandth of the last one's learns next to nothing.

## Cost
The norm of each gradient, twice, and that of each weight, on the device.

## When it misleads
With a GradScaler the norm of backward is divided by the scale that is in force when the step ends. With
accumulation it is that of the sum so far. It is not measured where ranks share the gradients, because there
each rank has only a part.

## Source
Probes `grad/*` of the catalogue (GV, GE, G3, G4, G10, G-ratio).
"""

from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject, Unsuitable
from sentinel.probes.sets.carried_gradients import square

if TYPE_CHECKING:
    import torch


class Gradients(
    ProbeSet,
    shows={
        "grad/norm_before_clipping": "gradient norm as backward left it, before clipping",
        "grad/norm_after_clipping": "gradient norm as the optimizer got it",
        "grad/kept_share": "norm after clipping over norm before",
        "grad/param_ratio": "norm after clipping over norm of the weights",
        "grad/late_early_ratio": "gradient norm of the last tensors over that of the first ones",
    },
    entries=("GV", "GE", "G3", "G4", "G10", "G-ratio"),
):
    """Norms of gradients before and after clipping."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        import torch.distributed as together

        if together.is_available() and together.is_initialized() and together.get_world_size() > 1:
            raise Unsuitable("the gradients of one rank are not those of the step")
        self._hooks = Hooks()
        self._left: dict[int, torch.Tensor] = {}  # squared norms as backward left them
        self._got: list[tuple[torch.Tensor, torch.Tensor]] = []  # of gradients and weights

    def arm(self) -> None:
        """Watch each gradient until the optimizer steps."""
        for parameter in self.subject.optimized():
            self._hooks.add(parameter.register_post_accumulate_grad_hook, self._arrived)
        for optimizer in self.subject.optimizers:
            self._hooks.add(optimizer.register_step_pre_hook, self._handed_over)

    def measure(self, moment: Moment) -> Numbers:
        """Return what backward and the optimizers saw."""
        import torch

        self._hooks.raise_failure()
        numbers: dict[str, torch.Tensor | float] = {}
        norms = list(self._left.values())  # backward reaches the last layer first
        if norms:
            scale = getattr(moment.scaler, "_scale", None)  # `get_scale` would wait for the device
            before = torch.stack(norms).sum().sqrt() / (1.0 if scale is None else scale)
            numbers["grad/norm_before_clipping"] = before
        if self._got:
            after = torch.stack([gradient for gradient, _ in self._got]).sum().sqrt()
            weights = torch.stack([weight for _, weight in self._got]).sum().sqrt()
            numbers["grad/norm_after_clipping"] = after
            numbers["grad/param_ratio"] = after / weights.clamp_min(1e-30)
            if norms:
                numbers["grad/kept_share"] = after / before.to(after.device).clamp_min(1e-30)
        if len(norms) >= 4:
            quarter = len(norms) // 4
            late = torch.stack(norms[:quarter]).sum()
            early = torch.stack(norms[-quarter:]).sum()
            numbers["grad/late_early_ratio"] = (late / early.clamp_min(1e-30)).sqrt()
        return numbers

    def disarm(self) -> None:
        """Remove the hooks and forget the norms."""
        self._hooks.remove()
        self._left = {}
        self._got = []

    def _arrived(self, parameter: "torch.Tensor") -> None:
        if parameter.grad is not None:
            self._left[id(parameter)] = square(parameter.grad)

    def _handed_over(self, optimizer: "torch.optim.Optimizer", *_: Any) -> None:
        parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
        pairs = [(parameter.grad, parameter) for parameter in parameters if parameter.grad is not None]
        self._got += [(square(gradient), square(parameter)) for gradient, parameter in pairs]
