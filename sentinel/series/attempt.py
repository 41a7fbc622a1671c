"""One attempt of one stream: its points become rows of the views, and the attempt remembers the rows.

The positions of points in the stream decide whether a row exists, where it stands and what its context is.
The way in which polls cut the stream never matters:

- A row of a view that needs other signals is complete at the last of its points (see `Join`).
- The context of a row belongs to earlier steps (see `AsOfJoin`). A signal that was never logged has the value
  that the plan has for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from sentinel.detectors import schema
from sentinel.detectors.schema import Last
from sentinel.detectors.signals import Signal
from sentinel.series.asof_join import Asked, AsOfJoin
from sentinel.series.attempts import Points, finite
from sentinel.series.buckets import Buckets, Floats
from sentinel.series.derived import DERIVED
from sentinel.series.history import SeriesHistory, Window
from sentinel.series.plan import Plans
from sentinel.series.rows import Rows
from sentinel.series.specs import SeriesSpec, SeriesSpecs
from sentinel.series.standings import Standing
from sentinel.series.state_schema import AttemptState
from sentinel.series.step_join import REACH, Join

MAX_TAGS_PER_SIGNAL = 128
"""How many tags of one signal are judged. `Attempt.left_out` names the signals with more."""

MAX_JUDGED_TAGS = 16
"""Signals of which only the first tags are judged. Their other tags are parts of a whole, not the whole."""

_PLANNED = {Last(Signal.TOTAL_STEPS), Last(Signal.WARMUP_STEPS)}
"""Signals that the settings of a run state if its log does not."""

_DERIVED = frozenset(made.signal for made in DERIVED)


@dataclass(slots=True)
class Attempt:
    """The histories of one attempt, and the points that its joins still need."""

    number: int
    sums: dict[str, list[str]] = field(default_factory=dict)  # signal -> all tags that are summed at a step
    tags: dict[str, list[str]] = field(default_factory=dict)  # signal -> tags with a finite point, in order
    raw_tags: dict[str, list[str]] = field(default_factory=dict)  # the same with those without a finite point
    context: AsOfJoin = field(default_factory=AsOfJoin)
    joins: dict[str, Join] = field(default_factory=dict)  # by view and tag, or by derived signal
    partners: dict[str, Points] = field(default_factory=dict)  # tag -> points that a tag yet to come may need
    series: dict[str, dict[str, SeriesHistory]] = field(default_factory=dict)  # view -> tag -> history
    earlier: dict[str, dict[str, Rows]] = field(default_factory=dict)  # view -> tag -> of the attempt before
    left_out: dict[str, tuple[int, float]] = field(
        default_factory=dict
    )  # signal -> step and time of the first
    standings: dict[str, Standing] = field(default_factory=dict)  # by tag
    courses: dict[str, Buckets] = field(default_factory=dict)  # by tag

    def next(self, number: int, views: SeriesSpecs) -> "Attempt":
        """Return the attempt that begins where this one ends."""
        earlier = {view.key: dict(self.earlier.get(view.key, {})) for view in views if view.earlier_rows}
        for key, of_tag in earlier.items():
            of_tag.update({tag: history.recent for tag, history in self.series.get(key, {}).items()})
        return Attempt(number, self.sums, earlier=earlier, left_out=self.left_out)

    def windows(
        self, arrived: Sequence[Points], views: SeriesSpecs, plans: Plans
    ) -> Iterator[tuple[SeriesSpec, str, Window]]:
        """Yield the windows of the rows that new points complete, each with its view and its judged tag."""
        arrived = _in_order(arrived)
        raw = _admitted(arrived, self.raw_tags)
        logged = _in_order(finite(arrived))
        fresh = _admitted([points for points in logged if points.signal not in _DERIVED], self.tags)
        derived = [points for points in logged if points.signal in _DERIVED] + self._derived(fresh, views)
        fresh |= _admitted(_in_order(finite(derived)), self.tags)
        for points in logged:
            if points.tag not in fresh:
                self.left_out.setdefault(points.signal, (int(points.step[0]), float(points.time[0])))
        self.context.extend(fresh | self._standings(fresh, views), views.uses | _PLANNED, self.tags)
        complete = [*self._complete(views, raw, fresh)]
        beside = self.context.values([_asked(view, judged) for view, judged, _ in complete], self.tags)
        for (view, judged, needed), aligned in zip(complete, beside, strict=True):
            rows = _rows(view, judged, [*needed, *aligned], plans)
            for window in self._history(view, judged.tag).extend(rows, judged.position):
                yield view, judged.tag, window
        self._extend_courses(fresh, views)
        self.context.trim()
        for signal in views.needs:
            if (partner := fresh.get(self._first_tag(signal))) is not None:
                self.partners[partner.tag] = partner.after(self.partners.get(partner.tag)).tail(REACH + 1)

    def _history(self, view: SeriesSpec, tag: str) -> SeriesHistory:
        """Return the history of one series, which is created if it is new."""
        series = self.series.setdefault(view.key, {})
        if tag not in series:
            recent = max(view.recent_rows, view.earlier_rows)
            earlier = self.earlier.get(view.key, {}).get(tag) or Rows.none(len(view.lists))
            series[tag] = SeriesHistory(view.head_rows, recent, earlier, view.coarse, view.plotted)
        return series[tag]

    def end(self, views: SeriesSpecs) -> Iterator[tuple[SeriesSpec, str, Window]]:
        """Yield the last row of each series, in which some detectors judge it again when the run is over."""
        for view in views:
            if view.at_end:
                series = self.series.get(view.key, {})
                for tag, history in series.items():
                    yield view, tag, replace(history.end(), courses=self._courses(view))

    def _extend_courses(self, fresh: Mapping[str, Points], views: SeriesSpecs) -> None:
        """Remember the courses that a view asks for."""
        for use in views.courses:
            tag = self._first_tag(use.signal)
            if tag in fresh:
                points = fresh[tag]
                self.courses.setdefault(tag, Buckets(extremes=False)).push(points.value, points.step)

    def _courses(self, view: SeriesSpec) -> dict[str, Floats]:
        """Return the courses that a view asks for, by column, of signals that were logged."""
        tags = {use.column: self._first_tag(use.signal) for use in view.courses}
        return {column: self.courses[tag].mean for column, tag in tags.items() if tag in self.courses}

    def last(self, signal: Signal) -> float | None:
        """Return the newest value of a signal that the views or the plan ask for."""
        return self.context.newest(self._first_tag(signal))

    def _complete(
        self, views: SeriesSpecs, raw: Mapping[str, Points], fresh: Mapping[str, Points]
    ) -> Iterator[tuple[SeriesSpec, Points, Sequence[Floats]]]:
        """Yield the judged points of each series whose partners have arrived, and the values of the
        partners.
        """
        for view in views:
            seen, tags = (raw, self.raw_tags) if view.non_finite else (fresh, self.tags)
            for tag in tags.get(view.judged, ())[:MAX_JUDGED_TAGS]:
                if view.needs:
                    joined = self._joined(view, tag, seen.get(tag), fresh)
                else:
                    joined = (seen[tag], ()) if tag in seen else None
                if joined is not None and len(joined[0]):
                    yield view, *joined

    def _joined(
        self, view: SeriesSpec, tag: str, judged: Points | None, fresh: Mapping[str, Points]
    ) -> tuple[Points, Sequence[Floats]] | None:
        """Return the judged points of ``tag`` whose partners have all arrived, and the values of the
        partners.
        """
        partners = [self._first_tag(signal) for signal in view.needs]
        arrived = {name: fresh[name] for name in partners if name in fresh} | (
            {tag: judged} if judged else {}
        )
        if not arrived:
            return None
        key = f"{view.key} {tag}"
        if key not in self.joins:
            self.joins[key] = Join({name: self.partners[name] for name in partners if name in self.partners})
        return self.joins[key].extend([tag, *partners], arrived)

    def _derived(self, fresh: Mapping[str, Points], views: SeriesSpecs) -> list[Points]:
        """New points of derived signals, if a view asks for them."""
        made = []
        for sought in DERIVED:
            tags = sought.tags(self._first_tag, self.sums)
            arrived = {tag: fresh[tag] for tag in tags if tag in fresh}
            if sought.signal in views.signals and arrived:
                complete = self.joins.setdefault(sought.signal, Join()).extend(tags, arrived)
                if complete is not None:
                    points, others = complete
                    with np.errstate(all="ignore"):
                        value = sought.value(points.value, *others)
                    made.append(replace(points, tag=sought.name(*tags), signal=sought.signal, value=value))
        return made

    def _standings(self, fresh: Mapping[str, Points], views: SeriesSpecs) -> dict[str, Points]:
        """Return how outcomes that a view asks for stand at the looks among new points, by tag."""
        found = {}
        for use in views.uses:
            tag = self._first_tag(use.signal)
            if isinstance(use, schema.Standing) and tag in fresh:
                history = self.standings.setdefault(tag, Standing())
                found[use.tag(tag)] = history.extend(fresh[tag], use.tag(tag))
        return {tag: points for tag, points in found.items() if len(points)}

    def _first_tag(self, signal: Signal) -> str:
        """Return the tag that represents a signal; "" if the signal has no tag yet."""
        return next(iter(self.tags.get(signal, ())), "")

    def dump(self) -> AttemptState:
        """Return everything `load` needs."""
        return AttemptState(
            number=self.number,
            sums=self.sums,
            tags=self.tags,
            raw_tags=self.raw_tags,
            context=self.context.dump(),
            joins={key: join.dump() for key, join in self.joins.items()},
            partners={t: p.dump() for t, p in self.partners.items()},
            series={k: {t: h.dump() for t, h in w.items()} for k, w in self.series.items()},
            earlier={k: {t: r.dump() for t, r in w.items()} for k, w in self.earlier.items()},
            left_out=self.left_out,
            standings={tag: standing.dump() for tag, standing in self.standings.items()},
            courses={tag: course.dump() for tag, course in self.courses.items()},
        )

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        kept = AttemptState(*state)
        return cls(
            number=kept.number,
            sums=kept.sums,
            tags=kept.tags,
            raw_tags=kept.raw_tags,
            context=AsOfJoin.load(kept.context),
            joins={key: Join.load(join) for key, join in kept.joins.items()},
            partners={t: Points.load(p) for t, p in kept.partners.items()},
            series={k: {t: SeriesHistory.load(h) for t, h in w.items()} for k, w in kept.series.items()},
            earlier={k: {t: Rows.load(r) for t, r in w.items()} for k, w in kept.earlier.items()},
            left_out={signal: (step, time) for signal, (step, time) in kept.left_out.items()},
            standings={tag: Standing.load(state) for tag, state in kept.standings.items()},
            courses={tag: Buckets.load(state) for tag, state in kept.courses.items()},
        )


def _asked(view: SeriesSpec, judged: Points) -> Asked:
    return Asked(f"{view.key} {judged.tag}", judged, (*view.uses, *view.lists))


def _rows(view: SeriesSpec, judged: Points, beside: Sequence[Floats | None], plans: Plans) -> Rows:
    """Return the rows of judged points, with the values ``beside`` them: needed signals, used ones, then
    lists.
    """
    number = len(view.needs) + len(view.uses)
    known = {place: values for place, values in enumerate(beside[:number]) if values is not None}
    for place, use in enumerate(view.uses, len(view.needs)):
        if use in _PLANNED and plans.state(use.signal):
            planned = plans.column(use.signal, judged.position, judged.step)
            logged = known.get(place, planned)
            known[place] = np.where(np.isnan(logged), planned, logged)
    for place, setting in enumerate(view.settings, number):
        if plans.state(setting):
            known[place] = plans.column(setting, judged.position, judged.step)
    places = tuple(sorted(known))
    numbers = np.array([judged.time, judged.value, *(known[place] for place in places)]).T
    lists = tuple(column for column in beside[number:] if column is not None)
    return Rows(judged.step, numbers, places, lists)


def _in_order(arrived: Iterable[Points]) -> list[Points]:
    """Return the points of some tags, in the order in which the tags first came in the log."""
    return sorted((points for points in arrived if len(points)), key=lambda p: int(p.position[0]))


def _admitted(arrived: Iterable[Points], tags: dict[str, list[str]]) -> dict[str, Points]:
    """Return the points by tag, without tags that come too late. Adds new tags to ``tags``, in order."""
    admitted = {}
    for points in arrived:
        known = tags.setdefault(points.signal, [])
        if points.tag not in known and len(known) < MAX_TAGS_PER_SIGNAL:
            known.append(points.tag)
        if points.tag in known:
            admitted[points.tag] = points
    return admitted
