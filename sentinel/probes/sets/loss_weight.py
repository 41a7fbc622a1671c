"""With which weight the loss of a classifier or a language model enters the gradient; 1 is right.

A loss that is scaled twice, divided twice by the number of micro-batches or not divided at all is logged as
it ought to be. Adam hides it, clipping hides half of it, and weight decay no longer fits.

The gradient of a mean cross-entropy on the logits says by which weight it was multiplied: in each row the
only negative entry, that of the label, is the weight times (1 - p)/N, where p is the label's probability.

## Cost
A softmax over the logits of the step, on the device.

## When it misleads
It speaks of a cross-entropy alone, and is silent where the rows of the gradient do not sum to zero. Label
smoothing lowers it by a few percent. A loss that is one of several terms has the weight of its term. With
`reduction="sum"` it is the number of samples.

## Source
Entries O9 and G2 of the catalogue; the derivative of `torch.nn.functional.cross_entropy`.
"""

from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Hooks, Moment, Numbers, ProbeSet, Subject, Unsuitable

if TYPE_CHECKING:
    import torch

_GRADIENT_ROUNDING = 0.02  # of a row's largest entry, by which 16 bits may miss a sum of zero


class LossWeight(
    ProbeSet,
    shows={"loss/weight": "factor by which the gradient differs from that of the mean cross-entropy"},
    entries=("O9", "G2", "GA"),
):
    """Watches the gradient of the model's logits by hooks that live for one step."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        if subject.is_compiled():
            raise Unsuitable("hooks would make torch.compile compile the model again")
        self._hooks = Hooks()
        self._weights: list[torch.Tensor] = []

    def arm(self) -> None:
        """Look at the outputs of the next forward passes."""
        self._hooks.add(self.subject.model.register_forward_hook, self._measure_logits)

    def measure(self, moment: Moment) -> Numbers:
        """Return the weights of all micro-batches together; nothing if the loss is no cross-entropy."""
        import torch

        self._hooks.raise_failure()
        if not self._weights:
            return {}
        scale = getattr(moment.scaler, "_scale", None)  # the tensor, because `get_scale` waits for the device
        weight = torch.stack(self._weights).sum()
        weight = weight if scale is None else weight / scale.to(weight.device)
        return {"loss/weight": weight}

    def disarm(self) -> None:
        """Remove the hooks and forget the weights."""
        self._hooks.remove()
        self._weights = []

    def _measure_logits(self, model: Any, _: Any, outputs: Any) -> None:
        logits = Moment(outputs=outputs).logits()
        if model.training and logits is not None and logits.requires_grad:
            detached = logits.detach()
            self._hooks.add(logits.register_hook, lambda gradient: self._weigh(detached, gradient))

    def _weigh(self, logits: "torch.Tensor", gradient: "torch.Tensor") -> None:
        import torch

        classes = 1 if logits.ndim > 3 else -1  # an image of logits has its classes second
        rows, slopes = (tensor.movedim(classes, -1).flatten(0, -2).float() for tensor in (logits, gradient))
        pushed = slopes.amin(1) < 0
        least, label = slopes.min(1)
        missing = 1 - rows.softmax(1).gather(1, label[:, None])[:, 0]
        missing = missing.masked_fill(~pushed, 0.0)
        fits = slopes.sum(1).abs() <= _GRADIENT_ROUNDING * slopes.abs().amax(1)
        weight = -pushed.sum() * least.masked_fill(~pushed, 0.0).sum() / missing.sum().clamp_min(1e-12)
        self._weights.append(torch.where(fits.all(), weight, torch.nan))
