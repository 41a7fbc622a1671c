"""The first points of a stream, from which its tags get their meanings."""

import numpy as np
from msgspec.structs import replace

from sentinel.series.naming import is_of_histogram
from sentinel.sources.base import Chunk

_MIN_STEPS = 3  # a framework is recognised by the tags of at least this many steps,
_MIN_FIRST_POINTS = 16  # with at least this many points, unless the last steps bring no new tag
_MIN_STEPS_WITHOUT_NEW = 2  # this many last steps
_MAX_FIRST_POINTS = 500  # without histograms, which do not help and may bring thousands
_MAX_ALL_POINTS = 20_000  # including those of histograms

POINT_FIELDS = ("tag", "step", "time", "value")
"""The columns of a chunk that have an entry for each point."""


def joined(earlier: Chunk | None, later: Chunk) -> Chunk:
    """Return the points of both chunks, which begin a stream; a restart drops the earlier ones."""
    if earlier is None or later.restarted:
        return replace(later, restarted=False)
    tags = list(dict.fromkeys([*earlier.tags, *later.tags]))
    code = {tag: number for number, tag in enumerate(tags)}
    codes = np.array([code[tag] for tag in later.tags], dtype=np.uint32)
    tag = np.concatenate([earlier.tag, codes[later.tag]])
    step, time, value = (
        np.concatenate([getattr(earlier, name), getattr(later, name)]) for name in POINT_FIELDS[1:]
    )
    return Chunk(earlier.stream, tags, tag, step, time, value)


def prologue_end(chunk: Chunk) -> int | None:
    """Return how many points the framework is recognised from; None while there are too few."""
    is_counted = [not is_of_histogram(tag) for tag in chunk.tags]
    point_count = 0
    step_count = 0  # of changes of the step
    newest_tag_at = 0  # step count at the newest tag
    last_step = None
    tags = set[int]()
    columns = (column[:_MAX_ALL_POINTS].tolist() for column in (chunk.step, chunk.tag))
    for index, (step, tag) in enumerate(zip(*columns, strict=True)):
        if not is_counted[tag]:
            continue
        step_count += last_step not in (None, step)
        enough = point_count >= _MIN_FIRST_POINTS or step_count - newest_tag_at > _MIN_STEPS_WITHOUT_NEW
        if point_count >= _MAX_FIRST_POINTS or (step_count >= _MIN_STEPS and enough):
            return index
        point_count += 1
        last_step = step
        if tag not in tags:
            tags.add(tag)
            newest_tag_at = step_count
    return _MAX_ALL_POINTS if len(chunk.step) > _MAX_ALL_POINTS else None


def counts(chunk: Chunk, end: int | None = None) -> dict[str, int]:
    """Return how many of the points up to ``end`` each tag has, by tag."""
    codes, counts = np.unique(chunk.tag[:end], return_counts=True)
    return {chunk.tags[code]: count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
