"""One attempt of one stream: its points become rows of the specs, and the attempt remembers the rows.

The positions of points in the stream decide whether a row exists, where it stands and what its context is.
The way in which polls cut the stream never matters:

- A row of a spec that needs other signals is complete at the last of its points (see `Join`).
- The context of a row belongs to earlier steps (see `AsOfJoin`). A signal that was never logged has the value
  that the plan has for it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.detectors import schema
from sentinel.detectors.interims import stages_done
from sentinel.detectors.schedules import HELD_OUT
from sentinel.detectors.schema import Last
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.asof_join import AsOfJoin, JoinRequest
from sentinel.series.attempts import Points, finite
from sentinel.series.buckets import Buckets, Floats
from sentinel.series.carried import Carried
from sentinel.series.derived import DERIVED
from sentinel.series.history import SeriesHistory, Window
from sentinel.series.plan import Plans
from sentinel.series.rows import Rows
from sentinel.series.specs import SeriesSpec, SeriesSpecs
from sentinel.series.standings import Standing
from sentinel.series.step_join import REACH, Join

MAX_TAGS_PER_SIGNAL = 128
"""How many tags of one signal are judged. `Attempt.left_out` names the signals with more."""

NO_POINTS: Mapping[str, Points] = {}
"""No points of any tag."""

MAX_JUDGED_TAGS = 16
"""Signals of which only the first tags are judged. Their other tags are parts of a whole, not the whole."""

_PLANNED_SIGNALS = {Last(Signal.TOTAL_STEPS), Last(Signal.WARMUP_STEPS)}
"""Signals that the settings of a run state if its log does not."""

_DERIVED = frozenset(derived.signal for derived in DERIVED)


class Attempt(msgspec.Struct, array_like=True):
    """The histories of one attempt, and the points that its joins still need."""

    number: int
    # signal -> all tags that are summed at a step
    sums: dict[str, list[str]] = msgspec.field(default_factory=dict)
    # signal -> tags with a finite point, in order
    tags: dict[str, list[str]] = msgspec.field(default_factory=dict)
    # the same with those without a finite point
    raw_tags: dict[str, list[str]] = msgspec.field(default_factory=dict)
    carried: Carried = msgspec.field(default_factory=Carried)
    context: AsOfJoin = msgspec.field(default_factory=AsOfJoin)
    joins: dict[str, Join] = msgspec.field(default_factory=dict)  # by spec and tag, or by derived signal
    # tag -> points that a tag yet to come may need
    partners: dict[str, Points] = msgspec.field(default_factory=dict)
    # spec -> tag -> history
    series: dict[str, dict[str, SeriesHistory]] = msgspec.field(default_factory=dict)
    # spec -> tag -> of the attempt before
    earlier: dict[str, dict[str, Rows]] = msgspec.field(default_factory=dict)
    # signal -> step and time of the first point that is left out
    left_out: dict[str, tuple[int, float]] = msgspec.field(default_factory=dict)
    standings: dict[str, Standing] = msgspec.field(default_factory=dict)  # by tag
    courses: dict[str, Buckets] = msgspec.field(default_factory=dict)  # by tag
    stated_steps: float | None = None  # the first total that the log states, or less than any if it grew

    def next(self, number: int, specs: SeriesSpecs, *, goes_on: bool = True) -> "Attempt":
        """Return the attempt that begins where this one ends; it knows nothing of this one unless it
        ``goes_on`` with its training.
        """
        if not goes_on:
            return Attempt(number, self.sums, left_out=self.left_out)
        earlier = {spec.key: dict(self.earlier.get(spec.key, {})) for spec in specs if spec.earlier_rows}
        for key, rows_by_tag in earlier.items():
            rows_by_tag.update({tag: history.recent for tag, history in self.series.get(key, {}).items()})
        return Attempt(number, self.sums, earlier=earlier, left_out=self.left_out)

    def windows(
        self, arrived: Sequence[Points], specs: SeriesSpecs, plans: Plans
    ) -> Iterator[tuple[SeriesSpec, str, Window]]:
        """Yield the windows of the rows that new points complete, each with its spec and its judged tag."""
        arrived = self.carried.without(_points_in_order(arrived))
        raw = _admitted(arrived, self.raw_tags)
        measured = [points for points in arrived if points.signal is not Signal.OTHER_METRIC]  # a tag again
        logged = _points_in_order(finite(measured))
        fresh = _admitted([points for points in logged if points.signal not in _DERIVED], self.tags)
        derived = [points for points in logged if points.signal in _DERIVED]
        derived += self._derived(fresh, specs)
        fresh |= _admitted(_points_in_order(finite(derived)), self.tags)
        for points in logged:
            if points.tag not in fresh:
                self.left_out.setdefault(points.signal, (int(points.step[0]), float(points.time[0])))
        fresh |= self._totals(fresh)
        self.context.extend(fresh | self._standings(fresh, specs), specs.uses | _PLANNED_SIGNALS, self.tags)
        complete = [*self._complete(specs, raw, fresh)]
        requests = [
            JoinRequest(f"{spec.key} {points.tag}", points, (*spec.uses, *spec.lists))
            for spec, points, _ in complete
        ]
        joined = self.context.values(requests, self.tags)
        for (spec, points, partner_values), used_values in zip(complete, joined, strict=True):
            rows = _judged_rows(spec, points, [*partner_values, *used_values], plans)
            history = self._history(spec, points.tag)
            stages = stages_done(plan_shares(spec, rows, history.count)) if spec.at_interims else None
            for window in history.extend(rows, points.position, stages):
                courses = self._courses(spec, fresh, int(window.position[-1])) if window.interim else {}
                yield spec, points.tag, replace(window, courses=courses) if courses else window
        self._extend_courses(fresh, specs)
        self.context.trim()
        for signal in specs.needs:
            partner = fresh.get(self._first_tag(signal))
            if partner is not None:
                self.partners[partner.tag] = partner.after(self.partners.get(partner.tag)).tail(REACH + 1)

    def _history(self, spec: SeriesSpec, tag: str) -> SeriesHistory:
        """Return the history of one series, which is created if it is new."""
        series = self.series.setdefault(spec.key, {})
        if tag not in series:
            recent = max(spec.recent_rows, spec.earlier_rows)
            earlier = self.earlier.get(spec.key, {}).get(tag) or Rows.none(len(spec.lists))
            series[tag] = SeriesHistory(spec.head_rows, recent, earlier, spec.coarse, spec.plotted)
        return series[tag]

    def end(self, specs: SeriesSpecs) -> Iterator[tuple[SeriesSpec, str, Window]]:
        """Yield the last row of each series, in which some detectors judge it again when the run is over."""
        for spec in specs:
            if spec.at_end:
                series = self.series.get(spec.key, {})
                for tag, history in series.items():
                    yield spec, tag, replace(history.end(), courses=self._courses(spec))

    def _extend_courses(self, fresh: Mapping[str, Points], specs: SeriesSpecs) -> None:
        """Remember the courses that a spec asks for."""
        for use in specs.courses:
            tag = self._first_tag(use.signal)
            if tag in fresh:
                points = fresh[tag]
                self.courses.setdefault(tag, Buckets(extremes=False)).push(points.value, points.step)

    def _courses(
        self, spec: SeriesSpec, fresh: Mapping[str, Points] = NO_POINTS, end: int = 0
    ) -> dict[str, Floats]:
        """Return the courses that a spec asks for, by column, of signals that were logged, with the ``fresh``
        points before the position ``end``.
        """
        courses = {}
        for use in spec.courses:
            tag = self._first_tag(use.signal)
            course = self.courses.get(tag)
            if tag in fresh and (new := int(np.searchsorted(fresh[tag].position, end))):
                course = deepcopy(course) if course else Buckets(extremes=False)
                course.push(fresh[tag].value[:new], fresh[tag].step[:new])
            if course:
                courses[use.column] = course.mean
        return courses

    def last(self, signal: Signal) -> float | None:
        """Return the newest value of a signal that the specs or the plan ask for; None if it has none."""
        value = self.context.newest(self._first_tag(signal))
        return None if value is None or math.isnan(value) else value

    def _complete(
        self, specs: SeriesSpecs, raw: Mapping[str, Points], fresh: Mapping[str, Points]
    ) -> Iterator[tuple[SeriesSpec, Points, Sequence[Floats]]]:
        """Yield the judged points of each series whose partners have arrived, and the partners' values."""
        for spec in specs:
            points_by_tag, tags = (raw, self.raw_tags) if spec.non_finite else (fresh, self.tags)
            for tag in tags.get(spec.judged, ())[:MAX_JUDGED_TAGS]:
                points = points_by_tag.get(tag)
                if spec.needs:
                    complete = self._join_partners(spec, tag, points, fresh)
                else:
                    complete = None if points is None else (points, ())
                if complete is not None and len(complete[0]):
                    yield spec, *complete

    def _join_partners(
        self, spec: SeriesSpec, tag: str, points: Points | None, fresh: Mapping[str, Points]
    ) -> tuple[Points, Sequence[Floats]] | None:
        """Return the points of ``tag`` whose partners have all arrived, and the partners' values."""
        partners = [self._first_tag(signal) for signal in spec.needs]
        arrived = {name: fresh[name] for name in partners if name in fresh}
        if points:
            arrived[tag] = points
        if not arrived:
            return None
        key = f"{spec.key} {tag}"
        if key not in self.joins:
            self.joins[key] = Join({name: self.partners[name] for name in partners if name in self.partners})
        return self.joins[key].extend([tag, *partners], arrived)

    def _derived(self, fresh: Mapping[str, Points], specs: SeriesSpecs) -> list[Points]:
        """Return new points of derived signals, if a spec asks for them."""
        derived_points = []
        for derived in DERIVED:
            tags = derived.tags(self._first_tag, self.sums)
            arrived = {tag: fresh[tag] for tag in tags if tag in fresh}
            if derived.signal in specs.signals and arrived:
                complete = self.joins.setdefault(derived.signal, Join()).extend(tags, arrived)
                if complete is not None:
                    points, others = complete
                    with np.errstate(all="ignore"):
                        value = derived.value(points.value, *others)
                    derived_points.append(
                        replace(points, tag=derived.name(*tags), signal=derived.signal, value=value)
                    )
        return derived_points

    def _totals(self, fresh: Mapping[str, Points]) -> dict[str, Points]:
        """Return new points of the total steps. A total that grew counts steps, and from there on is none."""
        tag = self._first_tag(Signal.TOTAL_STEPS)
        if tag not in fresh:
            return {}
        total = fresh[tag].value
        stated = float(total[0]) if self.stated_steps is None else self.stated_steps
        is_count = np.logical_or.accumulate(total > stated)
        self.stated_steps = -math.inf if is_count[-1] else stated
        return {tag: fresh[tag].with_value(np.where(is_count, math.nan, total))}

    def _standings(self, fresh: Mapping[str, Points], specs: SeriesSpecs) -> dict[str, Points]:
        """Return how outcomes that a spec asks for stand at the looks among new points, by tag."""
        standings = {}
        for use in specs.uses:
            tag = self._first_tag(use.signal)
            if isinstance(use, schema.Standing) and tag in fresh:
                history = self.standings.setdefault(tag, Standing())
                standings[use.tag(tag)] = history.extend(fresh[tag], use.tag(tag))
        return {tag: points for tag, points in standings.items() if len(points)}

    def _first_tag(self, signal: Signal) -> str:
        """Return the tag that represents a signal; "" if the signal has no tag yet."""
        return next(iter(self.tags.get(signal, ())), "")


