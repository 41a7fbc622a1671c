"""Every entry has its place, can be found, and says how it shows."""

import re

import pytest

from sentinel import catalogue
from sentinel.catalogue.index import families, search, unwritten
from sentinel.common.errors import UnknownName
from sentinel.detectors.discovery import all_detectors
from sentinel.report.pages import index, matches, page, titles
from tests.each import each
from tests.tools.coverage import COVERAGE, written

CITED = {entry for detector in all_detectors().values() for entry in detector.catalogue}


def test_each_entry_is_in_one_family():
    placed = [entry.id for entries in families().values() for entry in entries]
    assert sorted(placed) == sorted(catalogue.load())
    assert all(families().values())


@each(catalogue.load().values(), lambda e: e.id)
def test_what_nothing_points_to_says_why(entry):
    shown = entry.id in CITED or entry.signatures or entry.checks or entry.probes
    assert shown or entry.visibility
    assert not (entry.visibility and entry.id in CITED), (
        "a detector cites it now: remove `seen` from its page"
    )
    assert not entry.visibility or re.fullmatch(r"[A-Z`].*[^.]\.", entry.visibility)


def test_the_coverage_table_is_up_to_date():
    assert COVERAGE.read_text() == written(), "run `make docs`"


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["softmax", "cross"], "O12"),
        (["SHARED", "memory"], "DP15"),
        (["bus error"], "DP15"),
        (["dp9"], "DP9"),
        (["None is not a callable"], "A-err-strategy"),
    ],
)
def test_words_find_entries(words, first):
    assert search(words)[0].id == first


def test_what_no_page_holds_finds_nothing():
    assert search(["softmax", "giraffe"]) == []
    assert matches(["giraffe"]) == "No page of the catalogue holds giraffe."


@each(unwritten())
def test_an_id_without_a_page_leads_to_its_neighbours(id_):
    assert id_ not in catalogue.load()
    assert set(unwritten()[id_]) <= catalogue.load().keys()
    shown = page(id_)
    assert "has no page" in shown
    assert all(near in shown for near in unwritten()[id_])


def test_an_id_that_nobody_knows_is_refused():
    with pytest.raises(UnknownName, match="O99"):
        page("O99")


@pytest.mark.slow
@each([*catalogue.load(), *all_detectors(), *unwritten()])
def test_a_page_fits_eighty_columns(name):
    for line in page(name).splitlines():
        assert len(line) <= 80 or len(line.split()) <= 2 or line.startswith("#"), line


@pytest.mark.slow
def test_the_lists_name_everything():
    shown = index()
    assert all(f"**{name}**: " in shown for name in all_detectors())
    assert all(re.search(rf"(?<![\w-]){i}(?![\w-])", shown) for i in catalogue.load())
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"- **{e.id}**: {e.title}" in titles() for e in catalogue.load().values())
