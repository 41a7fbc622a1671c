"""Looks: the rows at which cards are read of a run that goes on."""

import pytest

from sentinel.detectors.blocks import ROWS
from sentinel.detectors.reading.looks import looks
from sentinel.series.buckets import next_checkpoint


def test_there_are_four_looks_for_each_doubling():
    counts = (looks(1)[looks(1) <= ROWS] + 1).tolist()
    assert counts == [8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224]


def test_a_look_at_coarse_history_is_the_first_row_that_sees_it():
    checkpoint = next_checkpoint(0)
    for index in looks(1)[looks(1) > ROWS][:20].tolist():
        assert index == checkpoint
        checkpoint = next_checkpoint(checkpoint)


@pytest.mark.parametrize("every", [2, 5, 7])
def test_a_detector_that_judges_fewer_rows_has_its_looks_among_them(every):
    rows = looks(every) + 1
    assert (rows[rows > 50] % every == 0).all()
    assert (rows >= looks(1) + 1).all()
    assert (rows - looks(1) - 1 < every).all()
    assert len({*rows.tolist()}) == len(rows)
