"""What the pages of probes and of the catalogue say of one another. This needs no PyTorch."""

import pytest

from sentinel import catalogue
from sentinel.probes.discovery import page, probe_sets

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
