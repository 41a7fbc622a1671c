"""A run as notifications name it: what it is called, where it lies, and what a person on call asks next."""

from pathlib import Path
from socket import gethostname
from typing import Any

from sentinel.detectors.settings import Setting
from sentinel.runs.log import RunLog
from sentinel.runs.understanding import framework


def described(log: RunLog) -> dict[str, Any]:
    """The run in built-in types.

    ``path`` is as it was given; ``place`` is the absolute path or the address. ``host`` is this machine, if
    the log lies on it. ``planned_steps`` and ``world_size`` (processes that train together) are None if the
    settings do not say.
    """
    path = log.run.path
    plans = [stream.plans.now for stream in log.streams.values()]
    sizes = {plan[Setting.WORLD_SIZE] for plan in plans if Setting.WORLD_SIZE in plan}
    return {
        "run": log.name,
        "path": str(path),
        "framework": framework(log.streams.values()),
        "place": str(path.absolute() if isinstance(path, Path) else path),
        "host": gethostname() if isinstance(path, Path) else None,
        "planned_steps": log.planned_steps,
        "world_size": sizes.pop() if len(sizes) == 1 else None,
    }
