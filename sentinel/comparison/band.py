"""The band of a signal among siblings, and whether a run leaves it on the bad side for too long.

The band has a level and a noise at each point of the plan: the mean of the siblings and the spread between
them. How far a run may leave it is not set by hand. Each sibling in turn is held against the others, and the
worst that healthy siblings show sets the limit which at most `ONE_IN` of them would reach.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

COURSE_POINTS = 32
"""Points of a course over the plan. The courses of `Means` have 32 to 64 stretches, so that each has one."""

ONE_IN = 200
"""At most one healthy run in so many is worse than its siblings."""

MIN_SIBLINGS = 3
"""With fewer there is no band."""

MAX_SIBLINGS = 32
"""A band rests on no more."""

_MEDIAN_POINTS = 5  # points whose median counts, so that two are outliers; an eighth of the plan
_SMOOTHING_POINTS = 2  # at either side, with which a point shares its spread: few siblings tell little of it
_MIN_NOISE = 1e-3  # spread that siblings have at least, as a share of their level: logs round

Course = NDArray[np.float64]
"""A signal at `COURSE_POINTS` shares of the plan; NaN where a run has not got to."""


class SiblingBand(NamedTuple):
    """The level and the noise of siblings at each point, and the limit of the score."""

    level: Course
    noise: Course
    limit: float


class Departure(NamedTuple):
    """Where a run left the band for too long: the points at which that began and at which it was certain.

    ``score`` is how far it was off then, in the noise of its siblings.
    """

    onset: int
    position: int
    score: float


def aligned(step: NDArray[np.int64], value: Course, plan: float, whole: bool) -> Course:
    """Return a course by share of the plan: the mean of the values around each point, with gaps filled.

    Of a run that goes on, not ``whole``, the point at which it is does not count. Neither do steps beyond
    the plan.
    """
    bucket = np.maximum(np.ceil(step[step <= plan] * COURSE_POINTS / plan), 1).astype(np.int64) - 1
    value = value[step <= plan]
    count = np.bincount(bucket, minlength=COURSE_POINTS)
    filled = np.flatnonzero(count)
    course = np.full(COURSE_POINTS, np.nan)
    if len(filled):
        total = np.bincount(bucket, value, minlength=COURSE_POINTS)
        last = int(filled[-1]) + bool(whole)
        course[:last] = np.interp(np.arange(last), filled, total[filled] / count[filled])
    return course


def band(siblings: NDArray[np.float64], tests: int) -> SiblingBand:
    """Return the band of healthy runs, a row each, if so many ``tests`` share the chance of a false alarm.

    The limit is that of a further run, if scores are normal: the largest scores of the siblings, each against
    the others, have a mean and a spread, of which few siblings tell little.
    """
    return _band(siblings.tobytes(), len(siblings), tests)


@lru_cache(256)  # all runs of a large program that are no siblings of others have the same ones
def _band(content: bytes, count: int, tests: int) -> SiblingBand:
    from scipy.special import stdtrit  # slow to import, and most runs have no siblings

    siblings = np.frombuffer(content).reshape(count, -1)
    level = siblings.mean(axis=0)
    off = siblings - level
    squares = (off**2).sum(axis=0)
    # of the others of each sibling: their mean, and their squared distances from it
    levels = level - off / (count - 1)
    others = np.maximum(squares - off**2 * count / (count - 1), 0.0)
    worst = scores(siblings, levels, _noise(levels, others / (count - 2), count - 1)).max(axis=1)
    unlikely = -float(stdtrit(count - 1, 1 / ONE_IN / tests))
    limit = worst.mean() + unlikely * worst.std(ddof=1) * np.sqrt(1 + 1 / count)
    return SiblingBand(level, _noise(level, squares / (count - 1), count), max(float(limit), unlikely))


def _noise(level: Course, variance: Course, count: int) -> Course:
    """Return the spread around the level of ``count`` runs, of a further run. Courses are the last axis."""
    around = np.pad(
        variance * (1 + 1 / count),
        [(0, 0)] * (variance.ndim - 1) + [(_SMOOTHING_POINTS, _SMOOTHING_POINTS)],
        mode="edge",
    )
    near = sliding_window_view(around, 2 * _SMOOTHING_POINTS + 1, axis=-1).mean(axis=-1)
    noise: Course = np.sqrt(np.maximum(near, (_MIN_NOISE * level) ** 2) + np.finfo(float).tiny)
    return noise


def scores(course: Course, level: Course, noise: Course) -> Course:
    """Return how far above its siblings a run lastingly is at each point, in their noise.

    It is NaN where the run has not got to, and minus infinity at the first points, which are too few.
    """
    off = (course - level) / noise
    scores = np.full_like(off, -np.inf)
    scores[..., _MEDIAN_POINTS - 1 :] = np.median(sliding_window_view(off, _MEDIAN_POINTS, axis=-1), axis=-1)
    return scores


def departure(course: Course, siblings: SiblingBand) -> Departure | None:
    """Return where a run left the band upwards for too long; None if it did not."""
    score = scores(course, siblings.level, siblings.noise)
    beyond = np.flatnonzero(score > siblings.limit)
    if not len(beyond):
        return None
    departed_at = int(beyond[0])
    within = np.flatnonzero(
        (course - siblings.level)[: departed_at + 1] <= siblings.limit * siblings.noise[: departed_at + 1]
    )
    return Departure(int(within[-1]) + 1 if len(within) else 0, departed_at, float(score[departed_at]))
