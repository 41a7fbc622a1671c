"""The size of the logits.

In long trainings logits may drift away together, which changes no probability until they overflow.

## Cost
One log-sum-exp over the logits of a step, on their device.

## When it misleads
It needs `outputs=`, or what holds them as `logits`, and labels in the batch that are whole numbers: outputs
of a regression are no logits.

## Source
Probes `logits/log_z` and `logits/max` of the catalogue (L6, A-nan-logsoftmax); the z-loss of PaLM.
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet


class Logits(
    ProbeSet,
    shows={
        "logits/log_z": "mean logarithm of the sum of the exponentials of the logits",
        "logits/max": "largest logit",
    },
    entries=("L6", "A-nan-logsoftmax"),
):
    """Two numbers of the logits of a step."""

    def measure(self, moment: Moment) -> Numbers:
        """Return the numbers, if the loop hands over outputs and the classes that they ought to be."""
        logits = moment.logits()
        labels = moment.labels()
        if logits is None or labels is None or labels.is_floating_point():
            return {}
        wide = logits.detach().float()
        return {"logits/log_z": wide.logsumexp(-1).mean(), "logits/max": wide.max()}
