"""The second opinion: trees over all measurements, as data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.detectors.reading.cards import all_cards, second_opinions, worded
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import curve_of
from sentinel.detectors.reading.forest import LEAF, MEASURED, ROLES, Forest, forest
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import Role
from sentinel.detectors.reading.statements import weightiest
from tests.detectors.reading.test_cards import WILD

UNKNOWN = dict.fromkeys(MEASURED, np.nan)

TREND = MEASURED.index("trend")
REWARD = len(MEASURED) + ROLES.index(Role.REWARD)
SECOND_TREE = 3
SMALL = Forest(
    says=dict.fromkeys(MEASURED, ""),
    base=-1.0,
    roots=(0, SECOND_TREE),
    inputs=(TREND, LEAF, LEAF, REWARD, LEAF, LEAF),
    marks=(0.5, 0, 0, 0.5, 0, 0),
    below=(1, 0, 0, 4, 0, 0),
    above=(2, 0, 0, 5, 0, 0),
    unknown_below=(True, False, False, False, False, False),
    odds=(0.1, 2.0, -2.0, 0.0, -0.5, 0.5),
    shares=(0.0, 0.5, 1.0),
    healthy=(-3.0, 0.0, 4.0),
)
"""Two trees: of the trend, and of whether it is a reward."""


@pytest.mark.parametrize(
    ("trend", "role", "odds"),
    [
        (0.4, Role.REWARD, -1 + 2 + 0.5),
        (0.5, Role.METRIC, -1 + 2 - 0.5),
        (0.6, Role.METRIC, -1 - 2 - 0.5),
        (np.nan, Role.REWARD, -1 + 2 + 0.5),
    ],
)
def test_each_tree_adds_the_odds_of_its_leaf(trend, role, odds):
    opinion = SMALL.opinion(UNKNOWN | {"trend": trend}, role)
    assert opinion == pytest.approx(np.interp(odds, SMALL.healthy, SMALL.shares))


def test_an_input_weighs_what_its_nodes_change():
    weights = SMALL.weights(UNKNOWN | {"trend": 0.4}, Role.REWARD)
    assert weights[[TREND, REWARD]] == pytest.approx([1.9, 0.5])
    assert np.count_nonzero(weights) == len(SMALL.roots)


def test_the_trees_of_the_project_end():
    """Children come after their parents, so that no path is endless."""
    trees = forest()
    inner = [place for place, asked in enumerate(trees.inputs) if asked != LEAF]
    assert all(place < trees.below[place] < len(trees.odds) for place in inner)
    assert all(place < trees.above[place] < len(trees.odds) for place in inner)
    assert {trees.inputs[place] for place in inner} <= {*range(len(MEASURED) + len(ROLES))}
    assert list(trees.healthy) == sorted(trees.healthy)
    assert list(trees.shares) == sorted(trees.shares)


def test_each_input_is_a_measurement_that_has_words():
    assert {*forest().says} <= {*MEASURED}
    assert all(worded(says, value) for says in forest().says.values() for value in (-0.5, 0.0, 0.5))


def test_a_measurement_that_is_new_moves_no_input(monkeypatch):
    """A forest is fitted seldom; who adds a measurement need not fit it again."""
    before = SMALL.weights(UNKNOWN | {"trend": 0.4}, Role.REWARD)
    monkeypatch.setattr("sentinel.detectors.reading.forest.MEASURED", ("new", *MEASURED))
    after = SMALL.weights(UNKNOWN | {"trend": 0.4, "new": 1.0}, Role.REWARD)
    assert after.tolist() == before.tolist()


@given(
    st.lists(st.sampled_from([0.0, -1.0, 1.0, 0.5, 1e30, -1e-9]), min_size=6, max_size=30),
    st.sampled_from(ROLES),
    st.booleans(),
)
def test_any_curve_gets_an_opinion(rows, role, higher_is_better):
    outcome = curve_of(np.array(rows), higher_is_better=higher_is_better)
    with np.errstate(all="ignore"):
        measured = {name: float(one.measure(outcome)[0]) for name, one in MEASUREMENTS.items()}
        measured |= {name: float(one.measure(outcome, outcome)[0]) for name, one in COMPANY.items()}
    assert 0 <= forest().opinion(measured, role) <= 1
    assert not WILD.search(weightiest(measured, role))


def test_the_forest_is_asked_of_what_is_over_alone():
    cards = [card for card in all_cards() if card.claim in second_opinions()]
    assert cards
    assert all(not card.running and card.grown == np.inf and card.stage == np.inf for card in cards)
