"""Numbers without a meaning that stop being numbers, however the log was cut into polls."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detectors.schema import Standing
from sentinel.detectors.signals import Signal
from sentinel.series.naming import Naming
from sentinel.series.unmapped_nonfinite import UnmappedNonFinite
from sentinel.sources.base import Chunk
from tests.series.stored import again
from tests.series.test_stream import DETECTORS, Stream, series_specs

NAN = math.nan


def rows(**columns: list[float]) -> Chunk:
    values = np.array([*columns.values()]).T
    steps = np.arange(len(values))
    return Chunk.of_rows("s", [*columns], steps, np.full(len(steps), NAN), values, False).flat


def told(chunk: Chunk, *ends: int, losses: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    """The name and the steps of what is told of tags that mean nothing, if the chunk comes in pieces."""
    unnamed = UnmappedNonFinite()
    reports = []
    for begin, end in pairwise([0, *ends, len(chunk.step)]):
        means = [tag in losses for tag in chunk.tags]
        reports += unnamed.extend(chunk, slice(begin, end), 0, [not one for one in means], means)
        unnamed = again(unnamed)
    assert all(points.signal is Signal.OTHER_METRIC for points in reports)
    return [(points.tag, step) for points in reports for step in points.step.tolist()]


def test_losses_that_are_never_finite_are_named_together():
    assert told(rows(d_loss=[NAN] * 9, g_loss=[NAN] * 9, lr=[1.0] * 9)) == [
        ("d_loss, g_loss", step) for step in (0, *range(2, 9))
    ]


def test_a_correlation_that_is_never_finite_is_that_of_equal_answers():
    assert told(rows(eval_spearman=[NAN] * 3, lr=[1.0] * 3)) == [("eval_spearman", 0), ("eval_spearman", 2)]
    assert not told(rows(spearman_a=[NAN] * 9, spearman_b=[0.5] * 9))  # all labels of one part are equal


def test_another_number_was_one_before_and_stays_none():
    """It is told from its first point on, and followed from then on."""
    for odd in (NAN, math.inf):
        assert told(rows(spread=[1.0] * 3 + [odd] * 12)) == [("spread", step) for step in (3, 12, 13, 14)]


@pytest.mark.parametrize(
    "values",
    [
        [NAN] * 50,  # a class that does not occur
        [1.0, 1.0, *[NAN] * 50],  # a variance of one sample
        [*[1.0] * 9, *[NAN] * 9] * 3,  # a mean over episodes of which some intervals have none
        [NAN, *[1.0] * 9, *[NAN] * 30],  # what a judge that is asked from time to time says
        [1.0, *[NAN] * 19] * 9,  # an evaluation at each twentieth step
    ],
)
def test_what_may_be_undefined_is_healthy(values):
    assert not told(rows(spread=values))


def test_a_class_without_samples_has_no_score_while_the_others_have_one():
    absent = [1.0] * 3 + [NAN] * 30
    assert not told(rows(**{"dice 1": [0.5] * 33, "dice 2": absent}))
    assert told(rows(**{"dice 1": absent, "dice 2": absent}))
    assert told(rows(**{"loss 1": [0.5] * 33, "loss 2": absent}))


def test_a_loss_with_a_meaning_speaks_for_all():
    assert not told(rows(loss=[1.0, NAN, NAN, NAN], d_loss=[1.0, NAN, NAN, NAN]), losses=("loss",))


@pytest.mark.long
@given(
    st.lists(st.sampled_from([1.0, NAN]), min_size=1, max_size=40),
    st.lists(st.sampled_from([1.0, NAN]), min_size=40, max_size=40),
    st.sets(st.integers(1, 79)),
)
def test_pieces_change_nothing(first, second, ends):
    chunk = rows(a_loss=first, b=second[: len(first)])
    assert told(chunk, *sorted(end for end in ends if end < len(chunk.step))) == told(chunk)


def test_what_a_person_ignores_is_left_alone():
    chunk = rows(d_loss=[NAN] * 30, x=[1.0] * 30)
    for ignored, expected in (({}, True), ({"d_loss": "ignore"}, False)):
        asking = [replace(DETECTORS[0], judges=(Signal.OTHER_METRIC,), non_finite=True)]
        stream = Stream("run", "s", "csv", "", Naming(ignored), series_specs(asking))
        assert bool([*stream.extend(chunk).rows, *stream.end()]) == expected


def test_a_number_that_a_rule_knows_is_judged_as_well():
    chunk = rows(reward=[*[1.0] * 9, *[NAN] * 30], grad_norm=[*[1.0] * 9, *[NAN] * 30], x=[1.0] * 39)
    asking = [replace(DETECTORS[0], judges=(Signal.OTHER_METRIC,), non_finite=True)]
    stream = Stream("run", "s", "csv", "", Naming({}), series_specs(asking))
    assert [one.tag for one in [*stream.extend(chunk).rows, *stream.end()]] == ["reward"]


def test_a_number_that_a_rule_knows_goes_on_being_judged():
    """What is told of it bears its tag, and is no point of its own."""
    chunk = rows(reward=[*[1.0] * 9, *[NAN] * 12, *[1.0] * 9])
    by_rule = replace(DETECTORS[0], judges=(Signal.REWARD,), uses=(Standing(Signal.REWARD),))
    asking = [by_rule, replace(by_rule, name="odd", judges=(Signal.OTHER_METRIC,), uses=(), non_finite=True)]
    stream = Stream("run", "s", "csv", "", Naming({}), series_specs(asking))
    judged = [*stream.extend(chunk).rows, *stream.end()]
    assert sum(len(one.window.position) for one in judged if one.spec.judged is Signal.REWARD) == 18


def test_an_explained_variance_is_none_where_the_returns_never_vary():
    """SB3 divides by their variance. That the returns rest is judged itself."""
    chunk = rows(explained=[*[0.1] * 9, *[NAN] * 30], reward=[1.0] * 39)
    asking = [replace(DETECTORS[0], judges=(Signal.OTHER_METRIC,), non_finite=True)]
    naming = Naming({"explained": "explained_variance"})
    stream = Stream("run", "s", "csv", "", naming, series_specs(asking))
    assert not [*stream.extend(chunk).rows, *stream.end()]
