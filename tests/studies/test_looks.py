"""What the study of looks counts."""

import numpy as np
import pytest
from msgspec.structs import replace

from sentinel.detectors.reading.cards import card_of
from sentinel.detectors.reading.roles import Part, Role
from studies.cards.labels import Label
from studies.cards.looks import first_pages, measured, page
from studies.cards.series import Series


def series(home: str, values: np.ndarray) -> Series:
    part = Part(Role.REWARD, higher_is_better=True)
    return Series(home, "-", 1, "reward", part, values, len(values) - 1, is_fresh=True)


def label(home: str, healthy: bool) -> Label:
    expected = () if healthy else (frozenset(["reward-collapse"]),)
    return Label(home, "corpus", home, 0, healthy, expected, frozenset(), "rl")


NOISE = np.random.default_rng(1).normal(0, 4, 400)
FALLS = np.r_[np.linspace(0, 300, 60), np.linspace(300, -150, 40), np.full(300, -150.0)] + NOISE
RISES = np.linspace(0, 300, 400) + NOISE


@pytest.fixture(scope="module")
def table():
    logs = [("falls", series("falls", FALLS)), ("rises", series("rises", RISES))]
    return measured((home, one, count) for home, one in logs for count in (64, 128, 192, 256))


def test_it_is_read_of_what_was_seen_until_a_look(table):
    card = card_of("reward-got-worse")
    bar = card.running[0]
    assert first_pages(card, bar, table) == {"falls": 128 / 400}


def test_a_page_counts_problems_and_healthy_runs(table):
    written = page(table, {home: label(home, home == "rises") for home in ("falls", "rises")})
    assert "| reward-got-worse | 22 of 33 | 1 | 1 | 0 |" in written


def test_what_has_to_stand_is_told_once_it_was_found_at_the_looks_before(table):
    """It fell after 60 of 400 points: at the 128th three tenths before are the 64th, when none was lost."""
    card = card_of("reward-got-worse")
    bar = replace(card.running[0], stands_for=0.3)
    assert first_pages(card, bar, table) == {"falls": 192 / 400}
