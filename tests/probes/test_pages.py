"""What the pages of probes and of the catalogue say of one another. This needs no PyTorch."""

import pytest

from sentinel import catalogue
from sentinel.detectors.logging_snippets import LINES, PROBE
from sentinel.probes.discovery import chosen, page, probe_sets
from sentinel.report.probes import index, judging, signal_of

HEADINGS = ["## Cost", "## When it misleads", "## Source"]


@pytest.mark.parametrize("name", probe_sets())
def test_each_set_has_a_page(name):
    assert [line for line in page(name).splitlines() if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("name", probe_sets())
def test_the_catalogue_knows_the_numbers_of_each_set(name):
    kind = probe_sets()[name]
    named = {number for entry in catalogue.load().values() for number in entry.probes}
    assert named & kind.shows.keys()
    assert {*kind.entries} <= catalogue.load().keys()


def test_no_two_sets_share_a_number():
    shown = [number for kind in probe_sets().values() for number in kind.shows]
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
    shown = {number for kind in probe_sets().values() for number in kind.shows}
    assert shown & catalogue.load()[entry].probes.keys()


def test_the_table_names_each_number_with_what_it_serves():
    _, _, *rows = index().splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert [name.strip("`") for name, *_ in cells] == [
        number for kind in probe_sets().values() for number in kind.shows
    ]
    (carried,) = (row for row in cells if row[0] == "`grad/carried_over`")
    assert carried[2:] == ["`carried_gradients`", "cheap", "G5, O4", "`misscaled-gradient`"]


def test_a_number_of_one_of_many_is_judged_as_that_of_each():
    assert judging("update_ratio/<group>") == ["update-ratio-out-of-band"]
    assert judging("dead_fraction/<layer>") == ["dead-activation-growth"]
    assert judging("data/batch_hash") == []


@pytest.mark.parametrize(
    ("signal", "line"),
    [(signal, lines[""]) for signal, lines in LINES.items() if lines.get("", "").startswith(PROBE)],
)
def test_the_line_of_a_report_makes_a_probe_that_logs_the_number(signal, line):
    sets = chosen("cheap" if 'sets="cheap"' in line else "default").values()
    assert signal in {signal_of(number) for kind in sets for number in kind.shows}


def test_sets_are_chosen_by_cost_or_by_name():
    default = chosen("default")
    cheap = chosen("cheap")
    assert default.keys() < cheap.keys() == probe_sets().keys()
    assert [*chosen(["ties"])] == [*chosen("ties")] == ["ties"]
    with pytest.raises(ValueError, match="sets='none'"):
        chosen("none")
