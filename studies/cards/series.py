"""Reads logs once with sentinel's own reader: every series that has a role, attempt by attempt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sentinel.common.fault_isolation import Guard
from sentinel.detectors.api import Detector, History, Variant, detector
from sentinel.detectors.reading.roles import PARTS, Part, part_of
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats
from sentinel.pipeline import Pipeline
from sentinel.runs.ingested import Arrived
from sentinel.sources.discovery import discover, places

POINTS_AT_ONCE = 300_000


@detector(
    judges=tuple(PARTS),
    history=History(recent=1),
    variants={"never": Variant("never", ())},
)
def recorder(points):  # type: ignore[no-untyped-def]
    """Stand for a detector that asks for all series and is never asked."""
    return points


@dataclass(frozen=True)
class Series:
    """All finite rows of one tag in one attempt, turned over if less of it is better."""

    path: str
    stream: str
    attempt: int
    tag: str
    part: Part
    rows: Floats
    last_step: int

    def until(self, share: float) -> "Series":
        """Return the series as it was when such a share of its rows was logged."""
        return replace(self, rows=self.rows[: max(1, int(share * len(self.rows)))])


def series_below(folder: Path) -> Iterator[Series]:
    """Yield the series of every run below a folder."""
    assert isinstance(recorder, Detector)
    pipeline = Pipeline((recorder,), {}, {})
    for run in discover(places([str(folder)])).runs:
        run_pipeline = pipeline.track(run, "-")
        guard = Guard()
        arrived: list[Arrived] = []
        more = True
        while more:
            news = run_pipeline.ingest(POINTS_AT_ONCE, float("nan"), guard)
            arrived += news.rows
            more = news.more and run.id not in guard.failures
        arrived += [one for one in run_pipeline.end(guard).rows if not one.series.window.ended]
        yield from _joined(str(run.path), arrived)


def _joined(path: str, arrived: list[Arrived]) -> Iterator[Series]:
    rows: dict[tuple[str, int, str, Signal], list[Floats]] = {}
    last_step: dict[tuple[str, int, str, Signal], int] = {}
    for one in arrived:
        key = one.stream, one.series.attempt, one.series.tag, Signal(one.series.view.judged)
        rows.setdefault(key, []).append(one.series.window.rows.value)
        last_step[key] = int(one.series.window.rows.step[-1])
    signals: dict[int, set[Signal]] = {}
    for _, attempt, _, signal in rows:
        signals.setdefault(attempt, set()).add(signal)
    for key, parts in rows.items():
        stream, attempt, tag, signal = key
        part = part_of(signal, frozenset(signals[attempt]))
        value = np.concatenate(parts)
        value = value[np.isfinite(value)]
        if part is not None and len(value):
            yield Series(path, stream, attempt, tag, part, value, last_step[key])
