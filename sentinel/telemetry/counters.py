"""What a watch counts of itself. The counters belong to the process, and any thread may raise them."""

from collections.abc import Iterable

import prometheus_client as prometheus

from sentinel.incidents.incident import Change, Event
from sentinel.runs.log import RunLog

prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # Prometheus knows when a series begins
REGISTRY = prometheus.CollectorRegistry()
POINTS = prometheus.Counter(
    "sentinel_points_read", "Points read, by format of the log.", ["format"], registry=REGISTRY
)
ROUND_SECONDS = prometheus.Histogram(
    "sentinel_round_seconds",
    "How long a round of reading and judging took.",
    buckets=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    registry=REGISTRY,
)
LAG_SECONDS = prometheus.Histogram(
    "sentinel_read_lag_seconds",
    "Age of the newest point of a growing log when it was read, on the clock of the log.",
    buckets=(1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
    registry=REGISTRY,
)
INCIDENTS = prometheus.Counter(
    "sentinel_incidents", "Incidents that began to fire.", ["detector", "severity"], registry=REGISTRY
)
DELIVERIES = prometheus.Counter(
    "sentinel_deliveries",
    "Tries to deliver a notification, by result: sent, postponed or given-up.",
    ["sink", "result"],
    registry=REGISTRY,
)
prometheus.ProcessCollector(registry=REGISTRY)


def count_points(log: RunLog, points: int, now: float) -> None:
    """Count what one poll of a run read. ``now`` is the time of day."""
    POINTS.labels(log.run.format).inc(points)
    if log.live and log.metadata.last_time is not None:
        LAG_SECONDS.observe(max(0.0, now - log.metadata.last_time))


def count_incidents(changes: Iterable[Change]) -> None:
    """Count the incidents that began to fire."""
    for change in changes:
        if change.event is Event.FIRING:
            INCIDENTS.labels(change.incident.detector, change.incident.severity.label).inc()
