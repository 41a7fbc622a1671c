"""Measures signals of runs beside one another: where they end, their best, and from when on they differ."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit  # scipy.stats has the same and takes a second to import

from sentinel.comparison.means import TagCourses
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.plan import planned

OUTCOMES = (
    Signal.EVAL_LOSS,
    Signal.EVAL_ACCURACY,
    Signal.EVAL_SCORE,
    Signal.EVAL_REWARD,
    Signal.REWARD,
    Signal.LOSS,
    Signal.PREFERENCE_LOSS,
    Signal.ACCURACY,
)
"""What a run is judged by, the most telling first. The first one that all runs log decides."""

LOSSES = (Signal.EVAL_LOSS, Signal.LOSS, Signal.PREFERENCE_LOSS)
"""Of these outcomes, the lower is the better one."""

COMPARED = (*OUTCOMES, Signal.TOKENS_PER_SECOND, Signal.THROUGHPUT, Signal.STEP_TIME, Signal.GRAD_NORM)

_CHANCE = 0.0027  # of a difference beyond three standard deviations
_COURSE_POINTS = 64  # of a course
_END_POINTS = 6  # points at an end of the course, about a tenth of it
_MIN_APART_POINTS = 4  # points at the end that have to be apart

Course = NDArray[np.float64]
"""A signal at `_COURSE_POINTS` steps, evenly spaced over the steps that all runs of a group have."""

Courses = Mapping[Signal, Mapping[str, Sequence[Course]]]
"""The courses of the runs of each arm, by signal and value."""


class ComparedRun(NamedTuple):
    """A run to compare: its name, flat settings, tags by signal, and the courses of its tags."""

    name: str
    settings: Mapping[str, object]
    signals: Mapping[str, Sequence[str]]
    means: TagCourses


class SignalInArms(msgspec.Struct, frozen=True):
    """Where a signal ends in each arm and its best value there, as means over its runs.

    ``bests`` is empty for a signal that runs are not judged by. Single points do not count as the best.
    ``spread`` is the standard deviation between runs of one arm, None if no arm has two. Then nothing tells
    whether the arms differ by more than chance, and ``beyond_chance`` is None as well.
    """

    signal: Signal
    ends: Mapping[str, float]
    bests: Mapping[str, float]
    spread: float | None
    beyond_chance: bool | None


class Finding(msgspec.Struct, frozen=True):
    """What a comparison shows, in a sentence, with the catalogue entries that it is about."""

    text: str
    catalogue: Sequence[str] = ()


class Comparison(msgspec.Struct, frozen=True):
    """Runs that differ in one setting. ``arms`` has their names by its value.

    Or a run beside its baseline: the arms are "this run" and "baseline".
    """

    setting: str
    arms: Mapping[str, Sequence[str]]
    measures: Sequence[SignalInArms]
    findings: Sequence[Finding]
    is_with_baseline: bool = False


def courses_of(signal: Signal, arms: Mapping[str, Sequence[ComparedRun]]) -> dict[str, list[Course]]:
    """Return the courses of a signal by arm. Empty if a run lacks it, or if the runs share no steps.

    Runs that take several times as many samples a step are compared at equal samples.
    """
    subjects = [run for runs in arms.values() for run in runs]
    tags = [set(subject.signals.get(signal, ())) for subject in subjects]
    shared = set.intersection(*tags)
    if not shared:
        return {}
    tag = next(tag for tag in subjects[0].signals[signal] if tag in shared)
    by_arm = {value: [_by_samples(run, tag) for run in runs] for value, runs in arms.items()}
    all_steps = [steps for courses in by_arm.values() for steps, _ in courses]
    if any(len(steps) == 0 for steps in all_steps):
        return {}
    first_step = max(steps[0] for steps in all_steps)
    last_step = min(steps[-1] for steps in all_steps)
    if first_step > last_step:
        return {}
    grid_steps = np.linspace(first_step, last_step, _COURSE_POINTS)
    return {
        value: [np.interp(grid_steps, *course) for course in courses] for value, courses in by_arm.items()
    }


def _by_samples(subject: ComparedRun, tag: str) -> tuple[Course, Course]:
    step, mean = subject.means.course(tag)
    plan = planned(subject.settings)
    parts = Setting.BATCH_SIZE, Setting.ACCUMULATION_STEPS, Setting.WORLD_SIZE
    return step * np.prod([plan.get(part, 1.0) for part in parts]), mean


def smooth(courses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the medians of so many neighbouring points as an end has, a row for each course."""
    smoothed: NDArray[np.float64] = np.median(sliding_window_view(courses, _END_POINTS, axis=1), axis=2)
    return smoothed


def _best(signal: Signal, courses: Sequence[Course]) -> float | None:
    """Return the lowest loss or the highest score of neighbouring points, in the mean over runs."""
    if signal not in OUTCOMES:
        return None
    smoothed = smooth(np.array(courses))
    return float(np.mean(smoothed.min(axis=1) if signal in LOSSES else smoothed.max(axis=1)))


def measured(signal: Signal, courses: Mapping[str, Sequence[Course]]) -> SignalInArms:
    """Return what the courses of a signal, by arm, show of it."""
    ends = {
        value: [float(np.median(course[-_END_POINTS:])) for course in arm] for value, arm in courses.items()
    }
    means = {value: float(np.mean(arm)) for value, arm in ends.items()}
    bests = {value: best for value, arm in courses.items() if (best := _best(signal, arm)) is not None}
    freedom = sum(len(arm) - 1 for arm in ends.values())
    if freedom == 0:
        return SignalInArms(signal, means, bests, None, None)
    squares = sum(float(np.var(arm)) * len(arm) for arm in ends.values())
    spread = float(np.sqrt(squares / freedom))
    return SignalInArms(signal, means, bests, spread, len(ends) > 1 and _apart(ends, means, spread, freedom))


def _apart(
    ends: Mapping[str, Sequence[float]], means: Mapping[str, float], spread: float, freedom: int
) -> bool:
    """Return whether the lowest and the highest arm differ by more than chance.

    It is Student's test with Bonferroni's correction, as these two are chosen from all pairs of arms.
    """
    low = min(means, key=means.__getitem__)
    high = max(means, key=means.__getitem__)
    error = spread * np.sqrt(1 / len(ends[low]) + 1 / len(ends[high]))
    pairs = math.comb(len(ends), 2)
    return bool(means[high] - means[low] > error * -stdtrit(freedom, _CHANCE / 2 / pairs))


def parting(courses: Mapping[str, Sequence[Course]]) -> float | None:
    """Return the share of the course from which on two arms stay apart by more than their noise."""
    if len(courses) != 2:
        return None
    first, other = (np.mean(arm, axis=0) for arm in courses.values())
    gap = first - other
    changes = np.diff(gap)
    deviation = np.median(np.abs(changes - np.median(changes))) / ndtri(0.75)  # the standard one, if normal
    noise = deviation / np.sqrt(2)
    together = np.flatnonzero((np.abs(gap) <= 3 * noise) | (np.sign(gap) != np.sign(gap[-1])))
    begin = int(together[-1]) + 1 if len(together) else 0
    return begin / _COURSE_POINTS if begin <= _COURSE_POINTS - _MIN_APART_POINTS else None
