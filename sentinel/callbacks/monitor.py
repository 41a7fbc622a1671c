"""Judges a training while it runs, in a thread of its own, and never stops the training by an error."""

import logging
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sentinel.callbacks.memory import LoggedRow, Memory
from sentinel.common.clock import Clock, SystemClock
from sentinel.common.text import clean_text
from sentinel.config.file import Config, load
from sentinel.incidents.incident import Change, Event, Incident
from sentinel.pipeline import Pipeline
from sentinel.report.incident_model import IncidentReport, incident_report
from sentinel.run_pipeline import RunPipeline
from sentinel.sinks.delivery import Delivery
from sentinel.sources.base import Run
from sentinel.sources.location import Url
from sentinel.storage.store import Store
from sentinel.watch.recorder import Recorder

_NEWS_EVENTS = (Event.FIRING, Event.ESCALATED)  # an incident began or got worse
_DELIVER_SECONDS = 5.0  # how long the end waits for receivers
_MAX_ERROR_CHARACTERS = 500  # of a failure
_MAX_SHARE = 0.2  # of the time that judging may take where many rows come

_log = logging.getLogger("sentinel")


class Monitor:
    """Judges the metrics of one training.

        with Monitor({"lr": 3e-4, "max_steps": 1000}) as monitor:
            for step, batch in enumerate(batches):
                monitor.log(step, {"loss": train(batch)})
                if any(incident.severity is Severity.CRITICAL for incident in monitor.news()):
                    break

    ``settings`` are those of the run; see `configure`. ``config`` is a `sentinel.toml`, for
    thresholds, names of metrics, rules and sinks; without it every incident is logged and nothing is sent.
    The metrics are judged every ``every_seconds``, and after ``every_rows`` calls of `log`, unless these come
    so fast that judging would take a fifth of the time. Raises ConfigError for a configuration that cannot be
    used; after that nothing raises. ``failure`` says why judging stopped, and is None while all is well.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        name: str = "training",
        config: Path | None = None,
        every_seconds: float = 5.0,
        every_rows: int = 20,
        clock: Clock | None = None,
    ) -> None:
        self.failure: str | None = None
        self._config = load(config) if config else Config(sinks=[])
        configs = [sink for sink in self._config.sinks if not sink.digest]  # it may end within the day
        self._sinks = [sink.open() for sink in configs]
        self._policies = [sink.policy() for sink in configs]
        self._clock = clock or SystemClock()
        self._every_seconds = every_seconds
        self._every_rows = every_rows
        self._rows = 0  # since judging was last asked for
        self._rests_until = self._clock.monotonic()
        self._source = Memory()
        self.configure(settings or {})
        self._run = Run(Url("memory", (name,)), "memory", self._source)
        self._news: deque[IncidentReport] = deque()
        self._incidents: dict[str, Incident] = {}
        self._ends = threading.Event()
        self._wakes = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sentinel", daemon=True)
        self._thread.start()

    def configure(self, settings: Mapping[str, object]) -> None:
        """Add settings of the run, by any name that a framework uses."""
        self._source.configure(dict(settings))

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Add the metrics of a step, without what is no number. A tensor is copied to the host."""
        if self.failure is None:
            pairs = ((name, _logged_number(value)) for name, value in metrics.items())
            numbers = {name: number for name, number in pairs if number is not None}
            self._source.add(LoggedRow(int(step), self._clock.now(), numbers))
            self._rows += 1
            if self._rows >= self._every_rows and self._clock.monotonic() >= self._rests_until:
                self._rows = 0
                self._wakes.set()

    def news(self) -> list[IncidentReport]:
        """Return the incidents that began or got worse since the last call, for the loop to act on."""
        return [self._news.popleft() for _ in range(len(self._news))]

    @property
    def incidents(self) -> list[IncidentReport]:
        """All incidents so far."""
        now = dict(self._incidents)
        return [incident_report(incident, now) for incident in now.values()]

    def close(self) -> list[IncidentReport]:
        """Judge the last metrics and end. Return all incidents."""
        self._ends.set()
        self._wakes.set()
        self._thread.join()
        return self.incidents

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        try:
            with ExitStack() as stack:
                self._judge_until_the_end(stack)
        except Exception as error:  # noqa: BLE001  a defect here must not end the training
            self._fail(f"{type(error).__name__}: {error}")

    def _judge_until_the_end(self, stack: ExitStack) -> None:
        config = self._config
        pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
        run_pipeline = pipeline.track(self._run, self._run.path.name)
        recorder, delivery = self._receivers(stack)
        ending = False
        while not ending and self.failure is None:
            self._wakes.wait(self._every_seconds)
            self._wakes.clear()
            ending = self._ends.is_set()
            began_at = self._clock.monotonic()
            is_unread = True
            while is_unread and self.failure is None:
                (advance,) = pipeline.advance([run_pipeline])
                if advance.failure:
                    self._fail(advance.failure)
                self._notify(run_pipeline, advance.changes, recorder, delivery)
                is_unread = advance.more
            took_seconds = self._clock.monotonic() - began_at
            self._rests_until = began_at + took_seconds / _MAX_SHARE
        if self.failure is None:
            (advance,) = pipeline.finalize([run_pipeline])
            self._notify(run_pipeline, advance.changes, recorder, delivery)
        if delivery is not None:
            delivery.drain(_DELIVER_SECONDS)

    def _receivers(self, stack: ExitStack) -> tuple[Recorder | None, Delivery | None]:
        """Return what records incidents for the sinks and sends them, if there are sinks."""
        if not self._sinks:
            return None, None
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sentinel-")))
        store = stack.enter_context(Store(state))
        delivery = Delivery(state, self._sinks, self._clock, self._config.link, self._config.budget)
        return Recorder(store, self._policies), stack.enter_context(delivery)

    def _notify(
        self,
        run_pipeline: RunPipeline,
        changes: Iterable[Change],
        recorder: Recorder | None,
        delivery: Delivery | None,
    ) -> None:
        changes = list(changes)
        for change in changes:
            self._incidents[change.incident.id] = change.incident
            if change.event in _NEWS_EVENTS and change.incident.inhibited_by is None:
                report = incident_report(change.incident, self._incidents)
                self._news.append(report)
                _log.warning("%s: %s", report.severity.label, report.headline)
        if recorder and delivery:
            news = {run_pipeline.id: changes} if changes else {}
            recorder.record([run_pipeline], news, self._clock.now(), reminders=True)
            delivery.wake()

    def _fail(self, reason: str) -> None:
        self.failure = clean_text(reason, _MAX_ERROR_CHARACTERS)
        _log.error("the training is not judged any more: %s", self.failure)


def _logged_number(value: Any) -> float | None:
    if type(value) is float:
        return value
    try:
        return None if isinstance(value, str) else float(value)
    except (TypeError, ValueError, RuntimeError):  # a tensor of many elements raises RuntimeError
        return None
