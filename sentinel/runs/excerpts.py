"""The signals of a run around a finding, as a plot needs them: bounded, and in built-in types."""

import math
from collections.abc import Iterable, Iterator

from sentinel.detectors.evidence import measure_of
from sentinel.detectors.signals import Signal
from sentinel.runs.log import RunLog
from sentinel.series.buckets import Buckets
from sentinel.series.excerpt import Excerpt, Number
from sentinel.series.rows import Rows
from sentinel.series.specs import SeriesSpec

_MAX_POINTS = 200


def excerpts(log: RunLog, stream: str, attempt: int, tag: str, detector: str) -> list[Excerpt]:
    """Return the judged signal, then those that the detector sees beside it; none if the attempt is over."""
    own = log.streams.get(stream)
    if own is None or own.attempt.number != attempt:
        return []
    for view in own.specs:
        history = own.attempt.series.get(view.key, {}).get(tag)
        if history is not None and any(rule.name == detector for rule in view.detectors):
            coarse = history.coarse
            recent = history.recent.last(_MAX_POINTS)
            return [_judged(view, coarse, recent, tag), *_beside(view, coarse, recent, detector)]
    return []


def _judged(view: SeriesSpec, coarse: Buckets, recent: Rows, tag: str) -> Excerpt:
    return Excerpt(
        label=measure_of(view.judged).label,
        tag=tag,
        step=coarse.step.tolist(),
        mean=_numbers(coarse.mean.tolist()),
        low=_numbers(coarse.low.tolist()),
        high=_numbers(coarse.high.tolist()),
        last_step=recent.step.tolist(),
        last=_numbers(recent.value.tolist()),
    )


def _beside(view: SeriesSpec, coarse: Buckets, recent: Rows, detector: str) -> Iterator[Excerpt]:
    asked = [rule for rule in view.detectors if rule.name == detector]
    names = {name for rule in asked for name in (*rule.needs, *(use.column for use in rule.uses))}
    for place, column in sorted(coarse.first.items()):
        mean = _numbers(column.tolist())
        name = view.columns[place]
        if name in names and any(value is not None for value in mean):
            step = coarse.step.tolist()
            last = _numbers(recent.column(place).tolist())
            yield Excerpt(measure_of(Signal(name)).label, "", step, mean, [], [], recent.step.tolist(), last)


def _numbers(values: Iterable[float]) -> list[Number]:
    return [value if math.isfinite(value) else None for value in values]
