"""Rough curves of a run from its stored state, for a list of many runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.series.stream import Stream

OBJECTIVES = ("loss", "reward", "policy_loss", "eval_loss")
"""Signals that say most about a run in which nothing is wrong, the best first."""


def outlines(streams: Mapping[str, list[Any]]) -> dict[str, tuple[str, NDArray[np.float64]]]:
    """Return the signal of each tag that detectors judge, and its means in at most 64 buckets, by tag.

    ``streams`` are the states of a run's streams (`Stream.dump`). The means are of the present attempt.
    """
    curves: dict[str, tuple[str, NDArray[np.float64]]] = {}
    for state in streams.values():
        for spec_key, history_by_tag in Stream.attempt_in(state).series.items():
            signal = spec_key.partition("+")[0].rstrip("?")
            for tag, history in history_by_tag.items():
                if tag not in curves:
                    mean = history.coarse.view()["coarse_mean"]
                    curves[tag] = signal, mean[np.isfinite(mean)]
    return curves
