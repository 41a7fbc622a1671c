"""Divides the runs below some places among several watches, such that all logs of a training are in one."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sentinel.common.paths import is_directory
from sentinel.common.shard import WHOLE, Shard
from sentinel.sources.base import Run
from sentinel.sources.location import Location, Url, fixed_part
from sentinel.sources.readers.files import real_path


def shard_of(runs: Sequence[Run], shard: Shard, locations: Iterable[Location]) -> Sequence[Run]:
    """Return those of the runs that were found below the places which are of this share.

    The directory right below the place decides, or the file there without its suffix: a training's logs often
    lie apart below its own directory. A glob counts as the part before its first wildcard. Names alone count,
    so machines that mount a tree at different paths share it alike.
    """
    if shard == WHOLE:
        return runs
    roots = [
        location if isinstance(location, Url) else Path(real_path(fixed_part(location)))
        for location in locations
    ]
    return [run for run in runs if shard.holds(_first_name(run.path, roots))]


def _first_name(path: Location, roots: Iterable[Location]) -> str:
    for root in roots:
        below = path.parts[len(root.parts) :]
        if below and type(root) is type(path) and path.parts[: len(root.parts)] == root.parts:
            is_file = isinstance(path, Path) and len(below) == 1 and not is_directory(path)
            return Path(below[0]).stem if is_file else below[0]
    return path.name
