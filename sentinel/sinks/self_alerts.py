"""Sends a problem of the watch itself, such as a full disk, to the sinks without the state directory.

What cannot be recorded cannot wait in the outbox. So a self-alert is in memory alone: each sink gets the
problem once, and its end if it got the problem. What cannot be sent is tried again until the problem is over.
"""

import threading
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from socket import gethostname
from uuid import uuid4

from msgspec.structs import replace

from sentinel.common.clock import Clock
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.incident import Event, Incident, State
from sentinel.sinks.base import Notification, Sink, Transient
from sentinel.sinks.retry import attempt, pause_seconds
from sentinel.sources.identity import RunIdentity

_SELF = "sentinel"
"""Stands for the run and for the detector: it is the watch itself that has the problem."""


def of_no_run(
    event: Event, severity: Severity, summary: str, now: float, *, run: str, detector: str, id_: str
) -> Notification:
    """Return a notification about no run. ``run`` and ``detector`` are what a person reads in their place."""
    incident = Incident(
        id=id_,
        run=run,
        stream="",
        attempt=1,
        detector=detector,
        severity=severity,
        maturity=Maturity.STABLE,
        signal="",
        tag="",
        onset_step=0,
        onset_time=now,
        fired_step=0,
        fired_time=now,
        summary=summary,
    )
    about = RunIdentity(run, host=gethostname())
    return Notification(uuid4().hex, event, about, incident, catalogue=())


class SelfAlerts:
    """Sends in threads of its own between the first call of `announce` and `stop`."""

    def __init__(self, sinks: Sequence[Sink], clock: Clock) -> None:
        self._sinks = sinks
        self._clock = clock
        self._lock = threading.Lock()
        self._present: Notification | None = None
        self._stopping = threading.Event()
        self._queues: list[SimpleQueue[Notification | None]] = []

    def announce(self, problem: str | None) -> None:
        """Send a problem to every sink, or with None that it is over. Nothing is sent twice."""
        with self._lock:
            if problem is not None and self._present is None:
                summary = f"sentinel reads nothing and judges no run: {problem}"
                self._present = self._alert(Severity.CRITICAL, summary)
                self._put(self._present)
            elif problem is None and self._present is not None:
                self._put(_resolved(self._present))
                self._present = None

    def announce_events(self, news: Iterable[str]) -> None:
        """Send what happened to the watch itself to every sink, once."""
        for summary in news:
            alert = self._alert(Severity.WARNING, summary)
            with self._lock:
                self._put(alert)

    def _alert(self, severity: Severity, summary: str) -> Notification:
        now = self._clock.now()
        return of_no_run(Event.FIRING, severity, summary, now, run=_SELF, detector=_SELF, id_=uuid4().hex)

    def _put(self, alert: Notification) -> None:
        self._start()
        for queue in self._queues:
            queue.put(alert)

    def stop(self) -> None:
        """Send nothing more."""
        self._stopping.set()
        for queue in self._queues:
            queue.put(None)

    def _start(self) -> None:
        if self._queues:
            return
        for sink in self._sinks:
            queue: SimpleQueue[Notification | None] = SimpleQueue()
            self._queues.append(queue)
            # Daemons: a sink that hangs must not keep the process from ending.
            threading.Thread(target=self._send_alerts, args=(sink, queue), daemon=True).start()

    def _send_alerts(self, sink: Sink, queue: "SimpleQueue[Notification | None]") -> None:
        is_firing = False  # at the receiver
        while (alert := queue.get()) is not None:
            if is_firing or alert.event is Event.FIRING:
                is_firing = self._send(sink, alert, queue) and alert.event is Event.FIRING

    def _send(self, sink: Sink, alert: Notification, queue: "SimpleQueue[Notification | None]") -> bool:
        """Send an alert until there is a newer one. Return whether it was delivered."""
        failures = 0
        while not self._stopping.is_set() and (not failures or queue.empty()):
            now = self._clock.now()
            _, error = attempt(lambda: sink.send(alert, now))  # noqa: B023 - called at once
            if not isinstance(error, Transient):
                return error is None
            self._stopping.wait(pause_seconds(alert.key, failures))
            failures += 1
        return False


def _resolved(alert: Notification) -> Notification:
    incident = alert.incident.replace(
        state=State.RESOLVED, summary="sentinel reads and judges again; it has missed nothing"
    )
    return replace(alert, key=uuid4().hex, event=Event.RESOLVED, incident=incident)
