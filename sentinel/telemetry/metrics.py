"""All metrics of a watch, in Prometheus' terms.

Runs, open incidents and waiting notifications are not counted but looked up at each scrape.
"""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sentinel.calibration.calibration import Calibration
from sentinel.calibration.check import CalibrationCheck
from sentinel.common.clock import Clock
from sentinel.common.errors import StateError
from sentinel.common.text import clean_text, duration_text
from sentinel.runs.copied_logs import silence_of
from sentinel.runs.log import RunLog
from sentinel.runs.state import RunState, run_status
from sentinel.sources.base import EndKind
from sentinel.sources.readers.growing import BYTES_READ
from sentinel.storage.store import Store
from sentinel.telemetry.counters import REGISTRY
from sentinel.telemetry.health import Health

_MAX_UNTAKEN_SECONDS = 3600.0  # for which no sink takes anything though something waits; then it is a problem
_MAX_LAGS = 100  # series, of which Prometheus keeps each


class Metrics(Collector):
    """All metrics. ``logs`` returns the logs under watch, and ``lags`` how far runs lag, by run id.

    ``calibration`` is None without one. ``daily`` are sinks whose notifications wait for a time of day.
    """

    def __init__(self, state_dir: Path, health: Health, clock: Clock) -> None:
        self._state_dir = state_dir
        self._health = health
        self._clock = clock
        self.logs: Callable[[], Iterable[RunLog]] = tuple
        self.lags: Callable[[], Mapping[str, float]] = dict
        self.calibration: Calibration | None = None
        self.daily: Collection[str] = ()

    def problems(self) -> list[str]:
        """Return what is wrong with the watch; empty if all is well."""
        return [*self._health.problems(self._clock.monotonic()), *self._delivery_problems()]

    def _delivery_problems(self) -> Iterator[str]:
        """Yield a sentence if nobody is notified of what the watch finds."""
        try:
            with Store(self._state_dir, create=False) as store:
                seconds = store.outbox.untaken_seconds(self._clock.now())
        except StateError as error:
            yield str(error)
        else:
            if seconds > _MAX_UNTAKEN_SECONDS:
                yield f"no sink has taken anything for {duration_text(seconds)}, and notifications wait"

    def collect(self) -> Iterator[Metric]:
        """Yield the counters, and what is looked up now. Raises StateError if the state cannot be read."""
        yield from REGISTRY.collect()
        healthy = not self.problems()
        yield GaugeMetricFamily(
            "sentinel_healthy", "1 if every part of the watch reads and records.", healthy
        )
        yield CounterMetricFamily("sentinel_bytes_read", "Bytes read from log files.", BYTES_READ.value)
        yield from self._runs()
        with Store(self._state_dir, create=False) as store:
            incidents = store.open_counts()
            counts = store.outbox.waiting_counts()
            waiting = {sink: count for sink, count in counts.items() if sink[0] not in self.daily}
            ratings = store.feedback.counts()
            check = self._check(self.calibration, store) if self.calibration else None
        yield _gauge(
            "sentinel_open_incidents", "Open incidents.", ("detector", "severity"), incidents.items()
        )
        yield _gauge("sentinel_waiting_notifications", "Notifications that wait.", ("sink",), waiting.items())
        meaning = "Incidents that a person called useful or a false alarm."
        yield _gauge("sentinel_feedback", meaning, ("detector", "verdict"), ratings.items())
        if check:
            yield from _calibration_metrics(check)

    def _check(self, calibration: Calibration, store: Store) -> CalibrationCheck:
        logs = {log.run.id: log for log in self.logs()}
        extents = {run: log.metadata.extent for run, log in logs.items()}
        crashed = {run for run, log in logs.items() if log.ending and log.ending.outcome is EndKind.CRASHED}
        pages = store.feedback.pages(calibration.since)
        return CalibrationCheck.of(calibration, extents, crashed, pages, store.feedback.useful_runs())

    def _runs(self) -> Iterator[Metric]:
        now = self._clock.now()
        states = Tally(dict.fromkeys(RunState, 0))
        stopped = 0
        for log in self.logs():
            state = _state(log, now)
            states.update([] if state is None else [state])
            stopped += state is None or log.stopped is not None
        by_state = (((state.value,), count) for state, count in states.items())
        yield _gauge("sentinel_runs", "Runs under watch.", ("state",), by_state)
        yield GaugeMetricFamily("sentinel_runs_not_judged", "Runs that are no longer judged.", stopped)
        lags = [((clean_text(run),), lag) for run, lag in islice(self.lags().items(), _MAX_LAGS)]
        meaning = "Seconds since runs that are behind were read to their ends, the longest of them."
        yield _gauge("sentinel_run_lag_seconds", meaning, ("run",), lags)


def _calibration_metrics(check: CalibrationCheck) -> Iterator[Metric]:
    for name, meaning, value in (
        (
            f"promised_{'pages_per_run_day' if check.promise.daily else 'share'}",
            "Healthy runs, or days of them, that may page, as a share of all, by the calibration.",
            check.promise.highest,
        ),
        ("calibrated_runs", "Runs that count as healthy since the calibration.", check.runs),
        ("calibrated_runs_paged", "Those of them that paged.", check.paged),
        ("calibrated_runs_paged_falsely", "Those of them whose page was called false.", check.false),
        ("calibrated_pages", "Pages since the calibration.", check.pages),
        ("calibrated_run_days", "Days of runs since the calibration.", check.run_days),
        ("promise_broken", "1 if false pages came more often than was promised.", check.broken),
        ("variants_beyond_promise", "Variants whose false pages did.", len(check.beyond)),
    ):
        yield GaugeMetricFamily(f"sentinel_{name}", meaning, value)


def _state(log: RunLog, now: float) -> RunState | None:
    try:
        seconds = silence_of(log.run.path, log.metadata, now)
        return run_status(
            log.ending, seconds, log.metadata.lost_after_seconds, goes_on=log.metadata.goes_on
        ).state
    except Exception:  # noqa: BLE001  one run must not keep a scrape from the others
        return None


def _gauge(
    name: str, meaning: str, labels: Sequence[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family
