"""The fleet over time: incidents of all runs, how many runs were alive, and what trouble cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

import msgspec

from sentinel.common.text import seconds_in
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.report.status import KnownRun
from sentinel.web.fleet import key_of
from sentinel.web.views import StateView, WebPage

PERIODS = {"1d": "the last day", "7d": "the last week", "30d": "the last month"}

_MAX_TIMELINE_DAYS = 3650  # of a period
_MAX_TIMELINE_INCIDENTS = 200  # in the list
_TIMELINE_COLUMNS = 120  # of the curve of how many runs were alive
_MIN_WIDTH_PERCENT = 0.4  # of the period, so that a bar can be seen


class Bar(msgspec.Struct, frozen=True):
    """An incident on the timeline, in percent of the period."""

    incident: Incident
    start: float
    width: float


class _TimelinePeriod(msgspec.Struct, frozen=True):
    begin: float
    end: float

    def part(self, begin: float, end: float) -> tuple[float, float]:
        """Return where a stretch of time lies within the period."""
        return max(begin, self.begin), min(end, self.end)

    def percent(self, time: float) -> float:
        return 100.0 * (time - self.begin) / (self.end - self.begin)


class FleetTime(msgspec.Struct, frozen=True):
    """What happened in a period. ``alive`` counts runs in equal parts of it, the oldest first."""

    bars: Mapping[str, Sequence[Bar]]  # by detector, the most first
    newest: Sequence[Incident]  # the newest first, not all
    alive: Sequence[int]
    hours: float  # of runs in trouble
    gpu_hours: float  # the same of the runs that tell how many GPUs they have
    ill: int  # runs in trouble
    telling: int  # those of them that tell how many GPUs they have
    timeless: int  # runs that are left out, because their logs have no times

    @property
    def curve(self) -> str:
        """The outline of ``alive`` as SVG has it, 100 wide and 24 high."""
        most_alive = max(self.alive, default=0) or 1
        steps = (
            f"{100 * i / _TIMELINE_COLUMNS:.4g},{24 - 22 * count / most_alive:.3g} "
            f"{100 * (i + 1) / _TIMELINE_COLUMNS:.4g},{24 - 22 * count / most_alive:.3g}"
            for i, count in enumerate(self.alive)
        )
        return f"0,24 {' '.join(steps)} 100,24"


def fleet_time(
    runs: Iterable[KnownRun], incidents: Iterable[Incident], now: float, seconds: float
) -> FleetTime:
    """Return what happened to these runs in the last ``seconds``, by the clocks of their logs."""
    period = _TimelinePeriod(now - seconds, now)
    by_id = {run.row.id: run for run in runs}
    bars: dict[str, list[Bar]] = {}
    stretches: dict[str, list[tuple[float, float]]] = {}
    for incident, begin, end in _within(incidents, by_id, period):
        start = period.percent(begin)
        bar = Bar(incident, start, max(period.percent(end) - start, _MIN_WIDTH_PERCENT))
        bars.setdefault(incident.detector, []).append(bar)
        if incident.severity > Severity.INFO:
            stretches.setdefault(incident.run, []).append((begin, end))
    newest = sorted(
        (bar.incident for detector_bars in bars.values() for bar in detector_bars),
        key=lambda incident: -(incident.fired_time or 0.0),
    )
    hours = {run: _together(detector_bars) / 3600 for run, detector_bars in stretches.items()}
    gpus = {}
    for run in hours:
        stored = by_id[run].stored
        count = stored.metadata.plan.get("world_size") if stored else None
        if count is not None:  # many logs do not tell it
            gpus[run] = count
    return FleetTime(
        bars=dict(sorted(bars.items(), key=lambda item: (-len(item[1]), item[0]))),
        newest=newest[:_MAX_TIMELINE_INCIDENTS],
        alive=[*_alive(by_id.values(), period)],
        hours=sum(hours.values()),
        gpu_hours=sum(hours[run] * count for run, count in gpus.items()),
        ill=len(hours),
        telling=len(gpus),
        timeless=sum(first is None or last is None for first, last in _training_times(by_id.values())),
    )


def fitting_period(runs: Iterable[KnownRun], now: float) -> str:
    """Return the shortest of the usual periods in which all runs lie. Where none is long enough it is the
    longest, unless the newest run is older than that: then all of the time since the first one.
    """
    times = [(first, last) for first, last in _training_times(runs) if first is not None and last is not None]
    periods = {period: seconds_in(period) for period in PERIODS}
    longest = max(periods, key=lambda period: periods[period])
    if not times:
        return longest
    age = now - min(first for first, _ in times)
    if now - max(last for _, last in times) > periods[longest]:
        return f"{min(ceil(age / seconds_in('1d')), _MAX_TIMELINE_DAYS)}d"
    return next((period for period, seconds in periods.items() if age <= seconds), longest)


def _within(
    incidents: Iterable[Incident], runs: Mapping[str, KnownRun], period: _TimelinePeriod
) -> Iterator[tuple[Incident, float, float]]:
    """Yield the incidents of the period that no other one explains, with their begin and end within it."""
    for incident in incidents:
        onset = incident.onset_time if incident.onset_time is not None else incident.fired_time
        if incident.inhibited_by is not None or onset is None or incident.run not in runs:
            continue
        goes_on = incident.open and runs[incident.run].goes_on
        last_time = (
            period.end if goes_on else max(onset, incident.last_time or onset, incident.fired_time or onset)
        )
        begin, end = period.part(onset, last_time)
        if begin <= end:
            yield incident, begin, end


def _together(stretches: Iterable[tuple[float, float]]) -> float:
    """Return how many seconds some stretches cover; what several cover counts once."""
    covered = 0.0
    reached = float("-inf")
    for begin, end in sorted(stretches):
        covered += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return covered


def _alive(runs: Iterable[KnownRun], period: _TimelinePeriod) -> Iterator[int]:
    """Yield how many runs logged in each part of the period, or between two points of theirs around it."""
    times = [*_training_times(runs)]
    column_seconds = (period.end - period.begin) / _TIMELINE_COLUMNS
    for column in range(_TIMELINE_COLUMNS):
        begin = period.begin + column * column_seconds
        yield sum(
            first < begin + column_seconds and last >= begin
            for first, last in times
            if first is not None and last is not None
        )


def _training_times(runs: Iterable[KnownRun]) -> Iterator[tuple[float | None, float | None]]:
    """Yield the times of the first and the last point of each training that was read."""
    for run in runs:
        if run.stands_for_its_training and run.stored:
            yield run.stored.metadata.first_time, run.stored.metadata.last_time


def timeline_page(views: StateView, now: float, since: str) -> WebPage:
    """Return the page of a period; of one that fits where none is named. Only the thread of the views may
    call it. Raises ValueError for what is no period.
    """
    fleet = views.fleet
    since = since or fitting_period(fleet.runs.values(), now)
    seconds = seconds_in(since)
    table = views.fleet.table
    content = fleet_time(fleet.runs.values(), views.incidents(), now, seconds)
    return WebPage.from_template(
        table.version,
        "timeline.html",
        verdict=table.verdict,
        trouble=table.trouble,
        live=f"/events?since={table.version}",
        period=content,
        names=fleet.names,
        keys={run: key_of(run) for run in fleet.names},
        begin=now - seconds,
        now=now,
        since=since,
        periods=PERIODS,
    )
