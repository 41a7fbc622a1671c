"""The Fréchet distance between features of real and of generated samples.

The loss of a generative model says little about its samples.

## Cost
The square root of a matrix at an evaluation, on the host; nothing in the training.

## When it misleads
It needs `probe.evaluate(features=(real, generated))`, each of more samples than dimensions. It is the known
FID only with the features of the Inception network.

## Source
Probe `fid` of the catalogue (DF1); Heusel and others, 2017.
"""

from typing import Any

import numpy as np

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject


class GeneratedSamples(
    ProbeSet,
    shows={"fid": "Fréchet distance between the features of real and of generated samples"},
    entries=("DF1",),
    needs_torch=False,
):
    """Takes the features of an evaluation."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._features: tuple[Any, Any] | None = None

    def evaluate(self, moment: Moment) -> None:
        """Take the features, if the evaluation hands them over."""
        if moment.features is not None:
            self._features = moment.features

    def evaluated(self) -> Numbers:
        """Return one number."""
        if self._features is None:
            return {}
        (real, generated) = self._features
        self._features = None
        return {"fid": frechet_distance(_feature_array(real), _feature_array(generated))}


def frechet_distance(real: Any, generated: Any) -> float:
    """Return the distance between the normal distributions that fit two arrays of samples x dimensions."""
    means = real.mean(0) - generated.mean(0)
    first, second = (np.atleast_2d(np.cov(features, rowvar=False)) for features in (real, generated))
    roots = np.sqrt(np.linalg.eigvals(first @ second).real.clip(0))
    return float(means @ means + np.trace(first) + np.trace(second) - 2 * roots.sum())


def _feature_array(features: Any) -> Any:
    on_host = features.detach().cpu() if hasattr(features, "detach") else features
    return np.asarray(on_host, dtype=np.float64)
