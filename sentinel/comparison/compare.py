"""Compares runs that differ in one setting: where they end, what is chance, and from when they differ."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from detectors.evidence import measure_of
from detectors.settings import Setting
from detectors.signals import Signal
from sentinel.comparison.groups import Group, grouped
from sentinel.comparison.means import Means
from sentinel.frames.plan import planned

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

COMPARED = (*OUTCOMES, Signal.TOKENS_PER_SECOND, Signal.THROUGHPUT, Signal.STEP_TIME, Signal.GRAD_NORM)

_ENOUGH_SEEDS = 5  # R6; https://arxiv.org/abs/2108.13264 takes no fewer
_CHANCE = 0.0027  # of a difference beyond three standard deviations
_PLACES = 64
_END = 6  # places at an end of the course, about a tenth of it
_PARTED = 4  # places at the end that have to be apart
_RATIO_BAND = 0.25  # O9: a ratio is expected within a quarter

Course = NDArray[np.float64]
"""A signal at `_PLACES` places, evenly spaced over the steps that all runs of a group have."""

Courses = Mapping[Signal, Mapping[str, Sequence[Course]]]
"""The courses of the runs of each arm, by signal and value."""


class Subject(NamedTuple):
    """A run to compare: its name, flat settings, tags by signal, and the courses of its tags."""

    name: str
    settings: Mapping[str, object]
    signals: Mapping[str, Sequence[str]]
    means: Means


@dataclass(frozen=True)
class Measure:
    """Where a signal ends in each arm, as the mean over its runs.

    ``spread`` is the standard deviation between runs of one arm, None if no arm has two. Then nothing tells
    whether the arms differ by more than chance, and ``beyond_chance`` is None as well.
    """

    signal: Signal
    ends: Mapping[str, float]
    spread: float | None
    beyond_chance: bool | None


@dataclass(frozen=True)
class Finding:
    """What a comparison shows, in a sentence, with the catalogue entries that it is about."""

    text: str
    catalogue: Sequence[str] = ()


@dataclass(frozen=True)
class Comparison:
    """Runs that differ in one setting. ``arms`` has their names by its value."""

    setting: str
    arms: Mapping[str, Sequence[str]]
    measures: Sequence[Measure]
    findings: Sequence[Finding]


def compare(subjects: Sequence[Subject]) -> list[Comparison]:
    """Compare all runs that differ in one setting or in the seed alone, where they log the same tag."""
    found = (_compared(group, subjects) for group in grouped([one.settings for one in subjects]))
    return [one for one in found if one.measures]


def _compared(group: Group, subjects: Sequence[Subject]) -> Comparison:
    arms = {value: [subjects[run] for run in runs] for value, runs in group.arms.items()}
    courses = {signal: found for signal in COMPARED if (found := _courses(signal, arms))}
    measures = [_measure(signal, found) for signal, found in courses.items()]
    names = {value: [one.name for one in runs] for value, runs in arms.items()}
    findings = [*_outcome(group, measures, courses), *_seeds(group), *_accumulation(group.setting, courses)]
    return Comparison(group.setting, names, measures, findings)


def _courses(signal: Signal, arms: Mapping[str, Sequence[Subject]]) -> dict[str, list[Course]]:
    """The courses of a signal by arm. Empty if a run lacks it, or if the runs share no steps.

    Runs that take several times as many samples a step are compared at equal samples.
    """
    subjects = [one for runs in arms.values() for one in runs]
    tags = [set(one.signals.get(signal, ())) for one in subjects]
    shared = set.intersection(*tags)
    if not shared:
        return {}
    tag = next(tag for tag in subjects[0].signals[signal] if tag in shared)
    known = {value: [_by_samples(one, tag) for one in runs] for value, runs in arms.items()}
    every = [at for courses in known.values() for at, _ in courses]
    if any(len(at) == 0 for at in every):
        return {}
    first, last = max(at[0] for at in every), min(at[-1] for at in every)
    if first > last:
        return {}
    places = np.linspace(first, last, _PLACES)
    return {value: [np.interp(places, *course) for course in courses] for value, courses in known.items()}


def _by_samples(subject: Subject, tag: str) -> tuple[Course, Course]:
    step, mean = subject.means.course(tag)
    plan = planned(subject.settings)
    parts = Setting.BATCH_SIZE, Setting.ACCUMULATION_STEPS, Setting.WORLD_SIZE
    return step * np.prod([plan.get(part, 1.0) for part in parts]), mean


def _begin(courses: Sequence[Course]) -> float:
    return float(np.median([course[:_END] for course in courses]))


def _end(course: Course) -> float:
    return float(np.median(course[-_END:]))


def _measure(signal: Signal, courses: Mapping[str, Sequence[Course]]) -> Measure:
    ends = {value: [_end(course) for course in of_arm] for value, of_arm in courses.items()}
    means = {value: float(np.mean(of_arm)) for value, of_arm in ends.items()}
    freedom = sum(len(of_arm) - 1 for of_arm in ends.values())
    if freedom == 0:
        return Measure(signal, means, None, None)
    squares = sum(float(np.var(of_arm)) * len(of_arm) for of_arm in ends.values())
    spread = float(np.sqrt(squares / freedom))
    return Measure(signal, means, spread, len(ends) > 1 and _apart(ends, means, spread, freedom))


def _apart(
    ends: Mapping[str, Sequence[float]], means: Mapping[str, float], spread: float, freedom: int
) -> bool:
    """Whether the lowest and the highest arm differ by more than chance.

    It is Student's test with Bonferroni's correction, as these two are chosen from all pairs of arms.
    """
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    error = spread * np.sqrt(1 / len(ends[low]) + 1 / len(ends[high]))
    pairs = math.comb(len(ends), 2)
    return bool(means[high] - means[low] > error * stats.t.isf(_CHANCE / 2 / pairs, freedom))


def _outcome(group: Group, measures: Sequence[Measure], courses: Courses) -> Iterator[Finding]:
    """How much the setting matters for what the runs are judged by."""
    decisive = next((one for one in measures if one.signal in OUTCOMES), None)
    if decisive is None or group.of_seeds:
        return
    name, spread = measure_of(decisive.signal).label, decisive.spread
    ends = f"{name} ends at {', '.join(f'{end:.4g} with {value}' for value, end in decisive.ends.items())}"
    if spread is None:
        yield Finding(f"{ends}: with one run a value, that may be chance", ("R6",))
    elif not decisive.beyond_chance:
        yield Finding(f"{ends}: that may be chance, as equal runs differ by {spread:.2g}")
    else:
        yield Finding(f"{ends}: more than chance, as equal runs differ by {spread:.2g}")
        if (share := _parting(courses[decisive.signal])) is not None:
            begin = f"{share:.0%} of the common course" if share else "the start"
            yield Finding(f"{name} differs from {begin} on")


def _seeds(group: Group) -> Iterator[Finding]:
    sizes = [len(runs) for runs in group.arms.values()]
    seeds = sum(sizes) if group.of_seeds else min(sizes)
    if 1 < seeds < _ENOUGH_SEEDS:
        each = "" if group.of_seeds or len(set(sizes)) > 1 else " a value"
        least = "as few as " if len(set(sizes)) > 1 and not group.of_seeds else ""
        yield Finding(f"{least}{seeds} runs{each}: a result takes five seeds or more", ("R6",))


def _parting(courses: Mapping[str, Sequence[Course]]) -> float | None:
    """From which share of the course on two arms stay apart by more than the noise of their difference."""
    if len(courses) != 2:
        return None
    one, other = (np.mean(of_arm, axis=0) for of_arm in courses.values())
    gap = one - other
    noise = stats.median_abs_deviation(np.diff(gap), scale="normal") / np.sqrt(2)
    together = np.flatnonzero((np.abs(gap) <= 3 * noise) | (np.sign(gap) != np.sign(gap[-1])))
    begin = int(together[-1]) + 1 if len(together) else 0
    return begin / _PLACES if begin <= _PLACES - _PARTED else None


def _accumulation(setting: str, courses: Courses) -> Iterator[Finding]:
    """O9 and G2: what grows with the accumulation steps is added up and not divided.

    A sum of n losses is n times as large. The sum of their gradients is between the root of n times as large,
    where they are all noise, and n times. Their mean is never larger. Runs are alike at their beginning.
    """
    for signal in (Signal.GRAD_NORM, Signal.LOSS):
        plans = {value: planned({setting: value}) for value in courses.get(signal, ())}
        steps = {value: plan.get(Setting.ACCUMULATION_STEPS) for value, plan in plans.items()}
        known = sorted((n, value) for value, n in steps.items() if n is not None)
        for (fewer, low), (more, high) in pairwise(known):
            before, after = (_begin(courses[signal][value]) for value in (low, high))
            times = more / fewer
            least = times if signal is Signal.LOSS else max(np.sqrt(times), 1 + 2 * _RATIO_BAND)
            if before > 0 and least * (1 - _RATIO_BAND) <= after / before <= times * (1 + _RATIO_BAND):
                yield Finding(
                    f"{measure_of(signal).label} begins {after / before:.2g} times as large with {high} "
                    f"accumulation steps as with {low}: the accumulated loss seems not to be divided",
                    ("O9", "G2"),
                )
