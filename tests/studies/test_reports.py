"""The logs of public bug reports can be judged, and the page fits what was found."""

import numpy as np
import pytest

from sentinel import catalogue
from sentinel.detectors.discovery import all_detectors
from studies.reports.__main__ import PAGE, read
from studies.reports.page import rendered
from studies.reports.report import REPORTS


@pytest.mark.parametrize("one", REPORTS, ids=lambda one: one.name)
def test_a_report_expects_what_there_is(one):
    assert {*one.expect} <= all_detectors().keys()
    assert {*one.first} <= catalogue.load().keys()
    assert one.says.endswith(".")


def test_reports_are_of_one_place_each():
    assert len({one.name for one in REPORTS}) == len(REPORTS)


def test_the_page_shows_the_results():
    results = read()
    assert {one.name for one in REPORTS} == results["first"].keys() == results["now"].keys()
    assert PAGE.read_text("utf-8") == rendered(REPORTS, results["first"], results["now"])


@pytest.mark.parametrize("one", REPORTS, ids=lambda one: one.name)
def test_a_report_leaves_the_same_log_each_time(one, tmp_path):
    texts = []
    for name in ("first", "again"):
        place = tmp_path / name
        place.mkdir()
        one.write(place, np.random.default_rng(3))
        texts.append({file.name: file.read_text("utf-8") for file in place.iterdir()})
    assert texts[0] == texts[1]
    assert all(texts[0].values())
