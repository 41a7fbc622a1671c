"""Rough curves of a run from its stored state, for a list of many runs."""

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.series.stream import Stream

OBJECTIVES = ("loss", "reward", "policy_loss", "eval_loss")
"""Signals that say most about a run in which nothing is wrong, the best first."""


class Lead(msgspec.Struct, frozen=True):
    """The curve that says most about a run; empty if it has none.

    ``program`` is equal for runs of one training program, as far as what they log tells. ``onset`` is the
    index of the value at which the trouble of the run began; None without one.
    """

    tag: str = ""
    values: Sequence[float] = ()
    program: Hashable = None
    onset: int | None = None


class Outline(msgspec.Struct, frozen=True):
    """The signal of a tag, and the curve of its means."""

    signal: str
    steps: Sequence[int]
    values: Sequence[float]


def onset_in(steps: Sequence[int], onset_step: int | None) -> int | None:
    """Return the index of the last of the steps up to an onset; None without an onset or a step."""
    return None if onset_step is None or not steps else max(bisect_right(steps, onset_step) - 1, 0)


def outlines(streams: Mapping[str, list[Any]]) -> dict[str, Outline]:
    """Return the outline of each tag that detectors judge, with its means in at most 64 buckets, by tag.

    ``streams`` are the states of a run's streams (`Stream.dump`). The means are of the present attempt.
    """
    curves: dict[str, Outline] = {}
    for state in streams.values():
        for spec_key, history_by_tag in Stream.attempt_in(state).series.items():
            signal = spec_key.partition("+")[0].rstrip("?")
            for tag, history in history_by_tag.items():
                if tag not in curves:
                    mean: NDArray[np.float64] = history.coarse.mean
                    is_finite = np.isfinite(mean)
                    steps = history.coarse.step[is_finite].tolist()
                    curves[tag] = Outline(signal, steps, mean[is_finite].tolist())
    return curves
