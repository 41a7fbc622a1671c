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

_MAX_EXCERPT_POINTS = 200  # of each signal, the last ones


def excerpts(log: RunLog, stream: str, attempt: int, tag: str, detector: str) -> list[Excerpt]:
    """Return the judged signal, then those that the detector sees beside it; none if the attempt is over."""
    stream_ = log.streams.get(stream)
    if stream_ is None or stream_.attempt.number != attempt:
        return []
    for spec in stream_.specs:
        history = stream_.attempt.series.get(spec.key, {}).get(tag)
        if history is not None and any(rule.name == detector for rule in spec.detectors):
            coarse = history.coarse
            recent = history.recent.last(_MAX_EXCERPT_POINTS)
            return [_judged(spec, coarse, recent, tag), *_excerpts_beside(spec, coarse, recent, detector)]
    return []


def _judged(spec: SeriesSpec, coarse: Buckets, recent: Rows, tag: str) -> Excerpt:
    """Return the excerpt of the judged signal."""
    return Excerpt(
        label=measure_of(spec.judged).label,
        tag=tag,
        step=coarse.step.tolist(),
        mean=_finite_numbers(coarse.mean.tolist()),
        low=_finite_numbers(coarse.low.tolist()),
        high=_finite_numbers(coarse.high.tolist()),
        last_step=recent.step.tolist(),
        last=_finite_numbers(recent.value.tolist()),
    )


def _excerpts_beside(spec: SeriesSpec, coarse: Buckets, recent: Rows, detector: str) -> Iterator[Excerpt]:
    """Yield the excerpts of the other signals that the detector sees."""
    rules = [rule for rule in spec.detectors if rule.name == detector]
    names = {name for rule in rules for name in (*rule.needs, *(use.column for use in rule.uses))}
    for column_index, column in sorted(coarse.first.items()):
        mean = _finite_numbers(column.tolist())
        name = spec.columns[column_index]
        if name in names and any(value is not None for value in mean):
            yield Excerpt(
                label=measure_of(Signal(name)).label,
                tag="",
                step=coarse.step.tolist(),
                mean=mean,
                low=[],
                high=[],
                last_step=recent.step.tolist(),
                last=_finite_numbers(recent.column(column_index).tolist()),
            )


def _finite_numbers(values: Iterable[float]) -> list[Number]:
    """Return the values with None for each that is not finite."""
    return [value if math.isfinite(value) else None for value in values]
