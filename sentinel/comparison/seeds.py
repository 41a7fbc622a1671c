"""Whether runs that differ in the seed alone end far apart: some learn, and others do not.

Where they do, neither their mean nor one of them is a result: see https://arxiv.org/abs/1709.06560, in which
the seed alone parts runs of one program. The rule asks for a part of the gain, not for a number of deviations
between the ends, as it is the gain that a reader of a curve looks for.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentinel.comparison.measures import LOSSES, OUTCOMES, ComparedRun, courses_of, smooth
from sentinel.detectors.signals import Signal

ENOUGH_SEEDS = 5
"""Runs that a result takes (R6); https://arxiv.org/abs/2108.13264 takes no fewer."""

_MIN_LENGTH = 0.9  # share of the longest run's steps that a run has, if nothing cut it short
_GAIN_SHARE = 0.5  # of the gain; beside 240 healthy runs of twelve programs none lacks more than 0.17 of it
_MIN_GAIN = 4.0  # in deviations between beginnings; of simulated flat fives, 3 % at most have as much


class SeedsApart(NamedTuple):
    """Of so many ``runs``, the names of those that fall ``short`` of the best one, the worst first.

    ``low`` and ``high`` are the lowest and the highest end of all of them.
    """

    signal: Signal
    runs: int
    short: Sequence[str]
    low: float
    high: float


def seeds_apart(runs: Sequence[ComparedRun]) -> SeedsApart | None:
    """Return the runs, if they end far apart in what they are judged by; None also if too few went to the
    end.

    Some stay below half of what the best one gains in the whole second half of the course, and others rise
    above it and stay there. So what goes up and down within a run does not count, nor does what differs from
    the beginning on. Copies of a run count once.
    """
    for signal in OUTCOMES:
        whole_runs = _complete_runs(runs, signal)
        courses = courses_of(signal, {"": whole_runs}).get("", ()) if len(whole_runs) >= ENOUGH_SEEDS else ()
        once = {course.tobytes(): number for number, course in enumerate(courses)}.values()
        if len(once) >= ENOUGH_SEEDS:
            names = [whole_runs[number].name for number in once]
            return _apart(signal, names, np.array([courses[number] for number in once]))
    return None


def _complete_runs(runs: Sequence[ComparedRun], signal: Signal) -> list[ComparedRun]:
    """Return the runs that log a signal, without those that ended before the others."""
    last_steps = []
    for run in runs:
        steps_by_tag = [run.means.course(tag)[0] for tag in run.signals.get(signal, ())]
        last_steps.append(max((int(steps[-1]) for steps in steps_by_tag if len(steps)), default=-1))
    min_last_step = max(0, _MIN_LENGTH * max(last_steps))
    return [run for run, step in zip(runs, last_steps, strict=True) if step >= min_last_step]


def _apart(signal: Signal, names: Sequence[str], courses: NDArray[np.float64]) -> SeedsApart | None:
    smoothed = smooth(courses)
    sign = -1 if signal in LOSSES else 1
    begin = sign * courses[:, 0]
    late = sign * smoothed[:, courses.shape[1] // 2 :]
    gain = (sign * smoothed).max() - np.median(begin)
    limit = np.median(begin) + _GAIN_SHARE * gain
    short = late.max(axis=1) < limit
    learned = (late.min(axis=1) > limit) & (begin < limit)
    if gain <= _MIN_GAIN * begin.std(ddof=1) or not short.any() or not learned.any():
        return None
    worst = [names[run] for run in np.argsort(late[:, -1]) if short[run]]
    ends = smoothed[:, -1]
    return SeedsApart(signal, len(names), worst, float(ends.min()), float(ends.max()))
