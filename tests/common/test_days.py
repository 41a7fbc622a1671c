"""The days of a log are those on which it has points, whatever its clock says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.common.days import DAY_SECONDS, Extent, day_of, last_before, spans_with

times = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
days = st.lists(st.integers(0, 60), min_size=1, max_size=20)


def spans_of(polls, begin=()):
    spans = begin
    for poll in polls:
        spans = spans_with(spans, np.array(poll) * DAY_SECONDS)
    return spans


@pytest.mark.slow
@given(st.lists(days, min_size=1, max_size=5))
def test_each_day_that_has_points_counts_once_however_the_log_was_read(polls):
    days = {day for poll in polls for day in poll}
    spans = spans_of(polls)
    assert Extent(0.0, 0.0, spans).days() == sorted(days)
    assert spans == spans_of([sorted(days)])


@pytest.mark.slow
@given(st.lists(times, max_size=5))
def test_no_clock_is_so_odd_that_it_takes_more_than_its_share(polls):
    spans = []
    for poll in polls:
        spans = spans_with(spans, np.array(poll))
    assert len(spans) <= 100
    assert all(0 <= first <= last <= 100_000 for first, last in spans)


def test_of_many_pauses_the_first_ones_count_as_days():
    spans = spans_of([[day] for day in range(0, 400, 2)])
    assert len(spans) == 100
    assert (spans[0], spans[-1]) == ((0, 200), (398, 398))


def test_what_an_earlier_version_kept_has_no_pauses():
    assert Extent(0.0, 3 * DAY_SECONDS).days() == [0, 1, 2, 3]
    assert Extent(0.0, 3 * DAY_SECONDS).days(since=2.5 * DAY_SECONDS) == [2, 3]
    assert Extent().days() == []
    assert Extent(0.0, 9 * DAY_SECONDS, [(0, 0), (8, 9)]).days(since=DAY_SECONDS) == [8, 9]


def test_what_comes_on_a_day_without_points_belongs_to_the_last_day_before_it():
    assert [last_before([3, 5], day) for day in (1, 3, 4, 9)] == [3, 3, 3, 5]
    assert (day_of(-1e300), day_of(1e300)) == (0, 100_000)
