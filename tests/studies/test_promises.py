"""The tool that measures what calibrations promise."""

import pytest

from sentinel.calibration.page_statistics import ArchivedRun, Kind, Pages, Stratum
from sentinel.common.days import DAY_SECONDS
from studies.promises.fleets import Fleet
from studies.promises.splits import SPLITS, drawn, kept, left_out, row
from tests.sinks.samples import INCIDENT

SPIKE = Kind("loss-spike", "single")


def archive(paging, runs):
    return Pages(
        {
            str(number): ArchivedRun(
                dict.fromkeys(kinds := [SPIKE] * (number < paging), INCIDENT),
                Stratum("", 100),
                number * DAY_SECONDS / 4,
                [number // 4],
                days={number // 4: frozenset(kinds)} if kinds else {},
            )
            for number in range(runs)
        }
    )


def test_halves_hold_each_group_once():
    pages = archive(0, 40)
    splits = left_out(pages, {name: str(int(name) // 4) for name in pages.healthy}, 0.01)
    assert [(one.promise.runs, one.realised.units) for one in splits] == [(20, 20)] * SPLITS


def test_archives_that_are_drawn_share_no_run():
    splits = drawn(archive(0, 400), 0.01)
    assert [(one.promise.runs, one.realised.units) for one in splits] == [(20, 380)] * SPLITS


def test_a_promise_that_is_not_kept_is_noticed():
    good = archive(0, 100)
    bad = archive(20, 100)
    assert kept(0.01, good, archive(1, 100)).inside
    broken = kept(0.01, good, bad)
    assert (broken.inside, broken.noticed) == (False, 8)
    assert row("an archive", 0.01, [broken])[-2:] == ["0 of 1", "1"]


@pytest.mark.long
def test_what_is_scaled_later_is_the_same_but_for_its_scale():
    plain = Fleet("a fleet", lambda *_: 0.01)
    scaled = Fleet("a fleet", lambda *_: 0.01, ("loss",), 10.0)
    first = 0
    last = 396
    assert [*plain.rows(first)] == [*scaled.rows(first)]
    for one, other in zip(plain.rows(last), scaled.rows(last), strict=True):
        assert other == {**one, "loss": 10 * one["loss"]} if "loss" in one else one
