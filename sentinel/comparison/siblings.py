"""Holds a run against its siblings: in which signals it is worse than all that healthy ones show.

The siblings of a run are the finished healthy runs of its program (`fingerprint.py`). Where these differ in a
setting among themselves, as in a sweep, only those with the run's own value are its siblings: a value that is
worse than another is no fault.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.comparison.band import (
    COURSE_POINTS,
    MAX_SIBLINGS,
    MIN_SIBLINGS,
    Course,
    aligned,
    band,
    departure,
)
from sentinel.comparison.fingerprint import Fingerprint, are_siblings, differences, names_that_differ
from sentinel.comparison.means import TagCourses
from sentinel.detectors.run_checks import Deviation, SiblingComparison, SiblingRange
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.plan import planned

_Program = TypeVar("_Program")
_Run = TypeVar("_Run")

HIGH = 1.0
LOW = -1.0

WORSE: Mapping[Signal, tuple[float, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *(Signal.LOSS, Signal.PREFERENCE_LOSS, Signal.PERPLEXITY),
                *(Signal.EVAL_LOSS, Signal.EVAL_PERPLEXITY, Signal.EVAL_ERROR_RATE),
                *(Signal.FRECHET_INCEPTION_DISTANCE, Signal.EVAL_DISTANCE),
                *(Signal.STEP_TIME, Signal.GPU_MEMORY, Signal.HOST_MEMORY),
                *(Signal.DEAD_FRACTION, Signal.KL, Signal.CLIPPED_COMPLETION_RATIO),
            ),
            (HIGH,),
        ),
        **dict.fromkeys(
            (
                *(Signal.ACCURACY, Signal.REWARD, Signal.PREFERENCE_ACCURACY, Signal.PREFERENCE_MARGIN),
                *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.EVAL_QUALITY, Signal.EVAL_REWARD),
                *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
                *(Signal.EXPLAINED_VARIANCE, Signal.LOSS_SCALE, Signal.TOKENS_PER_SECOND, Signal.THROUGHPUT),
            ),
            (LOW,),
        ),
        **dict.fromkeys(
            (
                *(Signal.GRAD_NORM, Signal.LEARNING_RATE, Signal.UPDATE_RATIO, Signal.WEIGHT_NORM),
                *(Signal.ENTROPY, Signal.POLICY_ENTROPY, Signal.COMPLETION_LENGTH),
            ),
            (HIGH, LOW),
        ),
    }
)
"""Signals that have a band, and the sides of it that are bad."""

SIZES = frozenset({Setting.PEAK_LEARNING_RATE, Setting.BATCH_SIZE, Setting.ACCUMULATION_STEPS})
"""Settings that move a whole curve. Where they differ, curves are measured by their own beginning."""

_FIRST_BAND_POINTS = 4  # that are the beginning of a course

MAX_TAGS = 4
"""Tags of a signal by which runs are compared, the shortest ones; a model with many layers logs hundreds."""

MAX_SETTINGS = 1000
"""Different settings among which siblings are looked for, so that the time stays bounded."""


def compared_tags(tags: Sequence[str]) -> Sequence[str]:
    """Return the tags of a signal by which runs are compared, the one that a run is judged by first.

    Their lengths and names decide, because the order in which tags became known depends on the polls.
    """
    return sorted(tags, key=lambda tag: (len(tag), tag))[:MAX_TAGS]


class Sibling(msgspec.Struct, frozen=True):
    """A run as far as others are compared with it.

    ``name`` is what people call it, ``training`` is the same in all logs of one training, ``signals`` has
    tags by signal, and ``plan`` is the planned number of steps, if it is known. ``healthy`` ones ended well
    and without a warning. Of a run that goes on, not ``whole``, the point at which it is does not count.
    """

    name: str
    training: str
    fingerprint: Fingerprint
    signals: Mapping[str, Sequence[str]]
    means: TagCourses
    plan: float | None
    last_step: int
    healthy: bool
    whole: bool = True
    _courses: dict[tuple[str, float], Course] = msgspec.field(default_factory=dict)

    def tags(self, signal: Signal) -> Sequence[str]:
        """Return the tags of a signal by which it may be compared."""
        return compared_tags(self.signals.get(signal, ()))

    def course_so_far(self, tag: str, plan: float, like: "Sequence[Sibling]") -> Course:
        """Return a signal by share of the plan, in stretches as long as those of runs that are whole.

        Shorter ones would lie elsewhere in the course, which shows where a signal is steep.
        """
        if self.whole:
            return self.course(tag, plan)
        width = max(sibling.means.width(tag) for sibling in like)
        return aligned(*self.means.course(tag, width), plan=max(plan, 1.0), whole=False)

    def forget(self) -> None:
        """Drop the courses that are kept."""
        self._courses.clear()

    def course(self, tag: str, plan: float) -> Course:
        """Return a signal of a whole run by share of the plan, kept because many runs ask for it."""
        if (tag, plan) not in self._courses:
            self._courses[tag, plan] = aligned(*self.means.course(tag), plan=max(plan, 1.0), whole=True)
        return self._courses[tag, plan]


def healthy_siblings(runs: Iterable[Sibling]) -> "Near":
    """Return what gives the healthy ones of these runs that are of the program of a fingerprint."""
    healthy: dict[Fingerprint, list[Sibling]] = {}
    for run in runs:
        if run.healthy and run.fingerprint.tells_enough:
            healthy.setdefault(run.fingerprint, []).append(run)
    return near(representatives(healthy, lambda run: run.training))


Near = Callable[[Fingerprint], Sequence[Sibling]]
"""Gives the healthy runs of the program of a fingerprint."""


def representatives(
    healthy: Mapping[_Program, Sequence[_Run]], training: Callable[[_Run], object]
) -> dict[_Program, list[_Run]]:
    """Return, by fingerprint, the healthy runs with which others are compared.

    They are of the `MAX_SETTINGS` most frequent fingerprints, and of each of the last trainings, as many as
    a band rests on beside the run's own.
    """
    frequent = sorted(healthy, key=lambda fingerprint: len(healthy[fingerprint]), reverse=True)[:MAX_SETTINGS]
    runs_by_fingerprint = {}
    for fingerprint in frequent:
        runs = healthy[fingerprint]
        last_trainings = {*[*dict.fromkeys(map(training, runs))][-MAX_SIBLINGS - 1 :]}
        runs_by_fingerprint[fingerprint] = [run for run in runs if training(run) in last_trainings]
    return runs_by_fingerprint


def near(healthy: Mapping[Fingerprint, Sequence[Sibling]]) -> Near:
    """Return what gives, of `representatives`, those of the program of a fingerprint."""

    @lru_cache(64)  # runs of one program lie near one another
    def in_program(program: Fingerprint) -> list[Sibling]:
        return [run for other, runs in healthy.items() if are_siblings(program, other) for run in runs]

    return in_program


def among_siblings(run: Sibling, siblings: Sequence[Sibling]) -> SiblingComparison | None:
    """Return what a run that is over looks like beside its siblings; None if it has too few.

    ``siblings`` are the healthy runs of its program, see `healthy_siblings`; its own logs do not count.
    """
    siblings = [sibling for sibling in siblings if sibling.training != run.training]
    if len(siblings) < MIN_SIBLINGS:
        return None
    prints = {sibling.fingerprint for sibling in siblings}
    swept = names_that_differ(*prints)
    equal = {
        fingerprint
        for fingerprint in prints
        if swept.isdisjoint(names_that_differ(run.fingerprint, fingerprint))
    }
    by_training = {sibling.training: sibling for sibling in siblings if sibling.fingerprint in equal}
    siblings = [*by_training.values()][-MAX_SIBLINGS:]
    if len(siblings) < MIN_SIBLINGS:
        return None
    differ = differences(run.fingerprint, siblings[0].fingerprint)
    plans = (planned({name: value}) for name, pair in differ.items() for value in pair)
    courses = _courses(run, siblings, by_beginning=any(SIZES & plan.keys() for plan in plans))
    if not courses:
        return None
    count = len(next(iter(courses.values())).theirs)
    tests = sum(len(WORSE[signal]) for signal in courses)
    sides_by_signal = {signal: [*_sides(signal, course, tests)] for signal, course in courses.items()}
    deviations = [side.departed for sides in sides_by_signal.values() for side in sides if side.departed]
    deviations.sort(key=lambda departed: (departed.step, -departed.score))
    differences_text = [f"{name} {ours} (theirs {theirs})" for name, (ours, theirs) in differ.items()]
    return SiblingComparison(
        count,
        deviations,
        " and ".join(differences_text),
        names=sorted(sibling.name for sibling in siblings),
        bands={
            courses[signal].tag: _sibling_range(courses[signal].plan, sides)
            for signal, sides in sides_by_signal.items()
        },
    )


class _Aligned(NamedTuple):
    """A signal of a run and of its siblings, a row each, by share of the ``plan``."""

    course: Course
    theirs: NDArray[np.float64]
    tag: str
    plan: float
    by_beginning: bool


def _courses(run: Sibling, siblings: Sequence[Sibling], *, by_beginning: bool) -> dict[Signal, _Aligned]:
    """Return the signals that enough siblings log to the end. Copies of a run count once."""
    usual = float(np.median([sibling.last_step for sibling in siblings]))
    plan = run.plan or usual
    tags = {signal: run_tags[0] for signal in WORSE if (run_tags := run.tags(signal))}
    by_signal = {
        signal: [
            sibling.course(tag, sibling.plan or usual)
            if tag in sibling.tags(signal)
            else np.full(COURSE_POINTS, np.nan)
            for sibling in siblings
        ]
        for signal, tag in tags.items()
    }
    whole_courses = {
        signal: rows
        for signal, rows in by_signal.items()
        if np.isfinite(rows).all(axis=1).sum() >= MIN_SIBLINGS
    }
    if not whole_courses:
        return {}
    finite = np.isfinite(np.concatenate([*map(np.array, whole_courses.values())], axis=1)).all(axis=1)
    rows = np.concatenate([np.array(rows_of_one)[finite] for rows_of_one in whole_courses.values()], axis=1)
    once = [*{row.tobytes(): number for number, row in enumerate(rows)}.values()]
    if len(once) < MIN_SIBLINGS:
        return {}
    return {
        signal: _Aligned(
            run.course_so_far(tags[signal], plan, siblings),
            np.array(rows_of_one)[finite][once],
            tags[signal],
            plan,
            by_beginning,
        )
        for signal, rows_of_one in whole_courses.items()
    }


class _BandSide(NamedTuple):
    """A side of a band that is bad: the furthest that siblings get at each point, its mirror image on the
    other side, both as the run logs the signal, and where the run left it.
    """

    side: float
    bound: Course
    mirrored: Course
    departed: Deviation | None


def _sides(signal: Signal, courses: _Aligned, tests: int) -> Iterator[_BandSide]:
    """Yield a signal beside that of the siblings, on each side that is bad."""
    course, theirs, tag, plan, by_beginning = courses
    in_ratios = bool((theirs > 0).all() and (course[np.isfinite(course)] > 0).all())
    change, back = (np.log, np.exp) if in_ratios else (np.asarray, np.asarray)
    ours = change(course)
    sibling_changes = change(theirs)
    moved = 0.0
    if by_beginning:
        usual = np.median(sibling_changes[:, :_FIRST_BAND_POINTS])
        moved = float(usual - ours[:_FIRST_BAND_POINTS].mean())
        sibling_changes = (
            sibling_changes - sibling_changes[:, :_FIRST_BAND_POINTS].mean(axis=1, keepdims=True) + usual
        )
    for side in WORSE[signal]:
        siblings = band(side * sibling_changes, tests)
        departed = departure(side * (ours + moved), siblings)
        upper_limit = siblings.limit * siblings.noise
        yield _BandSide(
            side,
            bound=back(side * (siblings.level + upper_limit) - moved),
            mirrored=back(side * (siblings.level - upper_limit) - moved),
            departed=departed
            and Deviation(
                signal=signal,
                tag=tag,
                higher=side > 0,
                onset_step=round(plan * departed.onset / COURSE_POINTS),
                step=round(plan * (departed.position + 1) / COURSE_POINTS),
                level=float(back(ours + moved)[departed.position]),
                usual=float(back(side * siblings.level)[departed.position]),
                limit=float(back(side * (siblings.level + upper_limit))[departed.position]),
                score=departed.score,
            ),
        )


def _sibling_range(plan: float, sides: Sequence[_BandSide]) -> SiblingRange:
    """Return the band between both sides. Where only one is bad, the other is as far from the level."""
    bounds = {side.side: side.bound for side in sides}
    low = bounds.get(LOW, sides[0].mirrored)
    high = bounds.get(HIGH, sides[0].mirrored)
    finite = np.isfinite(low) & np.isfinite(high)
    steps = np.round(plan * (np.arange(COURSE_POINTS) + 0.5) / COURSE_POINTS)
    return SiblingRange(steps[finite].astype(int).tolist(), low[finite].tolist(), high[finite].tolist())
