"""Compares runs that differ in one setting: where they end, what is chance, and from when they differ."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from sentinel.comparison.groups import Group, grouped
from sentinel.comparison.measures import (
    COMPARED,
    OUTCOMES,
    ComparedRun,
    Comparison,
    Courses,
    Finding,
    SignalInArms,
    courses_of,
    measured,
    parting,
)
from sentinel.comparison.seeds import ENOUGH_SEEDS, seeds_apart
from sentinel.detectors.evidence import measure_of
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.plan import planned

_FIRST_COURSE_POINTS = 6  # of the course, about a tenth of it
_MAX_RUNS_NAMED = 3  # of runs, so that the line stays short
_RATIO_BAND = 0.25  # O9: a ratio is expected within a quarter


def compare(subjects: Sequence[ComparedRun]) -> list[Comparison]:
    """Compare all runs that differ in one setting or in the seed alone, where they log the same tag."""
    reported: set[frozenset[int]] = set()
    groups = grouped([subject.settings for subject in subjects])
    compared = (_compared(group, subjects, reported) for group in groups)
    return [comparison for comparison in compared if comparison.measures]


def _compared(group: Group, subjects: Sequence[ComparedRun], reported: set[frozenset[int]]) -> Comparison:
    """Return the comparison of a group.

    ``reported`` has the equal runs of which a comparison says that they end far apart.
    """
    arms = {value: [subjects[run] for run in runs] for value, runs in group.arms.items()}
    courses = {signal: by_arm for signal in COMPARED if (by_arm := courses_of(signal, arms))}
    measures = [measured(signal, by_arm) for signal, by_arm in courses.items()]
    names = {value: [run.name for run in runs] for value, runs in arms.items()}
    findings = [
        *_outcome_findings(group, measures, courses),
        *_seeds(group),
        *(_far_apart(group, subjects, reported) if measures else ()),
        *_accumulation(group.setting, courses),
    ]
    return Comparison(group.setting, names, measures, findings)


def _outcome_findings(group: Group, measures: Sequence[SignalInArms], courses: Courses) -> Iterator[Finding]:
    """Yield how much the setting matters for what the runs are judged by."""
    decisive = next((measure for measure in measures if measure.signal in OUTCOMES), None)
    if decisive is None or group.is_by_seed:
        return
    name = measure_of(decisive.signal).label
    spread = decisive.spread
    ends = f"{name} ends at {', '.join(f'{end:.4g} with {value}' for value, end in decisive.ends.items())}"
    if spread is None:
        yield Finding(f"{ends}: with one run a value, that may be chance", ("R6",))
    elif not decisive.beyond_chance:
        yield Finding(f"{ends}: that may be chance, as equal runs differ by {spread:.2g}")
    else:
        yield Finding(f"{ends}: more than chance, as equal runs differ by {spread:.2g}")
        if (share := parting(courses[decisive.signal])) is not None:
            begin = f"{share:.0%} of the common course" if share else "the start"
            yield Finding(f"{name} differs from {begin} on")


def _seeds(group: Group) -> Iterator[Finding]:
    sizes = [len(runs) for runs in group.arms.values()]
    seeds = sum(sizes) if group.is_by_seed else min(sizes)
    if 1 < seeds < ENOUGH_SEEDS:
        each = "" if group.is_by_seed or len(set(sizes)) > 1 else " a value"
        qualifier = "as few as " if len(set(sizes)) > 1 and not group.is_by_seed else ""
        yield Finding(f"{qualifier}{seeds} runs{each}: a result takes five seeds or more", ("R6",))


def _far_apart(
    group: Group, subjects: Sequence[ComparedRun], reported: set[frozenset[int]]
) -> Iterator[Finding]:
    """Yield the arms whose runs end far apart. An arm stands in a comparison for each setting of a sweep."""
    every = [run for runs in group.arms.values() for run in runs]
    arms = {"": every} if group.is_by_seed else {f" with {value}": runs for value, runs in group.arms.items()}
    for which, runs in arms.items():
        apart = None if frozenset(runs) in reported else seeds_apart([subjects[run] for run in runs])
        if apart is not None:
            reported.add(frozenset(runs))
            short = apart.short[:_MAX_RUNS_NAMED]
            unnamed_count = len(apart.short) - _MAX_RUNS_NAMED
            names = f"{', '.join(short)}{f' and {unnamed_count} more' * (unnamed_count > 0)}"
            yield Finding(
                f"{len(apart.short)} of {apart.runs} equal runs{which} gain less than half of what the best "
                f"one gains, and do not catch up in the second half ({names}): "
                f"{measure_of(apart.signal).label} ends between {apart.low:.4g} and {apart.high:.4g}",
                ("R6",),
            )


def _accumulation(setting: str, courses: Courses) -> Iterator[Finding]:
    """Yield a signal that grows with the accumulation steps: it is added up and not divided (O9, G2).

    A sum of n losses is n times as large. The sum of their gradients is between the root of n times as large,
    where they are all noise, and n times. Their mean is never larger. Runs are alike at their beginning.
    """
    for signal in (Signal.GRAD_NORM, Signal.LOSS):
        plans = {value: planned({setting: value}) for value in courses.get(signal, ())}
        steps = {value: plan.get(Setting.ACCUMULATION_STEPS) for value, plan in plans.items()}
        stated = sorted(
            (batch_steps, value) for value, batch_steps in steps.items() if batch_steps is not None
        )
        for (smaller, low), (larger, high) in pairwise(stated):
            beginnings = (
                [course[:_FIRST_COURSE_POINTS] for course in courses[signal][value]] for value in (low, high)
            )
            before, after = (float(np.median(beginning)) for beginning in beginnings)
            times = larger / smaller
            least_change = times if signal is Signal.LOSS else max(np.sqrt(times), 1 + 2 * _RATIO_BAND)
            if before > 0 and least_change * (1 - _RATIO_BAND) <= after / before <= times * (1 + _RATIO_BAND):
                yield Finding(
                    f"{measure_of(signal).label} begins {after / before:.2g} times as large with {high} "
                    f"accumulation steps as with {low}: the accumulated loss seems not to be divided",
                    ("O9", "G2"),
                )
