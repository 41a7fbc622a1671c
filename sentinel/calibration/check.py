"""Compares a calibration's promise with the pages since, and says whether chance allows the difference."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from sentinel.calibration.calibration import FALSE, USEFUL, Calibration, PageSent, of_metrics, variants
from sentinel.calibration.e_process import is_beyond, log_evidence
from sentinel.calibration.page_rates import Rate
from sentinel.common.days import Extent, day_of, last_before
from sentinel.common.text import counted


class CalibrationCheck(msgspec.Struct, frozen=True):
    """What came of a promise since.

    ``runs`` wrote since and count as healthy: they did not crash, and no page was called useful. ``paged``
    of them paged, and in ``false`` of them somebody called a page a false alarm.

    ``pages`` are those of all runs that wrote since, which did so for ``run_days``. Nobody said anything of
    those that are ``unanswered``, and ``answers`` is what was said of the incidents of the others. ``rate``
    is in the promise's unit, without the runs, or the days of runs, of which a page was called useful.

    The promise is ``broken`` if pages that were called false come more often, and ``in_question`` if all do
    that nobody called useful. ``beyond`` are variants that were called false more often than
    the archive lets expect of them.
    """

    promise: Calibration
    runs: int
    paged: int
    false: int
    pages: int
    unanswered: int
    answers: Mapping[str, int]
    run_days: int
    rate: Rate
    broken: bool
    in_question: bool
    beyond: Sequence[str]

    @classmethod
    def of(
        cls,
        promise: Calibration,
        extents: Mapping[str, Extent],
        crashed: Collection[str],
        pages: Sequence[PageSent],
        useful: Collection[str] = (),
    ) -> "CalibrationCheck":
        """Count the runs and pages since a promise.

        ``extents`` has the known runs by id, and ``pages`` what was sent since the promise. The ``useful``
        runs are those of which somebody called an incident useful, whether it was sent or not.
        """
        active = {
            run: extent
            for run, extent in extents.items()
            if extent.last is None or extent.last > promise.since
        }
        metric_pages = [page for page in pages if page.run in active and of_metrics(page.detector)]
        useful_pages = [page for page in pages if page.verdict == USEFUL]
        healthy = active.keys() - {page.run for page in useful_pages} - {*crashed, *useful}
        in_ledger = active.keys() - {*crashed} if promise.daily else healthy
        ledger = Ledger(promise, {run: active[run] for run in in_ledger}, useful_pages)
        possibly_false = [page for page in metric_pages if page in ledger]
        false = [page for page in possibly_false if page.verdict == FALSE]
        broken, beyond = ledger.beyond(false)
        in_question, _ = ledger.beyond(possibly_false)
        answers = {page.incident: page.verdict for page in metric_pages if page.verdict}
        return cls(
            promise,
            runs=len(healthy),
            paged=len(healthy & {page.run for page in metric_pages}),
            false=len(healthy & {page.run for page in metric_pages if page.verdict == FALSE}),
            pages=len(metric_pages),
            unanswered=sum(not page.verdict for page in metric_pages),
            answers=Counter(answers.values()),
            run_days=sum(len(extent.days(promise.since)) for extent in active.values()),
            rate=ledger.rate(possibly_false),
            broken=broken,
            in_question=in_question,
            beyond=beyond,
        )

    @property
    def advice(self) -> str:
        """What a person has to do about it; empty if nothing."""
        if self.broken or self.beyond:
            more = f", more than promised of {', '.join(self.beyond)}" if self.beyond else ""
            return f"recalibrate: {self._answered}{more}"
        if self.in_question:
            pages = counted(self.unanswered, "page")
            return f"answer with `sentinel feedback`: if {pages} without an answer were false, recalibrate"
        return ""

    @property
    def _answered(self) -> str:
        return f"{self.answers.get(FALSE, 0)} false of {counted(sum(self.answers.values()), 'answer')}"

    def lines(self) -> Sequence[str]:
        """Return what was promised and what came of it, for a person; the advice, if any, comes last."""
        daily = f"{self.pages / self.run_days:.2g} a run-day" if self.run_days else "no run-day yet"
        return [
            f"promised: {self.promise}",
            f"realised: {self.rate}; {counted(self.pages, 'page')}, {daily}; {self._answered}",
            *filter(None, [self.advice]),
        ]


class Ledger:
    """The healthy runs since a promise by days, counted from the epoch, beside which pages are counted.

    A run belongs to the day on which it began, and so does its page, or else the runs that page would be
    known before the others. A run-day belongs to its day. ``useful`` are pages that were called so: a run, or
    a day of it, that has one is not healthy.
    """

    def __init__(
        self, promise: Calibration, extents: Mapping[str, Extent], useful: Sequence[PageSent] = ()
    ) -> None:
        self._promise = promise
        all_days = {run: extent.days(promise.since) for run, extent in extents.items()}
        first_day = {run: days[:1] or [day_of(promise.since)] for run, days in all_days.items()}
        self._days: Mapping[str, Sequence[int]] = all_days if promise.daily else first_day
        self._unhealthy = {self._unit(page) for page in useful if self._days.get(page.run)}
        units = {(day, run) for run, days in self._days.items() for day in days} - self._unhealthy
        self._runs_by_day = Counter(day for day, _ in units)
        self._days_by_run = Counter(run for _, run in units)

    def __contains__(self, page: PageSent) -> bool:
        return bool(self._days.get(page.run)) and self._unit(page) not in self._unhealthy

    def rate(self, pages: Sequence[PageSent]) -> Rate:
        """Return how often these pages come, at most one in a unit."""
        paged = Counter(run for _, run in {self._unit(page) for page in pages})
        if self._promise.daily:
            counts = [(paged[run], days) for run, days in self._days_by_run.items()]
            return Rate.of_days(counts, self._promise.design_effect)
        return Rate(paged.total(), self._runs_by_day.total())

    def beyond(self, pages: Sequence[PageSent]) -> tuple[bool, Sequence[str]]:
        """Return whether these pages come more often than was promised, and of which variants they do.

        An incident counts on its first day only. That it comes back is likelier once it is there, so the days
        of its returns are no further evidence: with them a promise that is kept would not last its patience.
        """
        latest_first = sorted(pages, key=lambda page: -page.at)
        pages = [*{page.incident: page for page in latest_first}.values()]
        kinds = sorted({page.kind for page in pages})
        if not kinds:
            return False, ()
        rows = {day: row for row, day in enumerate(sorted(self._runs_by_day))}
        units = {(*self._unit(page), stream) for page in pages for stream in (0, kinds.index(page.kind) + 1)}
        counts = np.zeros((len(rows), len(kinds) + 1))
        for day, _, stream in units:
            counts[rows[day], stream] += 1
        runs = np.array([self._runs_by_day[day] for day in rows], dtype=float)
        shares = np.array([self._promise.highest, *map(self._promise.highest_of, kinds)])
        # One decision with one patience: half of its errors are the whole's, and half are all variants'.
        error_shares = np.array([0.5, *[0.5 / variants()] * len(kinds)])
        broken, *beyond = is_beyond(log_evidence(counts, runs, shares)[-1], error_shares)
        return bool(broken), [
            kind for kind, is_kind_beyond in zip(kinds, beyond, strict=True) if is_kind_beyond
        ]

    def _unit(self, page: PageSent) -> tuple[int, str]:
        """Return the day that a page counts on, and its run. It may be sent after the day of the points."""
        return last_before(self._days[page.run], page.day), page.run
