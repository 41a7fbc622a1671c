"""Says which signals each detector needs side by side.

Detectors that judge the same signal and need the same other signals at the same step share a view, and so one
history.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sentinel.detectors.api import Declaration, Detector
from sentinel.detectors.run_checks import Expected, RunCheck
from sentinel.detectors.schema import Course, Every, First, Last, Mean, Standing, Use, courses, lists, numbers
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.derived import DERIVED
from sentinel.series.state_schema import STATE


@dataclass(frozen=True)
class SeriesSpec:
    """A judged signal with its context.

    ``columns`` stand beside the signal: needed signals, used ones, then settings of the run. So do ``lists``,
    which have a value for each tag of a signal, and at the end of a run ``courses``.
    """

    judged: Signal
    non_finite: bool  # whether a row's value may be NaN or infinite
    needs: tuple[Signal, ...]
    uses: tuple[Last | First | Mean | Standing, ...]
    settings: tuple[Setting, ...]
    lists: tuple[Every, ...]
    courses: tuple[Course, ...]
    detectors: tuple[Detector, ...]

    @cached_property
    def key(self) -> str:
        """A name that is unique among the views of one set of detectors."""
        return "+".join((self.judged, *self.needs)) + "?" * self.non_finite

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The context, in the order of its places (`Rows.columns`)."""
        return (*self.needs, *(use.column for use in self.uses), *self.settings)

    @cached_property
    def plotted(self) -> list[int]:
        """The places of columns that plots show: other signals, not their means and first values."""
        names = [*self.needs, *(use.column for use in self.uses)]
        return [place for place, name in enumerate(names) if name in [*Signal] and name != self.judged]

    @cached_property
    def signals(self) -> set[Signal]:
        """All signals that the view asks for, and those from which they are derived."""
        asked = {self.judged, *self.needs, *(use.signal for use in (*self.uses, *self.lists, *self.courses))}
        return asked.union(*(made.parts for made in DERIVED if made.signal in asked))

    @cached_property
    def head_rows(self) -> int:
        """The longest head that a detector declares."""
        return max(d.history.head for d in self.detectors)

    @cached_property
    def recent_rows(self) -> int:
        """The longest recent history that a detector declares, plus a last row that may be judged again."""
        return max(d.history.recent for d in self.detectors) + self.at_end

    @cached_property
    def earlier_rows(self) -> int:
        """The most rows of the attempt before that a detector declares."""
        return max(d.history.earlier for d in self.detectors)

    @cached_property
    def at_end(self) -> bool:
        """Whether a detector judges the last row again when the run is over."""
        return any(d.at_end for d in self.detectors)

    @cached_property
    def coarse(self) -> bool:
        """Whether a detector declares coarse history."""
        return any(d.history.coarse for d in self.detectors)


class SeriesSpecs(tuple[SeriesSpec, ...]):
    """The views of one set of detectors, and what they ask for together.

    ``expected`` is what run checks want to be logged again and again.
    """

    expected: Sequence[Expected] = ()

    @cached_property
    def asked(self) -> set[Signal]:
        """All signals that a view judges or a run check expects."""
        return {view.judged for view in self} | {wish.signal for wish in self.expected}

    @cached_property
    def signals(self) -> set[Signal]:
        """All signals that a view asks for, and those from which they are derived."""
        return {signal for view in self for signal in view.signals}

    @cached_property
    def needs(self) -> set[Signal]:
        """All signals that a view needs at the same step."""
        return {signal for view in self for signal in view.needs}

    @cached_property
    def courses(self) -> set[Course]:
        """All courses that a view asks for."""
        return {course for view in self for course in view.courses}

    @cached_property
    def uses(self) -> set[Use]:
        """Everything that a view asks for of other signals."""
        return {use for view in self for use in (*view.uses, *view.lists)}


def series_specs(detectors: Iterable[Declaration]) -> SeriesSpecs:
    """Return the views that these detectors need, and what run checks among them expect."""
    declared = [*detectors]
    shared: dict[tuple[Signal, bool, tuple[Signal, ...]], list[Detector]] = {}
    for detector in (rule for rule in declared if isinstance(rule, Detector)):
        for judged in detector.judges:
            shared.setdefault((judged, detector.non_finite, detector.needs), []).append(detector)
    asked = SeriesSpecs(
        SeriesSpec(
            judged,
            non_finite,
            needs,
            tuple(dict.fromkeys(use for d in them for use in numbers(d.uses))),
            tuple(dict.fromkeys(s for d in them for s in d.settings)),
            tuple(dict.fromkeys(use for d in them for use in lists(d.uses))),
            tuple(dict.fromkeys(use for d in them for use in courses(d.uses))),
            tuple(them),
        )
        for (judged, non_finite, needs), them in shared.items()
    )
    checks = (check for check in declared if isinstance(check, RunCheck))
    asked.expected = [*dict.fromkeys(check.expects for check in checks if check.expects)]
    return asked


def layout(views: SeriesSpecs) -> list[Any]:
    """Return what the state of streams depends on. A state of another layout cannot be restored."""
    shapes = [
        (v.key, v.columns, [kept.column for kept in v.lists], v.head_rows, v.recent_rows, v.earlier_rows)
        for v in views
    ]
    asked = sorted(course.column for course in views.courses)
    return [STATE, *shapes, *asked, *(wish.key for wish in views.expected)]
