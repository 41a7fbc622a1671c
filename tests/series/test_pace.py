"""Seconds per step by the clocks of a log, however it was cut into polls."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.detectors.signals import Signal
from sentinel.series.pace import MIN_WHOLE_SECONDS, Pace, elapsed_seconds
from sentinel.sources.base import Chunk
from tests.series.stored import again

NAN = float("nan")


def log(values, times=None, tag="loss", steps=None):
    steps = np.arange(len(values)) if steps is None else np.array(steps)
    times = np.full(len(values), NAN) if times is None else np.array(times, dtype=float)
    return Chunk.of_rows("s", [tag], steps, times, np.array([values], dtype=float).T, False).flat


def paces(chunk, *ends, attempts=None):
    """The steps, the seconds per step and the names, if the chunk comes in pieces."""
    pace = Pace()
    told = []
    for number, (begin, end) in enumerate(pairwise([0, *ends, len(chunk.step)])):
        attempt = attempts[number] if attempts else 1
        is_loss = [tag == "loss" for tag in chunk.tags]
        told += pace.extend(chunk, slice(begin, end), 0, attempt, is_loss)
        pace = again(pace)
    assert all(points.signal is Signal.PACE for points in told)
    steps = [step for points in told for step in points.step.tolist()]
    seconds = [round(value, 6) for points in told for value in points.value.tolist()]
    return steps, seconds, {points.tag for points in told}


def test_the_times_of_the_loss_are_a_clock():
    assert paces(log([1.0] * 4, [0.5, 2.5, 4.5, 12.5])) == (
        [1, 2, 3],
        [2.0, 2.0, 8.0],
        {"pace by the times of loss"},
    )


def test_only_the_steps_between_two_points_count():
    assert paces(log([1.0] * 3, [0.5, 20.5, 40.5], steps=[0, 10, 20]))[1] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("elapsed_time", lambda at, _: at),
        ("time/elapsed_ms", lambda at, _: 1000 * at),
        ("train_speed(iter/s)", lambda at, step: step / at),
        ("train_speed(s/it)", lambda at, step: at / step),
        ("avg_samples/s", lambda at, step: step / at),
    ],
)
def test_what_counts_since_the_start_is_a_clock(tag, value):
    seconds = 2.5 * np.arange(1, 9)
    values = [value(at, step) for step, at in enumerate(seconds.tolist(), 1)]
    _, told, names = paces(log(values, tag=tag, steps=range(1, 9)))
    assert told == [2.5] * 7
    assert names == {f"pace by {tag}"}


@pytest.mark.parametrize(
    "tag", ["loss", "step_time", "tokens_per_second", "time", "runtime_error", "eval_runtime"]
)
def test_other_numbers_are_no_clock(tag):
    assert elapsed_seconds(tag) is None


def test_whole_seconds_are_compared_over_some_of_them():
    steps, told, _ = paces(log(np.floor(0.4 * np.arange(100)), tag="elapsed"))
    assert len(steps) > 80
    assert min(told) > 0.4 * MIN_WHOLE_SECONDS / (MIN_WHOLE_SECONDS + 1)
    assert max(told) < 0.4 * (MIN_WHOLE_SECONDS + 1) / MIN_WHOLE_SECONDS


def test_a_clock_that_begins_anew_is_followed_from_there():
    assert paces(log([1.5, 3.5, 0.5, 2.5], tag="elapsed"))[0:2] == ([1, 3], [2.0, 2.0])


def test_the_next_attempt_begins_anew():
    chunk = log([1.0] * 4, [0.5, 2.5, 90.5, 92.5], steps=[10, 11, 12, 13])
    assert paces(chunk, 2, attempts=[1, 2])[0:2] == ([11, 13], [2.0, 2.0])


@given(
    st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.5, 7.0, -3.0, NAN]), min_size=2, max_size=40),
    st.lists(st.sampled_from([0, 1, 1, 1, 10, -2]), min_size=40, max_size=40),
    st.sets(st.integers(1, 39)),
)
def test_the_cut_into_polls_does_not_matter(passed, strides, ends):
    seconds = np.nancumsum(passed) + np.where(np.isnan(passed), NAN, 0.0)
    chunk = log(seconds.tolist(), tag="elapsed", steps=np.cumsum(strides[: len(passed)]))
    assert paces(chunk, *sorted(end for end in ends if end < len(passed))) == paces(chunk)
