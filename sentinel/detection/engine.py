"""Judges what is new in some runs: the rows of all of them at once, and then each run as a whole."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.detection.run_checks import Checking
from sentinel.detectors.api import Declaration
from sentinel.detectors.run_checks import RunCheck
from sentinel.incidents.verdict_merge import Stretch
from sentinel.run_pipeline import Tracker
from sentinel.runs.inactivity import Quiet
from sentinel.runs.ingested import Absorbed, Arrived

_log = logging.getLogger(__name__)

DetectorFailed = Callable[[str, str, BaseException], None]
"""Called when a detector raises on a run, with the detector's name, the run's id and the error."""

Verdicts = dict[str, list[Stretch]]
"""By the id of the run."""

Looked = dict[str, Counter[tuple[str, str]]]
"""By the id of the run: how many rows the detectors judged or held back; see `Detection`."""


def log_failure(detector: str, run: str, error: BaseException) -> None:
    """Log that a detector raised on a run."""
    what = clean_text(f"{type(error).__name__}: {error}", 300)
    _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)


class Judging:
    """Detectors with the thresholds that differ from the defaults. ``failed`` hears of each that raises."""

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        failed: DetectorFailed,
    ) -> None:
        self._parameters = parameters
        self._failed = failed
        checks = [detector for detector in detectors if isinstance(detector, RunCheck)]
        self.checking = Checking(checks, parameters, failed)

    def judge(
        self, trackers: Sequence[Tracker], news: Sequence[Absorbed], guard: Guard, *, concluded: bool = False
    ) -> tuple[Verdicts, Looked]:
        """The verdicts on what is new in each run. The runs are over if they are ``concluded``."""
        verdicts, looked = self._rows(trackers, [absorbed.rows for absorbed in news], guard)
        for tracker, absorbed in zip(trackers, news, strict=True):
            check = partial(self._check, tracker, absorbed, concluded)
            findings = guard(tracker.log.run, "run checks", check) or ()
            verdicts.setdefault(tracker.id, []).extend(findings)
        return verdicts, looked

    def _check(self, tracker: Tracker, news: Absorbed, concluded: bool) -> list[Stretch]:
        """The findings of the run checks, if there is something new that they judge."""
        grew = news.points > 0
        if not (concluded or news.tells_of_run or (grew and tracker.book.watches_run)):
            return []
        silence = Quiet(0.0) if grew else None
        return [*self.checking.stretches(tracker.log, news, silence=silence, concluded=concluded)]

    def _rows(
        self, trackers: Sequence[Tracker], arrived: Sequence[Sequence[Arrived]], guard: Guard
    ) -> tuple[Verdicts, Looked]:
        looked: Looked = defaultdict(Counter)
        if not any(arrived):
            return {}, looked
        from sentinel.detection.row_detection import Detection  # with polars; a listing judges nothing

        def stretches(some: Sequence[tuple[Tracker, Sequence[Arrived]]]) -> list[Stretch]:
            detection = Detection(self._parameters, self._failed)
            awake = {key for tracker, _ in some for key in tracker.book.awake()}
            stretches = [*detection.stretches([row for _, rows in some for row in rows], awake)]
            looked.update(detection.looked)
            return stretches

        runs = [tracker.log.run for tracker in trackers]
        pairs = [*zip(trackers, arrived, strict=True)]
        verdicts: Verdicts = {}
        for rows in guard.at_once(runs, "judging", stretches, pairs):
            verdicts.setdefault(rows[0].key.run, []).append(rows)
        return verdicts, looked
