"""The rows of a series, however they arrive, against arrays that hold all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.frames.coarse import Coarse
from sentinel.frames.history import SeriesHistory
from sentinel.frames.rows import SPARE, Rows, Tape

SIZES = st.lists(st.sampled_from([1, 1, 1, 2, SPARE - 1, SPARE, SPARE + 1, 200]), min_size=1, max_size=60)


def rows_of(begin, end):
    number = np.arange(begin, end)
    return Rows(
        np.column_stack([number, 10 * number]), np.column_stack([number / 2, np.sin(number), -number])
    )


def parts(sizes):
    ends = np.cumsum(sizes)
    return [rows_of(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def same(rows, begin, end):
    wanted = rows_of(begin, end)
    return np.array_equal(rows.places, wanted.places) and np.array_equal(rows.numbers, wanted.numbers)


def assert_equal(found, wanted):
    for one, other in zip(found.dump(), wanted.dump(), strict=True):
        np.testing.assert_array_equal(one, other)


@given(sizes=SIZES, keep=st.sampled_from([SPARE, 50, 300]))
def test_a_tape_shows_new_rows_behind_the_last_ones_and_never_changes_what_it_showed(sizes, keep):
    tape, shown, count = Tape(Rows.none(2, 0), keep), [], 0
    for rows in parts(sizes):
        shown.append((tape.append(rows), max(0, count - keep), count := count + len(rows)))
        assert same(tape.rows.last(keep), max(0, count - keep), count)
    assert all(same(*one) for one in shown)


@pytest.mark.slow
@given(sizes=SIZES)
def test_a_tape_does_not_hold_what_a_long_log_brought_at_once(sizes):
    tape = Tape(Rows.none(2, 0), SPARE)
    for rows in parts([*sizes, 100_000]):
        tape.append(rows)
    base = tape.rows.numbers.base
    assert len(tape.rows.numbers if base is None else base) <= 2 * SPARE


@pytest.mark.slow
@given(sizes=SIZES, looks=st.sets(st.integers(0, 59)))
def test_the_coarse_whole_is_the_same_whenever_somebody_looks(sizes, looks):
    series, whole = SeriesHistory(10, 20, Rows.none(2, 0), sliced=True), Coarse(2)
    for number, rows in enumerate(parts(sizes)):
        windows = [*series.extend(rows)]
        assert same(windows[-1].rows, windows[-1].first, windows[-1].end)
        whole.push(rows.columns, rows.step)
        if number in looks:
            series = SeriesHistory.load(series.dump())
            assert_equal(series.coarse, whole)
    assert_equal(series.coarse, whole)
    assert same(series.head, 0, min(10, sum(sizes)))
