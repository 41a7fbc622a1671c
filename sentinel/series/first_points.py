"""The first points of a stream, from which its tags get their meanings."""

from dataclasses import replace

import numpy as np

from sentinel.series.naming import is_of_histogram
from sentinel.sources.base import Chunk

_BLOCKS = 3  # a framework is recognised by the tags of this many steps,
_POINTS = 16  # of at least this many points, unless the last steps bring no other tags
_REPEATED = 2
_MOST = 500  # and at most this many; histograms, which do not help, may bring thousands
_LONGEST = 20_000  # points, including those of histograms

POINT_FIELDS = ("tag", "step", "time", "value")
"""The columns of a chunk that have an entry for each point."""


def joined(earlier: Chunk | None, later: Chunk) -> Chunk:
    """Return the points of both, which begin a stream."""
    if earlier is None or later.restarted:
        return replace(later, restarted=False)
    tags = list(dict.fromkeys([*earlier.tags, *later.tags]))
    code = {t: i for i, t in enumerate(tags)}
    codes = np.array([code[t] for t in later.tags], dtype=np.uint32)
    tag = np.concatenate([earlier.tag, codes[later.tag]])
    step, time, value = (np.concatenate([getattr(earlier, n), getattr(later, n)]) for n in POINT_FIELDS[1:])
    return Chunk(earlier.stream, tags, tag, step, time, value)


def prologue_end(chunk: Chunk) -> int | None:
    """Return how many points the framework is recognised from; None while there are too few."""
    telling = [not is_of_histogram(tag) for tag in chunk.tags]
    points = blocks = new_in = 0  # the last is the number of the step that brought the newest tag
    last = None
    known = set[int]()
    steps, tags = (column[:_LONGEST].tolist() for column in (chunk.step, chunk.tag))
    for place, (step, tag) in enumerate(zip(steps, tags, strict=True)):
        if telling[tag]:
            blocks += last not in (None, step)
            enough = points >= _POINTS or blocks - new_in > _REPEATED
            if points >= _MOST or (blocks >= _BLOCKS and enough):
                return place
            points += 1
            last = step
            if tag not in known:
                known.add(tag)
                new_in = blocks
    return _LONGEST if len(chunk.step) > _LONGEST else None


def counts(chunk: Chunk, end: int | None = None) -> dict[str, int]:
    """Return how many of the first points each tag has that is among them."""
    codes, counts = np.unique(chunk.tag[:end], return_counts=True)
    return {chunk.tags[code]: count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