def _judged_rows(spec: SeriesSpec, points: Points, values: Sequence[Floats | None], plans: Plans) -> Rows:
    """Return the rows of judged points.

    ``values`` stand beside the points: those of needed signals, of used ones, then lists.
    """
    signals = len(spec.needs) + len(spec.uses)
    columns = {
        column_index: column for column_index, column in enumerate(values[:signals]) if column is not None
    }
    for column_index, use in enumerate(spec.uses, len(spec.needs)):
        if use in _PLANNED_SIGNALS and plans.state(use.signal):
            planned = plans.column(use.signal, points.position, points.step)
            logged = columns.get(column_index, planned)
            columns[column_index] = np.where(np.isnan(logged), planned, logged)
    for column_index, setting in enumerate(spec.settings, signals):
        if plans.state(setting):
            columns[column_index] = plans.column(setting, points.position, points.step)
    column_indices = tuple(sorted(columns))
    numbers = np.array(
        [points.time, points.value, *(columns[column_index] for column_index in column_indices)]
    ).T
    lists = tuple(column for column in values[signals:] if column is not None)
    return Rows(points.step, numbers, column_indices, lists)


def plan_shares(spec: SeriesSpec, rows: Rows, begin: int) -> Floats:
    """Return the share of the plan that is done in rows that begin with this index; NaN where no plan is
    known. It is that of `sentinel.detectors.schedules.planned_steps`.
    """
    total, epoch, epochs = (
        rows.column(spec.columns.index(name)) if name in spec.columns else np.full(len(rows), np.nan)
        for name in (Signal.TOTAL_STEPS, Signal.EPOCH, Setting.EPOCHS)
    )
    index = begin + np.arange(len(rows))
    of_each_epoch = (rows.step >= index) & (rows.step <= index + 1) & (spec.judged in HELD_OUT)
    epoch = np.where(np.isnan(epoch) & of_each_epoch, index + 1, epoch)
    with np.errstate(all="ignore"):
        of_epochs = np.where((epoch > 0) & (epoch <= epochs), epoch / epochs, np.nan)
        shares: Floats = np.where(total > 0, rows.step / total, of_epochs)
    return shares


def _points_in_order(arrived: Iterable[Points]) -> list[Points]:
    """Return the points of some tags, in the order in which the tags first came in the log."""
    return sorted((points for points in arrived if len(points)), key=lambda points: int(points.position[0]))


def _admitted(arrived: Iterable[Points], tags: dict[str, list[str]]) -> dict[str, Points]:
    """Return the points by tag, without tags that come too late. Adds new tags to ``tags``, in order."""
    admitted = {}
    for points in arrived:
        signal_tags = tags.setdefault(points.signal, [])
        if points.tag not in signal_tags and len(signal_tags) < MAX_TAGS_PER_SIGNAL:
            signal_tags.append(points.tag)
        if points.tag in signal_tags:
            admitted[points.tag] = points
    return admitted
