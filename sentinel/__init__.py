"""Watches machine-learning training runs through their metric logs and reports what goes wrong.

    report = sentinel.replay("runs/today")
    report.verdict, report.incidents, report.points()

    with sentinel.probe(model, optimizer, to=writer) as probe:
        probe.step(batch=batch, loss=loss)

Nothing is imported before it is used, so `import sentinel` takes next to no time.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest
if TYPE_CHECKING:
    from sentinel.api import IncidentReport, Report, SentinelError, replay
    from sentinel.probes.probe import probe

_HOMES = {
    "IncidentReport": "sentinel.api",
    "Report": "sentinel.api",
    "SentinelError": "sentinel.api",
    "probe": "sentinel.probes.probe",
    "replay": "sentinel.api",
}

__all__ = ["IncidentReport", "Report", "SentinelError", "probe", "replay"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sentinel' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    return value
