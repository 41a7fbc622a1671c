"""How long the points of a stream wait for their names."""

import numpy as np
import pytest

from sentinel.series.first_points import prologue_end
from sentinel.sources.base import Chunk


def chunk(*steps):
    """A chunk of these steps, each the letters of its tags."""
    points = [(step, tag) for step, tags in enumerate(steps) for tag in tags]
    tags = sorted({tag for _, tag in points})
    codes = np.array([tags.index(tag) for _, tag in points], dtype=np.uint32)
    numbers = np.array([float(step) for step, _ in points])
    return Chunk("", tags, codes, numbers, numbers, numbers)


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        (["a"] * 3, None),
        (["a"] * 4, 3),  # the fourth step begins, and the last two brought nothing new
        (["ab"] * 4, 6),
        (["a", "b", "a", "b"], None),
        (["a", "b", "a", "b", "a"], 4),
        ([*"abcdefgh"], None),  # each step brings another tag ...
        ([*"abcdefghijklmnopqr"], 16),  # ... and from so many points on that is how it is
    ],
)
def test_it_ends_once_the_same_tags_come_again(steps, end):
    assert prologue_end(chunk(*steps)) == end
