import re
from datetime import date

import msgspec
import pytest
from msgspec.structs import replace

from sentinel import catalogue
from sentinel.catalogue.rules import needs
from sentinel.report import pages
from sentinel.series.naming import profiles
from tests.each import each

ID = re.compile(r"[A-Z]{1,2}\d*(-[a-z0-9]+)*")

each_entry = each(catalogue.load().values(), lambda e: e.id)


def test_ids_are_well_formed():
    assert catalogue.load()
    assert [i for i in catalogue.load() if not ID.fullmatch(i)] == []


@pytest.mark.parametrize(
    ("family", "last"), [("O", 26), ("DP", 15), ("L", 10), ("V", 7), ("DF", 7), ("R", 6), ("X", 5), ("G", 10)]
)
def test_numbered_families_have_no_gap(family, last):
    numbers = [int(found[1]) for i in catalogue.load() if (found := re.fullmatch(rf"{family}(\d+)", i))]
    assert sorted(numbers) == [*range(1, last + 1)]


def test_no_two_entries_have_one_title():
    titles = [entry.title.casefold() for entry in catalogue.load().values()]
    assert len({*titles}) == len(titles)


@each_entry
def test_page_has_its_headings_in_order_with_text_below(entry):
    first, *parts = re.split(r"^(?=## )", entry.body, flags=re.MULTILINE)
    assert first == ""
    assert tuple(p.splitlines()[0] for p in parts) == catalogue.HEADINGS
    assert all(len(p.splitlines()) > 1 for p in parts)


@each_entry
def test_page_can_be_read_at_night(entry):
    assert 60 <= len(entry.body.split()) <= 300
    assert all(len(line) <= 80 for line in entry.body.splitlines())


@each_entry
def test_fix_and_check_are_one_short_sentence(entry):
    for sentence in (entry.fix, entry.check):
        assert len(sentence) < 200
        assert re.fullmatch(r"[A-Z](?:(?![.!?] ).)*[^.!? ]\.", sentence)


@each_entry
def test_title_is_a_phrase(entry):
    assert 0 < len(entry.title) < 80
    assert not entry.title.endswith(".")


@each_entry
def test_siblings_are_other_entries(entry):
    assert entry.siblings
    assert all(ID.fullmatch(s) for s in entry.siblings)
    assert entry.id not in entry.siblings
    assert len(set(entry.siblings)) == len(entry.siblings)


@each_entry
def test_needs_are_known_words(entry):
    assert {*entry.needs} <= {*needs()}
    assert len({*entry.needs}) == len(entry.needs)


def test_profiles_show_known_words():
    assert {word for profile in profiles().values() for word in profile.shows} <= {*needs()}


def test_what_follows_from_words_are_known_words():
    assert {word for need in needs().values() for word in need.follows} <= {*needs()}


def test_each_word_of_needs_is_that_of_a_page():
    assert {*needs()} == {word for entry in catalogue.load().values() for word in entry.needs}


@each_entry
def test_sources_are_links(entry):
    assert entry.source
    assert all(re.fullmatch(r"https://[\w.-]+\.\w+/\S+", link) for link in entry.source)


@each_entry
def test_a_page_says_what_it_was_checked_against(entry):
    assert entry.checked.source
    assert entry.checked.version
    assert entry.checked.date >= date(2026, 11, 1)


@pytest.mark.parametrize("broken", [{}, {"source": "torch", "date": "2026-11-23"}, {"source": "torch"}])
def test_a_page_that_does_not_say_so_is_refused(broken):
    with pytest.raises(msgspec.ValidationError):
        catalogue._to_checked(broken)


def test_pages_that_were_not_checked_for_a_year_are_listed_the_oldest_first(monkeypatch):
    entries = dict([*catalogue.load().items()][:3])
    old = [
        replace(entry, checked=catalogue.Checked("torch", "2.13", day))
        for entry, day in zip(
            entries.values(), (date(2026, 3, 1), date(2025, 3, 1), date(2026, 2, 28)), strict=True
        )
    ]
    monkeypatch.setattr(catalogue, "load", lambda: {entry.id: entry for entry in old})
    assert pages.stale(date(2027, 3, 1)).splitlines() == [
        f"- **{old[1].id}**: checked on 2025-03-01 against torch, version 2.13",
        f"- **{old[2].id}**: checked on 2026-02-28 against torch, version 2.13",
    ]
    assert "within the last year" in pages.stale(date(2025, 3, 2))


def test_citing_keeps_the_order_and_leaves_out_what_has_no_page():
    told = catalogue.cited(["R2", "no-such-page", "R1"])
    assert [t["id"] for t in told] == ["R2", "R1"]
    entry = catalogue.load()["R2"]
    assert told[0] == {"id": "R2", "title": entry.title, "fix": entry.fix, "check": entry.check}


def test_the_entries_are_those_of_the_pages():
    assert [*catalogue.load().values()] == catalogue.pages()
