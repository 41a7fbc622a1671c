import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.report.sparkline import marks, sparkline


def test_a_line_rises_with_its_values():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"


def test_what_spans_decades_is_drawn_by_its_logarithm():
    assert sparkline([1.0, 10.0, 100.0, 1000.0, 10_000_000.0])[1] != "▁"


def test_a_constant_is_flat_and_a_gap_is_a_gap():
    assert sparkline([2.0, math.nan, 2.0]) == "▁ ▁"
    assert sparkline([math.nan]) == ""


@pytest.mark.slow
@example([7.4e297, -1.7976931348623157e308])
@example([5e-324, 0.0])
@given(st.lists(st.floats(allow_infinity=False), max_size=64))
def test_any_values_give_one_character_each(values):
    drawn = sparkline(values)
    assert len(drawn) in (0, len(values))


def test_marks_stand_below_the_bucket_of_their_step():
    assert marks(range(0, 100, 10), [(0, "o"), (35, "!"), (95, "x")]) == "o  !     x"
