"""The rows of a series, however they arrive, against arrays that hold all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from sentinel.series.buckets import Buckets
from sentinel.series.history import SeriesHistory
from sentinel.series.rows import SPARE, RowBuffer, Rows
from tests.series.stored import stored

pytestmark = pytest.mark.slow

SIZES = st.lists(st.sampled_from([1, 1, 1, 2, SPARE - 1, SPARE, SPARE + 1, 200]), min_size=1, max_size=60)


def rows_of(begin, end):
    """From row 70 on the steps need 64 bits, and so do the values of some rows."""
    number = np.arange(begin, end)
    numbers = [number / 2, np.where(number % 50 < 40, number / 4, np.sin(number)), -number]
    return Rows(number + 2**40 * (number >= 70), np.column_stack(numbers), columns=(3,))


def parts(sizes):
    ends = np.cumsum(sizes)
    return [rows_of(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def same(rows, begin, end):
    expected = rows_of(begin, end)
    return np.array_equal(rows.step, expected.step) and np.array_equal(rows.numbers, expected.numbers)


def assert_equal(actual, expected):
    for one, other in zip(astuple(actual), astuple(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@given(sizes=SIZES, keep=st.sampled_from([SPARE, 50, 300]))
def test_a_tape_shows_new_rows_behind_the_last_ones_and_never_changes_what_it_showed(sizes, keep):
    tape = RowBuffer(Rows.none(0), keep)
    windows = []
    count = 0
    for rows in parts(sizes):
        windows.append((tape.append(rows), max(0, count - keep), count := count + len(rows)))
        assert same(tape[-keep:], max(0, count - keep), count)
    assert all(same(*one) for one in windows)


@pytest.mark.long  # many examples
@given(
    sizes=SIZES,
    first_known=st.lists(st.sets(st.integers(0, 4)), min_size=60, max_size=60),
    lengths=st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
def test_columns_and_lists_that_become_known_late_were_not_known_before(sizes, first_known, lengths):
    tape = RowBuffer(Rows.none(1), SPARE)
    whole = []
    for rows, places, length in zip(parts(sizes), first_known, lengths, strict=False):
        step = rows.step.astype(float)
        beside = {place: step + place for place in sorted(places)}
        numbers = np.column_stack([rows.time, rows.value, *beside.values()])
        recent = tape.append(Rows(rows.step, numbers, (*beside,), (np.tile(step, (length, 1)).T,)))
        nothing = np.full(len(step), np.nan)
        whole += np.column_stack([beside.get(place, nothing) for place in range(5)]).tolist()
        np.testing.assert_array_equal(
            recent.with_columns((0, 1, 2, 3, 4)).numbers[:, 2:], whole[-len(recent) :]
        )
        (values,) = recent.lists
        np.testing.assert_array_equal(values[-len(rows) :, :length], np.tile(step, (length, 1)).T)
        assert np.isnan(values[-len(rows) :, length:]).all()


@pytest.mark.long
@given(sizes=SIZES)
def test_a_tape_does_not_hold_what_a_long_log_brought_at_once(sizes):
    tape = RowBuffer(Rows.none(0), SPARE)
    for rows in parts([*sizes, 100_000]):
        tape.append(rows)
    arrays = [column if column.base is None else column.base for column in tape._arrays]
    assert max(map(len, arrays)) <= 2 * SPARE


@pytest.mark.long
@given(sizes=SIZES, looks=st.sets(st.integers(0, 59)))
def test_the_coarse_whole_is_the_same_whenever_somebody_looks(sizes, looks):
    series = SeriesHistory(10, 20, Rows.none(0), sliced=True, plotted=[3])
    whole = Buckets()
    for number, rows in enumerate(parts(sizes)):
        windows = [*series.extend(rows, 10 * rows.step)]
        assert same(windows[-1].rows, windows[-1].first, windows[-1].end)
        np.testing.assert_array_equal(windows[-1].position, 10 * windows[-1].rows.step)
        whole.push(rows.value, rows.step, {3: rows.column(3)})
        if number in looks:
            series = SeriesHistory.load(stored(series))
            assert_equal(series.coarse, whole)
    assert_equal(series.coarse, whole)
    assert same(series.head, 0, min(10, sum(sizes)))
