"""What a model that sees images makes of them: its loss with the images of other samples, less its own.

A model that answers from the text alone has the same loss with any image.

## Cost
Two forward passes over each of the first two batches of an evaluation; nothing in the training.

## When it misleads
It needs `loss_of=`, a function that gives the loss of a batch without dropout, and batches with
`pixel_values` or `images`. Questions that need no image lower the number.

## Source
Probe `vlm/image_ablation_delta` of the catalogue (X5): a hundredth of the loss is too little.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_IMAGE_INPUTS = ("pixel_values", "images")
_MAX_BATCHES = 2  # of an evaluation, each with and without its images


class ImageAblation(
    ProbeSet,
    shows={
        "vlm/image_ablation_delta": "loss with the images of other samples minus that with their own",
        "vlm/image_gain": "the same over the loss",
    },
    entries=("X5",),
):
    """Rolls the images of a batch by one sample."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._losses: list[tuple[torch.Tensor, torch.Tensor]] = []

    def evaluate(self, moment: Moment) -> None:
        """Ask for the loss of a batch twice, in evaluation mode alone."""
        ask = self.subject.loss_of
        batch = moment.batch
        if ask is None or not isinstance(batch, Mapping) or len(self._losses) >= _MAX_BATCHES:
            return
        name = next((name for name in _IMAGE_INPUTS if name in batch), None)
        if name is not None and len(batch[name]) > 1 and not self.subject.model.training:
            shuffled = {**batch, name: batch[name].roll(1, 0)}
            self._losses.append((ask(batch), ask(shuffled)))

    def evaluated(self) -> Numbers:
        """Return two numbers of the batches that were asked."""
        import torch

        if not self._losses:
            return {}
        with_image, other = (torch.stack(losses).mean() for losses in zip(*self._losses, strict=True))
        self._losses = []
        delta = other - with_image
        return {
            "vlm/image_ablation_delta": delta,
            "vlm/image_gain": delta / with_image.abs().clamp_min(1e-12),
        }
