"""What a log tells of how its run is named outside."""

from pathlib import Path
from socket import gethostname

from sentinel.detectors.settings import Setting
from sentinel.runs.log import RunLog
from sentinel.runs.understanding import framework
from sentinel.sources.identity import RunIdentity


def described(log: RunLog) -> RunIdentity:
    """The run as notifications name it."""
    path = log.run.path
    plans = [stream.plans.now for stream in log.streams.values()]
    sizes = {plan[Setting.WORLD_SIZE] for plan in plans if Setting.WORLD_SIZE in plan}
    return RunIdentity(
        run=log.name,
        path=str(path),
        framework=framework(log.streams.values()),
        place=str(path.absolute() if isinstance(path, Path) else path),
        host=gethostname() if isinstance(path, Path) else None,
        planned_steps=log.planned_steps,
        world_size=sizes.pop() if len(sizes) == 1 else None,
    )
