"""Finished logs as typed data, for programs and notebooks: what `import sentinel` offers."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from sentinel.api.result import Report
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError, UnknownName
from sentinel.config.file import Config, load
from sentinel.detectors.discovery import all_detectors
from sentinel.replays.replaying import replay as replay_whole
from sentinel.report.incident_model import IncidentReport
from sentinel.report.selection import ORDERS, Order, Selection, ordered
from sentinel.sources.discovery import locations_of

__all__ = ["IncidentReport", "Report", "SentinelError", "replay"]


def replay(
    *paths: str | PathLike[str],
    config: str | PathLike[str] | None = None,
    run: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    since: str = "",
    sort: Order = "worst",
    compare: bool = False,
    baseline: Sequence[str | PathLike[str]] = (),
) -> Report:
    """Judge the finished logs below some paths: the same as `sentinel replay`, with the same options.

    A path is a log file, a run directory, a directory of runs or an address. Without ``config``, the name of
    a configuration file, no such file is read. ``run`` holds globs for runs, ``only`` names of detectors
    and severities, and one of either may be a string. ``since`` is a step or an ISO 8601 time. ``compare``
    also compares runs that differ in one setting, and ``baseline`` holds paths of good runs with which each
    run is compared. Raises SentinelError if nothing can be read or an argument cannot be used.
    """
    if not paths:
        raise SentinelError("name a log, a run directory, a directory of runs or an address")
    if sort not in ORDERS:
        raise UnknownName("order", sort, ORDERS)
    settings = load(Path(config)) if config is not None else Config.model_construct()  # nothing to validate
    detectors = {*all_detectors(), *(detector.name for detector in settings.enabled_detectors)}
    selection = Selection.parse(_each(only), since, detectors)
    whole_replay = replay_whole(
        locations_of([fspath(path) for path in paths]),
        settings,
        lambda *_: None,
        curves=True,
        compare=compare,
        baseline=locations_of([fspath(path) for path in baseline]),
        names=_each(run),
    )
    return Report(ordered(selection.apply(whole_replay), sort), sort, SystemClock().now())


def _each(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts
