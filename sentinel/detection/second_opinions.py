"""What the forest says of each outcome at interims and at the end. A page about it may have to wait for that.

It is worked out only where a page depends on it.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from sentinel.common.errors import is_defect
from sentinel.detectors.api import Detector
from sentinel.detectors.reading.cards import second_opinions
from sentinel.detectors.reading.roles import PARTS, Role
from sentinel.incidents.verdict_merge import Key, Segment, Verdict
from sentinel.series.rows import finite_or_none
from sentinel.series.stream import SeriesRows

LEAST_POINTS = 8
"""Points of a series below which its course tells nothing."""

LEAST_EVALUATIONS = 3
"""The same of evaluations, which are few, and of which each is a mean over all held-out data."""

_FOREST = ""
"""In place of a detector. It comes before all others of a position."""


def opinions(
    new_rows: Iterable[SeriesRows], failed: Callable[[str, str, BaseException], None]
) -> Iterator[tuple[SeriesRows, Segment]]:
    """Yield what the forest says of the outcomes among new rows, each once, for the `IncidentTracker`."""
    asked = {
        _moment(series): (series, _verdict(series, detector, failed))
        for series in new_rows
        if (series.window.interim or series.window.ended) and series.window.end >= _least_points(series)
        if (detector := _detector(series)) is not None
    }
    for series, verdict in asked.values():
        yield series, (verdict,)


def _least_points(series: SeriesRows) -> int:
    part = PARTS.get(series.spec.judged)
    is_evaluated = part is not None and part.role in (Role.METRIC, Role.HELD_OUT_LOSS)
    return LEAST_EVALUATIONS if is_evaluated else LEAST_POINTS


def _moment(series: SeriesRows) -> tuple[str, str, int, str, int, bool]:
    """Return what tells the moment of an opinion from others. The end of a run may be an interim as well."""
    window = series.window
    return series.run, series.stream, series.attempt, series.tag, window.end, window.ended


def _detector(series: SeriesRows) -> Detector | None:
    """Return a detector whose frames have what the forest asks for."""
    readers = (one for one in series.spec.detectors if not second_opinions().isdisjoint(one.reads))
    return next(readers, None)


def _verdict(
    series: SeriesRows, detector: Detector, failed: Callable[[str, str, BaseException], None]
) -> Verdict:
    window = series.window
    return Verdict(
        key=Key(series.run, series.stream, series.attempt, series.tag, _FOREST),
        signal=series.spec.judged,
        index=window.end - 1,
        step=int(window.rows.step[-1]),
        time=finite_or_none(window.rows.time[-1]),
        position=int(window.position[-1]),
        severity=0,
        final=window.ended,
        opinion=cache(partial(_opinion, series, detector, failed)),
    )


def _opinion(
    series: SeriesRows, detector: Detector, failed: Callable[[str, str, BaseException], None]
) -> float | None:
    from sentinel.detectors.reading.opinion import opinion_on
    from sentinel.series.windows import frame

    try:
        return opinion_on(frame(detector, [(series.spec, series.window)]))
    except BaseException as error:  # a broken opinion must not stop a page
        if not is_defect(error):
            raise
        failed("second opinion", series.run, error)
        return None
