"""Tells the sinks of a trouble of the watch itself, such as a full disk, without the state directory.

What cannot be recorded cannot wait in the outbox. So a notice is kept in memory alone: each sink hears of the
trouble once, and of its end if it heard of the trouble. A notice that cannot be sent is tried again until the
trouble is over.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from queue import SimpleQueue
from socket import gethostname
from uuid import uuid4

from sentinel.common.clock import Clock
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.incident import Event, Incident, State
from sentinel.sinks.base import Notification, Sink, Transient
from sentinel.sinks.retry import attempt, pause_seconds
from sentinel.sources.identity import RunIdentity

_NAME = "sentinel"
"""Stands for the run and for the detector: it is the watch itself that has the trouble."""


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

    def announce(self, trouble: str | None) -> None:
        """Tell every sink of a trouble, or with None that it is over. Nobody hears the same twice."""
        with self._lock:
            if (trouble is None) == (self._present is None):
                return
            notice = self._begun(trouble) if trouble is not None else _over(self._present)
            self._present = notice if trouble is not None else None
            self._start()
            for queue in self._queues:
                queue.put(notice)

    def announce_events(self, news: Iterable[str]) -> None:
        """Tell every sink, once, of what happened to the watch itself."""
        for sentence in news:
            names = {"run": _NAME, "detector": _NAME, "id_": uuid4().hex}
            notice = of_no_run(Event.FIRING, Severity.WARNING, sentence, self._clock.now(), **names)
            with self._lock:
                self._start()
                for queue in self._queues:
                    queue.put(notice)

    def _begun(self, trouble: str) -> Notification:
        summary = f"sentinel reads nothing and judges no run: {trouble}"
        names = {"run": _NAME, "detector": _NAME, "id_": uuid4().hex}
        return of_no_run(Event.FIRING, Severity.CRITICAL, summary, self._clock.now(), **names)

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
            threading.Thread(target=self._serve, args=(sink, queue), daemon=True).start()

    def _serve(self, sink: Sink, queue: "SimpleQueue[Notification | None]") -> None:
        told = False
        while (notice := queue.get()) is not None:
            if told or notice.event is Event.FIRING:
                told = self._send(sink, notice, queue) and notice.event is Event.FIRING

    def _send(self, sink: Sink, notice: Notification, queue: "SimpleQueue[Notification | None]") -> bool:
        """Return whether the sink took it, before there was something newer to say."""
        failures = 0
        while not self._stopping.is_set() and (not failures or queue.empty()):
            now = self._clock.now()
            _, error = attempt(lambda: sink.send(notice, now))  # noqa: B023 - called at once
            if not isinstance(error, Transient):
                return error is None
            self._stopping.wait(pause_seconds(notice.key, failures))
            failures += 1
        return False


def _over(begun: Notification | None) -> Notification | None:
    if begun is None:
        return None
    incident = begun.incident.replace(
        state=State.RESOLVED, summary="sentinel reads and judges again; it has missed nothing"
    )
    return replace(begun, key=uuid4().hex, event=Event.RESOLVED, incident=incident)
