"""Divides the runs below some places among several watches, such that all logs of a training are in one."""

from collections.abc import Iterable
from pathlib import Path

from sentinel.ground.shard import Shard
from sentinel.sources.base import Run
from sentinel.sources.places import Place, Url, fixed_part
from sentinel.sources.reading.files import real_path


def is_in_share(run: Run, shard: Shard, places: Iterable[Place]) -> bool:
    """Whether a run that was found below the places is of this share.

    The directory right below the place decides, or the file there without its suffix: a training's logs often
    lie apart below its own directory. A glob counts as the part before its first wildcard. Names alone count,
    so machines that mount a tree at different paths share it alike.
    """
    return shard.holds(_first_name(run, places))


def _first_name(run: Run, places: Iterable[Place]) -> str:
    if isinstance(run.path, Url):
        roots = (
            place.parts for place in places if isinstance(place, Url) and place.scheme == run.path.scheme
        )
        below = (run.path.parts[len(root) :] for root in roots if run.path.parts[: len(root)] == root)
        return next((parts[0] for parts in below if parts), run.path.name)
    roots_here = (Path(real_path(fixed_part(place))) for place in places if isinstance(place, Path))
    root = next((root for root in roots_here if run.path != root and run.path.is_relative_to(root)), None)
    if root is None:
        return run.path.name
    first = root / run.path.relative_to(root).parts[0]
    return first.name if first.is_dir() else first.stem
