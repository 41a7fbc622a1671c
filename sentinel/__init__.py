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
    from sentinel.callbacks.monitor import Monitor
    from sentinel.detectors.severity import Severity
    from sentinel.probes.probe import probe

    __version__: str

_HOMES = {
    "IncidentReport": "sentinel.api",
    "Monitor": "sentinel.callbacks.monitor",
    "Report": "sentinel.api",
    "SentinelError": "sentinel.api",
    "Severity": "sentinel.detectors.severity",
    "probe": "sentinel.probes.probe",
    "replay": "sentinel.api",
}

__all__ = ["IncidentReport", "Monitor", "Report", "SentinelError", "Severity", "probe", "replay"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # slow to import

        return version("training-sentinel")
    if name not in _HOMES:
        raise AttributeError(f"module 'sentinel' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
