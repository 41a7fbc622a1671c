"""Reads logs once with sentinel's own reader: every series that has a role, attempt by attempt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sentinel.common.fault_isolation import Guard
from sentinel.detectors.api import Detector, History, Variant, detector
from sentinel.detectors.reading.roles import PARTS, Part, part_of
from sentinel.detectors.schema import CONTINUES, INDEX, SERIES, STEP
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, was_resumed
from sentinel.pipeline import Pipeline
from sentinel.series.buckets import Steps
from sentinel.series.stream import SeriesRows
from sentinel.sources.discovery import discover, locations_of

POINTS_AT_ONCE = 300_000
FIRST_ROWS = 50  # that tell whether a log begins at a resume


@detector(judges=tuple(PARTS), history=History(recent=1), variants={"never": Variant("never", ())})
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
    is_fresh: bool  # its first row is where a training begins
    is_outcome: bool = False

    def until(self, share: float) -> "Series":
        """Return the series as it was when such a share of its rows was logged."""
        return replace(self, rows=self.rows[: max(1, int(share * len(self.rows)))])


def series_below(folder: Path) -> Iterator[Series]:
    """Yield the series of every run below a folder."""
    assert isinstance(recorder, Detector)
    pipeline = Pipeline((recorder,), {}, {})
    for run in discover(locations_of([str(folder)])).runs:
        run_pipeline = pipeline.track(run, "-")
        guard = Guard()
        arrived: list[SeriesRows] = []
        more = True
        while more:
            news = run_pipeline.ingest(POINTS_AT_ONCE, float("nan"), guard)
            arrived += news.rows
            more = news.more and run.id not in guard.failures
        arrived += [one for one in run_pipeline.end(guard).rows if not one.window.ended]
        outcome = run_pipeline.log.outcome()
        key = (outcome.stream, outcome.tag) if outcome else None
        for one in _joined(str(run.path), arrived):
            yield replace(one, is_outcome=(one.stream, one.tag) == key)


def _joined(path: str, arrived: list[SeriesRows]) -> Iterator[Series]:
    rows: dict[tuple[str, int, str, Signal], list[Floats]] = {}
    steps: dict[tuple[str, int, str, Signal], list[Steps]] = {}
    resumes = {(one.stream, one.attempt) for one in arrived if one.window.continues}
    for one in arrived:
        key = one.stream, one.attempt, one.tag, Signal(one.spec.judged)
        rows.setdefault(key, []).append(one.window.rows.value)
        steps.setdefault(key, []).append(one.window.rows.step)
    signals: dict[int, set[Signal]] = {}
    for _, attempt, _, signal in rows:
        signals.setdefault(attempt, set()).add(signal)
    for key, parts in rows.items():
        stream, attempt, tag, signal = key
        part = part_of(signal, frozenset(signals[attempt]))
        value = np.concatenate(parts)
        value = value[np.isfinite(value)]
        if part is not None and len(value):
            of_all = np.concatenate(steps[key])
            continues = (stream, attempt) in resumes
            is_fresh = attempt == 1 and not _was_resumed(of_all, continues=continues)
            yield Series(path, stream, attempt, tag, part, value, int(of_all[-1]), is_fresh)


def _was_resumed(steps: Steps, *, continues: bool) -> bool:
    """Return whether a log goes on with a training, or begins later than one of a new training."""
    first = steps[:FIRST_ROWS]
    begins = {SERIES: [0] * len(first), INDEX: range(len(first)), STEP: first}
    frame = pl.DataFrame(begins).with_columns(pl.lit(continues).alias(CONTINUES))
    return bool(frame.select(was_resumed().first()).item())
