"""Judges what is new in some runs: the rows of all of them at once, and then each run as a whole."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.detection.run_checks import RunChecks
from sentinel.detectors.api import Declaration
from sentinel.detectors.run_checks import RunCheck
from sentinel.incidents.verdict_merge import Segment
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.ingested import Ingested
from sentinel.series.stream import SeriesRows

_log = logging.getLogger(__name__)

DetectorFailed = Callable[[str, str, BaseException], None]
"""Called when a detector raises on a run, with the detector's name, the run's id and the error."""

Verdicts = dict[str, list[Segment]]
"""By the id of the run."""

RowCounts = dict[str, Counter[tuple[str, str]]]
"""By the id of the run: how many rows the detectors judged or skipped; see `RowDetection`."""

_MAX_ERROR_CHARACTERS = 300  # of an error's own words in the log


def log_failure(detector: str, run: str, error: BaseException) -> None:
    """Log that a detector raised on a run."""
    what = clean_text(f"{type(error).__name__}: {error}", _MAX_ERROR_CHARACTERS)
    _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)


class Judging:
    """Detectors with the thresholds that differ from the defaults. ``failed`` is called when one raises."""

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        failed: DetectorFailed,
    ) -> None:
        self._parameters = parameters
        self._failed = failed
        checks = [detector for detector in detectors if isinstance(detector, RunCheck)]
        self.checking = RunChecks(checks, parameters, failed)

    def check(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: Sequence[Ingested],
        guard: Guard,
        *,
        final: bool = False,
    ) -> Verdicts:
        """Return what the run checks find in what is new. The runs are over if this is ``final``."""
        verdicts: Verdicts = {}
        for run_pipeline, ingested in zip(run_pipelines, news, strict=True):
            check = partial(self._check_run, run_pipeline, ingested, final)
            verdicts[run_pipeline.id] = guard(run_pipeline.log.run, "run checks", check) or []
        return verdicts

    def _check_run(self, run_pipeline: RunPipeline, news: Ingested, final: bool) -> list[Segment]:
        """Return the findings of the run checks, if there is something new that they judge."""
        grew = news.points > 0
        if not (final or news.tells_of_run or (grew and run_pipeline.incidents.watches_run)):
            return []
        inactivity = Inactivity(0.0) if grew else None
        return [*self.checking.segments(run_pipeline.log, news, inactivity=inactivity, final=final)]

    def judge(
        self, run_pipelines: Sequence[RunPipeline], news: Sequence[Ingested], guard: Guard
    ) -> tuple[Verdicts, Verdicts, RowCounts]:
        """Return the verdicts on the new rows of each run, and those on the rows that its end brought."""
        verdicts: Verdicts = defaultdict(list)
        of_ends: Verdicts = defaultdict(list)
        row_counts: RowCounts = defaultdict(Counter)
        rows_by_run = [ingested.rows for ingested in news]
        if not any(rows_by_run):
            return verdicts, of_ends, row_counts
        from sentinel.detection.row_detection import RowDetection  # with polars; a listing judges nothing

        trackers = {run_pipeline.id: run_pipeline.incidents for run_pipeline in run_pipelines}

        def judge_runs(rows_of_some_runs: Sequence[Sequence[SeriesRows]]) -> list[tuple[SeriesRows, Segment]]:
            detection = RowDetection(self._parameters, self._failed)
            new_rows = [series for rows in rows_of_some_runs for series in rows]
            runs = {series.run for series in new_rows}
            tracked_keys = {key for run in runs for key in trackers[run].tracked_keys()}
            segments = [*detection.segments(new_rows, tracked_keys)]
            row_counts.update(detection.row_counts)
            return segments

        runs = [run_pipeline.log.run for run_pipeline in run_pipelines]
        for series, segment in guard.batch(runs, "judging", judge_runs, rows_by_run):
            (of_ends if series.of_end else verdicts)[series.run].append(segment)
        return verdicts, of_ends, row_counts
