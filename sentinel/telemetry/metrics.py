"""All metrics of a watch, in Prometheus' terms.

Runs, open incidents and waiting notifications are not counted but looked up at each scrape.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from sentinel.runs.state import RunState, standing
from sentinel.sources.base import EndKind
from sentinel.sources.readers.growing import BYTES_READ
from sentinel.storage.store import Store
from sentinel.telemetry.counters import COUNTED
from sentinel.telemetry.health import Health

UNTAKEN_SECONDS = 3600.0
"""If no sink takes anything for so long though something waits, nobody hears what the watch finds."""
_MAX_LAGS = 100  # series, of which Prometheus keeps each


class Metrics(Collector):
    """All metrics. ``logs`` gives the logs under watch, and ``lags`` how far runs are behind, by run id.

    ``promise`` is that of a calibration, None without one.
    """

    def __init__(self, state_dir: Path, health: Health, clock: Clock) -> None:
        self._state_dir = state_dir
        self._health = health
        self._clock = clock
        self.logs: Callable[[], Iterable[RunLog]] = tuple
        self.lags: Callable[[], Mapping[str, float]] = dict
        self.promise: Calibration | None = None

    def problems(self) -> list[str]:
        """Return what is wrong with the watch; empty if all is well."""
        return [*self._health.problems(self._clock.monotonic()), *self._untaken()]

    def _untaken(self) -> Iterator[str]:
        """Yield a sentence if nobody hears what the watch finds."""
        try:
            with Store(self._state_dir, create=False) as store:
                seconds = store.outbox.untaken_seconds(self._clock.now())
        except StateError as error:
            yield str(error)
        else:
            if seconds > UNTAKEN_SECONDS:
                yield f"no sink has taken anything for {duration_text(seconds)}, and notifications wait"

    def collect(self) -> Iterator[Metric]:
        """Yield the counters, and what is looked up now. Raises StateError if the state cannot be read."""
        yield from COUNTED.collect()
        healthy = not self.problems()
        yield GaugeMetricFamily(
            "sentinel_healthy", "1 if every part of the watch reads and records.", healthy
        )
        yield CounterMetricFamily("sentinel_bytes_read", "Bytes read from log files.", BYTES_READ.value)
        yield from self._runs()
        with Store(self._state_dir, create=False) as store:
            incidents = store.open_counts()
            waiting = store.outbox.waiting_counts()
            verdicts = store.feedback.counts()
            realised = self._realised(self.promise, store) if self.promise else None
        yield _gauge(
            "sentinel_open_incidents", "Open incidents.", ("detector", "severity"), incidents.items()
        )
        yield _gauge("sentinel_waiting_notifications", "Notifications that wait.", ("sink",), waiting.items())
        said = "Incidents that a person called useful or a false alarm."
        yield _gauge("sentinel_feedback", said, ("detector", "verdict"), verdicts.items())
        if realised:
            yield from _promised(realised)

    def _realised(self, promise: Calibration, store: Store) -> CalibrationCheck:
        logs = {log.run.id: log for log in self.logs()}
        extents = {run: log.metadata.extent for run, log in logs.items()}
        crashed = {run for run, log in logs.items() if log.ending and log.ending.outcome is EndKind.CRASHED}
        said = store.feedback
        return CalibrationCheck.of(promise, extents, crashed, said.pages(promise.since), said.useful_runs())

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
        said = "Seconds since runs that are behind were read to their ends, the longest of them."
        yield _gauge("sentinel_run_lag_seconds", said, ("run",), lags)


def _promised(realised: CalibrationCheck) -> Iterator[Metric]:
    for name, meaning, value in (
        (
            f"promised_{'pages_per_run_day' if realised.promise.daily else 'share'}",
            "Healthy runs, or days of them, that may page, as a share of all, by the calibration.",
            realised.promise.highest,
        ),
        ("calibrated_runs", "Runs that count as healthy since the calibration.", realised.runs),
        ("calibrated_runs_paged", "Those of them that paged.", realised.paged),
        ("calibrated_runs_paged_falsely", "Those of them whose page was called false.", realised.false),
        ("calibrated_pages", "Pages since the calibration.", realised.pages),
        ("calibrated_run_days", "Days of runs since the calibration.", realised.run_days),
        ("promise_broken", "1 if false pages came more often than was promised.", realised.broken),
        ("variants_beyond_promise", "Variants whose false pages did.", len(realised.beyond)),
    ):
        yield GaugeMetricFamily(f"sentinel_{name}", meaning, value)


def _state(log: RunLog, now: float) -> RunState | None:
    try:
        silent = silence_of(log.run.path, log.metadata, now)
        return standing(
            log.ending, silent, log.metadata.lost_after_seconds, goes_on=log.metadata.goes_on
        ).state
    except Exception:  # noqa: BLE001  one run must not keep a scrape from the others
        return None


def _gauge(
    name: str, meaning: str, labels: Sequence[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for of, value in values:
        family.add_metric(of, value)
    return family
