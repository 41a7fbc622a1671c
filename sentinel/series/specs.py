"""Says which signals each detector needs side by side.

Detectors that judge the same signal and need the same other signals at the same step share a spec, and so one
history.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from sentinel.detectors.api import Declaration, Detector
from sentinel.detectors.run_checks import Expected, RunCheck
from sentinel.detectors.schema import Course, Every, First, Last, Mean, Standing, Use, courses, lists, numbers
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.derived import DERIVED


class SeriesSpec(msgspec.Struct, frozen=True, dict=True):
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
        """A name that is unique among the specs of one set of detectors."""
        return "+".join((self.judged, *self.needs)) + "?" * self.non_finite

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The context, in the order of its indices (`Rows.columns`)."""
        return (*self.needs, *(use.column for use in self.uses), *self.settings)

    @cached_property
    def plotted(self) -> list[int]:
        """The indices of columns that plots show: other signals, not their means and first values."""
        names = [*self.needs, *(use.column for use in self.uses)]
        return [index for index, name in enumerate(names) if name in [*Signal] and name != self.judged]

    @cached_property
    def signals(self) -> set[Signal]:
        """All signals that the spec asks for, and those from which they are derived."""
        signals = {
            self.judged,
            *self.needs,
            *(use.signal for use in (*self.uses, *self.lists, *self.courses)),
        }
        return signals.union(*(derived.parts for derived in DERIVED if derived.signal in signals))

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
    def at_interims(self) -> bool:
        """Whether a detector judges the run so far as a whole while it goes on."""
        return any(d.judges_whole for d in self.detectors)

    @cached_property
    def coarse(self) -> bool:
        """Whether a detector declares coarse history."""
        return any(d.history.coarse for d in self.detectors)


class SeriesSpecs(tuple[SeriesSpec, ...]):
    """The specs of one set of detectors, and what they ask for together.

    ``expected`` is what run checks want to be logged again and again.
    """

    expected: Sequence[Expected] = ()

    @cached_property
    def requested(self) -> set[Signal]:
        """All signals that a spec judges or a run check expects."""
        return {spec.judged for spec in self} | {rule.signal for rule in self.expected}

    @cached_property
    def signals(self) -> set[Signal]:
        """All signals that a spec asks for, and those from which they are derived."""
        return {signal for spec in self for signal in spec.signals}

    @cached_property
    def needs(self) -> set[Signal]:
        """All signals that a spec needs at the same step."""
        return {signal for spec in self for signal in spec.needs}

    @cached_property
    def courses(self) -> set[Course]:
        """All courses that a spec asks for."""
        return {course for spec in self for course in spec.courses}

    @cached_property
    def uses(self) -> set[Use]:
        """Everything that a spec asks for of other signals."""
        return {use for spec in self for use in (*spec.uses, *spec.lists)}


def series_specs(detectors: Iterable[Declaration]) -> SeriesSpecs:
    """Return the specs that these detectors need, and what run checks among them expect."""
    declarations = [*detectors]
    groups: dict[tuple[Signal, bool, tuple[Signal, ...]], list[Detector]] = {}
    for detector in declarations:
        if isinstance(detector, Detector):
            for signal in detector.judges:
                groups.setdefault((signal, detector.non_finite, detector.needs), []).append(detector)
    specs = SeriesSpecs(
        SeriesSpec(
            judged=signal,
            non_finite=non_finite,
            needs=needs,
            uses=tuple(dict.fromkeys(use for detector in group for use in numbers(detector.uses))),
            settings=tuple(dict.fromkeys(setting for detector in group for setting in detector.settings)),
            lists=tuple(dict.fromkeys(use for detector in group for use in lists(detector.uses))),
            courses=tuple(dict.fromkeys(use for detector in group for use in courses(detector.uses))),
            detectors=tuple(group),
        )
        for (signal, non_finite, needs), group in groups.items()
    )
    checks = (check for check in declarations if isinstance(check, RunCheck))
    specs.expected = [*dict.fromkeys(check.expects for check in checks if check.expects)]
    return specs


STATE = 28
"""A number to raise whenever what is stored of streams or incidents changes its form. An older state is read
again.
"""


def layout(specs: SeriesSpecs) -> list[Any]:
    """Return what the state of streams depends on. A state of another layout cannot be restored."""
    shapes = [
        (
            spec.key,
            spec.columns,
            [use.column for use in spec.lists],
            spec.head_rows,
            spec.recent_rows,
            spec.earlier_rows,
        )
        for spec in specs
    ]
    course_columns = sorted(course.column for course in specs.courses)
    return [STATE, *shapes, *course_columns, *(rule.key for rule in specs.expected)]
