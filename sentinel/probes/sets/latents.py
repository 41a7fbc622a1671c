"""The latents of a diffusion model, and how often the condition is dropped.

Latents with a deviation far from one do not fit the noise schedule. A condition that is never dropped leaves
guidance without an effect.

## Cost
Two reductions over the latents of a step, on their device.

## When it misleads
It needs `latents=`, after scaling, and `condition_dropped=`. Some models are made for latents of another
deviation. Distilled models drop no condition on purpose.

## Source
Probes `latents/std` and `cond_drop_rate` of the catalogue (DF3, DF5): a deviation of 0.7 to 1.4.
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet


class Latents(
    ProbeSet,
    shows={
        "latents/mean": "mean of the scaled latents of a batch",
        "latents/std": "deviation of the scaled latents of a batch",
        "data/condition_dropped": "share of the samples whose condition was dropped",
    },
    entries=("DF3", "DF5"),
):
    """Numbers of what the loop hands over."""

    def measure(self, moment: Moment) -> Numbers:
        """Return up to three numbers."""
        import torch

        numbers: dict[str, torch.Tensor | float] = {}
        if moment.latents is not None:
            latents = moment.latents.detach().float()
            numbers = {"latents/mean": latents.mean(), "latents/std": latents.std(correction=0)}
        if moment.condition_dropped is not None:
            numbers["data/condition_dropped"] = torch.as_tensor(moment.condition_dropped).float().mean()
        return numbers
