"""What the pages of probes and of the catalogue say of one another. This needs no PyTorch."""

import pytest

from sentinel import catalogue
from sentinel.probes.discovery import chosen, page, probe_sets

HEADINGS = ["## Cost", "## When it misleads", "## Source"]


@pytest.mark.parametrize("name", probe_sets())
def test_each_set_has_a_page(name):
    assert [line for line in page(name).splitlines() if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("name", probe_sets())
def test_the_catalogue_knows_the_numbers_of_each_set(name):
    one = probe_sets()[name]
    named = {number for entry in catalogue.load().values() for number in entry.probes}
    assert named & one.shows.keys()
    assert {*one.entries} <= catalogue.load().keys()


def test_no_two_sets_share_a_number():
    shown = [number for one in probe_sets().values() for number in one.shows]
    assert len(shown) == len({*shown})


PROBED = [
    "O2",
    "O4",
    "O5",
    "O15",
    "O17",
    "O18",
    "O21",
    "O22",
    "O24",
    "O25",
    "DP1",
    "DP2",
    "DP10",
    "DP11",
    "DP12",
    "DP14",
    "L2",
    "L5",
    "L6",
    "V1",
    "V4",
    "DF1",
    "DF3",
    "DF5",
    "X1",
    "X5",
    "G3",
    "GV",
    "G-ratio",
]
"""The entries that only a number from within the training makes sure."""


@pytest.mark.parametrize("entry", PROBED)
def test_an_entry_that_needs_a_probe_names_one_that_exists(entry):
    shown = {number for one in probe_sets().values() for number in one.shows}
    assert shown & catalogue.load()[entry].probes.keys()


def test_sets_are_chosen_by_cost_or_by_name():
    default, cheap = chosen("default"), chosen("cheap")
    assert default.keys() < cheap.keys() == probe_sets().keys()
    assert [*chosen(["ties"])] == [*chosen("ties")] == ["ties"]
    with pytest.raises(ValueError, match="sets='none'"):
        chosen("none")
