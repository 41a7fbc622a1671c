"""Numbers without a meaning that freeze or leap, however the log was cut into polls."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.detectors.signals import Signal
from sentinel.series.unmapped_shape import LEAP, STILL, UnmappedShape
from sentinel.sources.base import Chunk
from tests.series.stored import again
from tests.series.test_unmapped_nonfinite import rows


def noise(count: int, level: float = 1.0) -> list[float]:
    drawn = random.Random(4)
    return [level * drawn.uniform(0.9, 1.1) for _ in range(count)]


def told(chunk: Chunk, *ends: int) -> list[tuple[str, str, int]]:
    """What is told, of which tags and at which step, if the chunk comes in pieces."""
    numbers = UnmappedShape()
    reports = []
    for begin, end in pairwise([0, *ends, len(chunk.step)]):
        reports += numbers.extend(chunk, slice(begin, end), 0, [True] * len(chunk.tags))
        numbers = again(numbers)
    return [(points.signal.value, points.tag, int(points.step[0])) for points in reports]


def test_what_freezes_together_is_named_together():
    frozen = {name: [*noise(100), *[1.0] * 150] for name in ("queue", "lag")}
    chunk = rows(**frozen, busy=noise(250))
    assert told(chunk) == [(Signal.FROZEN_METRIC, "queue, lag", 100 + STILL + 1)]


def test_what_leaps_for_good_is_told_once():
    chunk = rows(lag=[*noise(100), *noise(50, 2 * LEAP), *noise(50, 100 * LEAP)])
    assert told(chunk) == [(Signal.LEAPT_METRIC, "lag", 103)]


@pytest.mark.parametrize(
    "values",
    [
        [1.0] * 400,  # a constant
        [float(i) for i in range(200)] + [199.0] * 200,  # a counter that ends
        [i / 50 for i in range(50)] + [1 - i / 200 for i in range(150)] + [0.25] * 200,  # a schedule
        [float(i % 2) for i in range(400)],  # a flag
        [min(one, 1.0) for one in noise(100)] + [1.0] * 200,  # saturated
        [*noise(100), 1e6, *noise(100)],  # a pause
        [0.0] * 100 + [5.0] * 100,  # the first event
        [*noise(100), *[math.nan] * 200],  # judged elsewhere
        [one for one in noise(40) for _ in range(50)],  # logged more often than measured
    ],
)
def test_what_any_log_holds_is_healthy(values):
    assert not told(rows(x=values))


@pytest.mark.long
@given(st.sets(st.integers(1, 899)), st.integers(60, 120))
def test_pieces_change_nothing(ends, begins):
    odd = [*noise(begins), *[1.0] * (300 - begins)]
    leapt = [*noise(begins + 5), *noise(295 - begins, 50.0)]
    chunk = rows(a=odd, b=leapt, c=noise(300))
    assert told(chunk, *sorted(ends)) == told(chunk) != []


@pytest.mark.slow
def test_of_very_many_numbers_the_first_are_followed():
    chunk = rows(**{f"n{i}": [float(i), 1.0] for i in range(600)})
    numbers = UnmappedShape()
    numbers.extend(chunk, slice(0, len(chunk.step)), 0, [True] * 600)
    assert len(numbers.lives) == 512
