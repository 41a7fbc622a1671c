"""One attempt of one stream: its points become rows of the views, and rows are remembered.

Whether a row exists, its order and its context are decided by the positions of points in the stream,
never by how the stream was cut into polls:

- a row of a view with needs is complete at the last of its points; points of a tag that repeat a step
  count once there;
- a context value is the last one before the row that belongs to an earlier step (points of the row's
  own step may not have been written yet when the row is judged), else the one that the plan has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from sentinel.frames.coarse import Floats
from sentinel.frames.history import Rows, SeriesHistory
from sentinel.frames.plan import Plans
from sentinel.frames.points import Points
from sentinel.frames.views import View

MAX_TAGS_PER_SIGNAL = 16
"""Further tags that mean the same signal are not judged: they are parts of a whole, not the whole."""

_PARTNER_REACH = 4096
"""A point waits for its partners while at most this many newer points of its own tag have arrived."""

_NO_STEP = -(2**63)


@dataclass
class Attempt:
    """The histories of one attempt, and what joins need to go on."""

    number: int
    tags: dict[str, list[str]] = field(default_factory=dict)  # signal -> tags with a finite point, in order
    raw_tags: dict[str, list[str]] = field(default_factory=dict)  # the same with those without a finite point
    context: dict[str, Points] = field(default_factory=dict)  # signal -> points of its last two steps
    waiting: dict[str, dict[str, Points]] = field(default_factory=dict)  # view and tag -> tag -> points
    passed: dict[str, int] = field(default_factory=dict)  # view and tag -> step up to which all is joined
    partners: dict[str, Points] = field(default_factory=dict)  # tag -> points that a tag yet to come may need
    series: dict[str, dict[str, SeriesHistory]] = field(default_factory=dict)  # view -> tag -> history

    def rows(
        self, arrived: Sequence[Points], views: Sequence[View], plans: Plans
    ) -> Iterator[tuple[View, Points, Rows]]:
        """The rows that newly arrived points complete, in order: view, the judged points, the rows."""
        raw = _admitted(arrived, self.raw_tags)
        fresh = _admitted([p.finite() for p in arrived], self.tags)
        context = dict(self.context)
        for signal in {p.signal for p in fresh.values()}:
            if (first := fresh.get(self.tags[signal][0])) is not None:
                context[signal] = first.after(self.context.get(signal))
        for view in views:
            seen, tags = (raw, self.raw_tags) if view.non_finite else (fresh, self.tags)
            for tag in tags.get(view.judged, ()):
                judged, needed = self._complete(view, tag, seen.get(tag), fresh)
                if judged is None or not len(judged):
                    continue
                planned = [
                    plans.column(s, judged.position, judged.step) for s in (*view.uses, *view.settings)
                ]
                used = [_as_of(judged, context.get(s), p) for s, p in zip(view.uses, planned, strict=False)]
                columns = np.column_stack([judged.value, *needed, *used, *planned[len(view.uses) :]])
                yield view, judged, Rows(judged.step, judged.time, judged.position, columns)
        self.context = {s: p.take(slice(-2, None)) for s, p in context.items()}
        for signal in {s for view in views for s in view.needs}:
            if (partner := fresh.get(self.tags.get(signal, [""])[0])) is not None:
                every = partner.after(self.partners.get(partner.tag))
                self.partners[partner.tag] = every.take(slice(-_PARTNER_REACH - 1, None))

    def history(self, view: View, tag: str) -> SeriesHistory:
        """The history of one series, begun if it is new."""
        series = self.series.setdefault(view.key, {})
        if tag not in series:
            series[tag] = SeriesHistory(view.head_rows, view.recent_rows, 1 + len(view.columns), view.coarse)
        return series[tag]

    def _complete(
        self, view: View, tag: str, judged: Points | None, fresh: Mapping[str, Points]
    ) -> tuple[Points | None, Sequence[Floats]]:
        """The judged points of ``tag`` whose partners are there, and the partners' values."""
        if not view.needs:
            return judged, ()
        names = [tag, *(self.tags.get(s, [""])[0] for s in view.needs)]
        arrived = {n: fresh[n] for n in names[1:] if n in fresh} | ({tag: judged} if judged else {})
        if not arrived:
            return None, ()
        key = f"{view.key} {tag}"
        if key not in self.waiting:
            self.waiting[key] = {n: self.partners[n] for n in names[1:] if n in self.partners}
        waiting = self.waiting[key]
        for name, points in arrived.items():
            waiting[name] = points.after(waiting.get(name))
        if not all(n in waiting for n in names):
            return None, ()
        parts = [waiting[n] for n in names]
        steps = reduce(np.intersect1d, (p.step for p in parts))
        steps = steps[steps > self.passed.get(key, _NO_STEP)]
        found = [np.searchsorted(p.step, steps) for p in parts]
        position = np.max([p.position[i] for p, i in zip(parts, found, strict=True)], axis=0)
        reached = np.all(
            [
                np.searchsorted(p.position, position) - i <= _PARTNER_REACH
                for p, i in zip(parts, found, strict=True)
            ],
            axis=0,
        )
        order = np.flatnonzero(reached)[np.argsort(position[reached], kind="stable")]
        complete = replace(parts[0].take(found[0][order]), position=position[order])
        needed = [p.value[i[order]] for p, i in zip(parts[1:], found[1:], strict=True)]
        passed = self.passed[key] = min(int(p.step[-1]) for p in parts)  # no partner can come any more
        for name, part in zip(names, parts, strict=True):
            keep = max(int(np.searchsorted(part.step, passed)), len(part) - _PARTNER_REACH - 1)
            waiting[name] = part.take(slice(keep, None))
        return complete, needed

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [
            self.number,
            self.tags,
            self.raw_tags,
            {s: p.dump() for s, p in self.context.items()},
            {k: {t: p.dump() for t, p in w.items()} for k, w in self.waiting.items()},
            self.passed,
            {t: p.dump() for t, p in self.partners.items()},
            {k: {t: h.dump() for t, h in w.items()} for k, w in self.series.items()},
        ]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        number, tags, raw_tags, context, waiting, passed, partners, series = state
        return cls(
            number,
            tags,
            raw_tags,
            {s: Points.load(p) for s, p in context.items()},
            {k: {t: Points.load(p) for t, p in w.items()} for k, w in waiting.items()},
            passed,
            {t: Points.load(p) for t, p in partners.items()},
            {k: {t: SeriesHistory.load(h) for t, h in w.items()} for k, w in series.items()},
        )


def _admitted(arrived: Iterable[Points], tags: dict[str, list[str]]) -> dict[str, Points]:
    """The points by tag, less those of tags that come too late; ``tags`` learns of new ones."""
    found = {}
    for points in sorted((p for p in arrived if len(p)), key=lambda p: int(p.position[0])):
        known = tags.setdefault(points.signal, [])
        if points.tag not in known and len(known) < MAX_TAGS_PER_SIGNAL:
            known.append(points.tag)
        if points.tag in known:
            found[points.tag] = points
    return found


def _as_of(rows: Points, context: Points | None, planned: Floats) -> Floats:
    """For each row the last context value before it that belongs to an earlier step, else the planned one."""
    if context is None or not len(context):
        return planned
    last = np.searchsorted(context.position, rows.position) - 1
    last = np.where((last >= 0) & (context.step[last] == rows.step), last - 1, last)
    known = (last >= 0) & (context.step[last] < rows.step)
    return np.where(known, context.value[last], planned)
