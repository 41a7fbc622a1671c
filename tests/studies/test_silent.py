"""The page of the silent errors says what was told of them. This needs no PyTorch."""

from sentinel import catalogue
from studies.silent.page import PAGE, Outcome, Told, read, rendered


def test_the_page_shows_the_outcomes():
    assert PAGE.read_text() == rendered(read()), "run `make silent`"


def test_the_errors_are_described_by_entries_of_the_catalogue():
    assert {entry for outcome in read() for entry in outcome.catalogue} <= {*catalogue.load()}


def test_most_errors_are_told_for_every_seed_and_no_twin_rings():
    tuned = [outcome for outcome in read() if not outcome.is_held_out]
    firsts = [[[causes[0] for _, *causes in seed.broken_with] for seed in of.seeds] for of in tuned]
    told = [
        all({*first} & {*of.catalogue} for first in seeds) for of, seeds in zip(tuned, firsts, strict=True)
    ]
    assert len(tuned) == 20
    assert {len(outcome.seeds) for outcome in read()} == {3}
    assert sum(told) >= 16
    assert not [of.name for of in read() for seed in of.seeds if seed.healthy_with]


def test_a_wrong_cause_or_a_ringing_twin_counts_against_it():
    right = [["broken-wiring", "O3", "O2"]]
    wrong = [["broken-wiring", "O2", "O3"]]
    seeds = [Told(right, [], [], []), Told(wrong, wrong, wrong, [])]
    page = rendered([Outcome("cut", "a branch is cut", ["O3"], False, seeds)])
    assert "| cut (O3): a branch is cut | 1 of 2 `broken-wiring` | 0 of 2 (1) | 1 of 2 |" in page
    assert "Of 1 errors, 0 are told with the right cause first for every seed" in page
