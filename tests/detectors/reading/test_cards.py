"""Cards: what they add up to, how they read, and what is said of a wrong one."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel import catalogue
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.reading import standing
from sentinel.detectors.reading.card_files import CardError, card_in
from sentinel.detectors.reading.cards import MAX_LINES, Line, all_cards, card_of
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import curve_of
from sentinel.detectors.reading.forest import OPINION, forest
from sentinel.detectors.reading.measurements import MEASUREMENTS
from tests.each import each

LINE = """
[[lines]]
measurement = "lost_of_gain"
says = "it lost {value:.0%} of its gain"
marks = [0.2, 0.4, 1.0]
points = [0, 2, 4]
"""
HEAD = """
claim = "worse"
meaning = "it got worse"
begins = "best"
roles = ["reward"]
detector = "reward-collapse"
catalogue = ["R1"]
least_points = 10
needs = { low_for = 0.1 }
excuses = { late_share = 0.85 }
page_from = 4
"""
RUNNING = """
[[running]]
least_points = 20
needs = { lost_of_size = 0.2 }
page_from = 5
"""
TAKES = """
[[lines]]
measurement = "reward_rose"
says = "another return rose by {value:.0f} scatters"
marks = [3.0, 10.0]
points = [0, -2]
"""


def test_points_grow_evenly_between_marks_and_what_is_not_measured_gives_none():
    card = card_in("worse.toml", HEAD + LINE + TAKES)
    lost = np.array([0.1, 0.3, 0.4, 0.7, 5.0, np.nan])
    rose = np.array([np.nan, 3.0, 6.5, 10.0, 50.0, np.nan])
    points = card.points({"lost_of_gain": lost, "reward_rose": rose})
    assert points.tolist() == [[0, 1, 2, 3, 4, 0], [0, 0, -1, -2, -2, 0]]
    assert card.most == 4


def test_marks_may_fall():
    falling = LINE.replace("[0.2, 0.4, 1.0]", "[1.0, 0.4, 0.2]")
    card = card_in("worse.toml", HEAD + falling)
    assert card.points({"lost_of_gain": np.array([2.0, 0.7, 0.1])}).tolist() == [[0, 1, 4]]


def test_a_card_reads_as_a_sentence():
    card = card_in("worse.toml", HEAD + LINE + TAKES)
    text = card.text({"lost_of_gain": 0.62, "reward_rose": 50.0})
    assert text == (
        "it got worse: it lost 62% of its gain (+3), another return rose by 50 scatters (-2): "
        "1 of 4, pages from 4"
    )
    assert card.text({"lost_of_gain": 0.62, "reward_rose": 50.0}, most=1).count("(") == 1


WRONG = {
    "claim = ": (HEAD.replace("claim", "klaim") + LINE, "unknown key klaim"),
    "no meaning": (HEAD.replace('meaning = "it got worse"', "") + LINE, "meaning is missing, or no text"),
    "no role": (HEAD.replace("reward", "kl", 1) + LINE, "roles must be some of"),
    "begins": (HEAD.replace('"best"', '"end"') + LINE, "begins must be one of start, best"),
    "no page": (HEAD.replace("page_from = 4", "page_from = 0") + LINE, "page_from must lie above 0"),
    "too many lines": (HEAD + LINE * 9, "a card has 1 to 8 lines, and not 9"),
    "no such measurement": (HEAD + LINE.replace("lost_of_gain", "lost"), "line 1 (lost): there is no such"),
    "too few points": (HEAD + LINE.replace("[0, 2, 4]", "[0, 2]"), "as many points as marks"),
    "marks that turn": (HEAD + LINE.replace("1.0]", "0.3]"), "marks must rise all the time, or fall"),
    "needs": (HEAD.replace("low_for = 0.1", "low = 0.1") + LINE, "needs (low): there is no such"),
    "needs of what": (HEAD.replace("{ low_for = 0.1 }", "[]") + LINE, "needs must have a number for each"),
    "half points": (HEAD + LINE.replace("[0, 2, 4]", "[0, 0.5, 4]"), "points must be whole and begin with 0"),
    "points that turn": (HEAD + LINE.replace("[0, 2, 4]", "[0, 4, 2]"), "points must only grow"),
    "says": (HEAD + LINE.replace("{value:.0%}", "{worth}"), "says cannot be filled in"),
    "no says": (HEAD + LINE.replace("says", "sais"), "line 1: has"),
    "a lower bar": (HEAD + RUNNING.replace("= 5", "= 4") + LINE, "running 1: page_from must lie above 4"),
    "an empty bar": (HEAD + "[[running]]" + LINE, "running 1: least_points is missing, or no number"),
    "a wrong bar": (
        HEAD + RUNNING.replace("needs", "wants") + LINE,
        "running 1 has least_points, page_from, ne",
    ),
    "no share of the plan": (
        HEAD + RUNNING + "progress = 1\n" + LINE,
        "progress must be a share of the plan",
    ),
    "no share of the rows": (
        HEAD + RUNNING + "stands_for = 1.5\n" + LINE,
        "stands_for must be a share of the rows",
    ),
    "interims of what": (
        HEAD + "[interims]\nshare = 0.5\n" + LINE,
        "interims has least_points, page_from, needs",
    ),
    "a lower bar at interims": (
        HEAD + "[interims]\ngrown = 2\npage_from = 3\n" + LINE,
        "interims: page_from must lie above 4",
    ),
    "no growth": (HEAD + "[interims]\ngrown = 0\n" + LINE, "interims must have a number above 0 for grown"),
    "few that are many": (
        HEAD + "few = { least_points = 99, page_from = 9 }\n" + LINE,
        "few must have fewer points than",
    ),
    "few for less": (
        HEAD + "few = { least_points = 3, page_from = 4 }\n" + LINE,
        "few must have fewer points than",
    ),
    "few of what": (HEAD + "few = 3\n" + LINE, "few has least_points and page_from"),
    "no TOML": ("claim = ", "Invalid value"),
}


@each(WRONG)
def test_a_wrong_card_is_refused_in_one_clear_line(name):
    text, complaint = WRONG[name]
    with pytest.raises(CardError, match=re.escape(complaint)) as error:
        card_in("worse.toml", text)
    assert str(error.value).startswith("worse.toml: ")
    assert "\n" not in str(error.value)


def test_what_takes_as_much_at_interims_takes_it_on_few_points_too():
    few = "few = { least_points = 6, page_from = 7 }\n"
    excuse = "[interims]\ngrown = 3\nexcuses = { trend = 0.9 }\n"
    assert card_in("worse.toml", HEAD + few + excuse + "page_from = 4\n" + LINE).at_interims.few == (6, 7)
    assert card_in("worse.toml", HEAD + few + excuse + "page_from = 5\n" + LINE).at_interims.few is None


# The cards of the project


@each(all_cards(), lambda card: card.claim)
def test_a_card_stands_for_detectors_and_causes_that_exist(card):
    detector = all_detectors()[card.detector]
    assert isinstance(detector, Detector)
    assert card.claim in detector.reads
    assert {card.claim, *card.yields_to} <= {one.claim for one in all_cards()}
    assert {*card.catalogue} <= {*catalogue.load()}
    assert card.over.page_from <= card.most
    assert all(bar.page_from <= card.most for bar in card.running)
    assert len(card.lines) <= MAX_LINES


@pytest.mark.parametrize("claim", ["left-its-level", "reward-got-worse"])
def test_what_kept_its_start_waits_for_a_part_of_the_plan_or_the_end(claim):
    """A dip heals as often as not; what lies below the start learned nothing that is left."""
    for bar in card_of(claim).running:
        lost = {name: max(1.0, least) for name, least in bar.needs.items()} | dict.fromkeys(bar.excuses, -1.0)
        assert bar.allows(lost | {"below_start": 0.2})
        assert bar.progress or not bar.allows(lost | {"below_start": 0.05})


def test_a_run_that_goes_on_memorises_beside_a_training_loss_that_fell_or_without_any():
    card = card_of("memorises")
    beside = "training_loss_keeps_gain"
    for bar in (*card.running, card.at_interims):
        assert bar.needs.get(beside, 0.0) > 0 or bar.excuses[beside] <= standing.LEAST
    assert beside not in card.over.needs


def test_a_metric_that_got_worse_waits_for_the_end():
    """Another metric may rise meanwhile, and companions count once a run is over."""
    assert card_of("got-worse").running == ()


@each(all_cards(), lambda card: card.claim)
def test_a_card_reads_any_curve(card):
    rows = np.linspace(0, 1, 30)
    outcome = curve_of(rows, higher_is_better=True)
    measured = {name: float(one.measure(outcome)[0]) for name, one in MEASUREMENTS.items()}
    for name, one in COMPANY.items():
        measured[name] = float(one.measure(outcome, curve_of(rows[::-1], higher_is_better=True))[0])
    measured[OPINION] = forest().opinion(measured, card.roles[0])
    assert card.text(measured).startswith(card.meaning)


WILD = re.compile(
    r"-[\d.]+ ?%|-[\d.]+ .*(above|below|better|worse|scatters|deviations|times)"  # a sign that the words tell
    r"|\d{4,}\.\d|[1-9]\d{4,}(?! points| evaluations)|\de[+-]|inf|nan|at at"
)
"""What no person reads: a negative amount, one of five digits or an exponent."""


def test_a_line_says_by_which_amount_and_to_which_side():
    line = Line("gain_by_half", "it is {value:.1%} {better} than its start", (0.2, 0.0), (0, 2))
    assert line.text(0.05) == "it is 5.0% better than its start"
    assert line.text(-0.05) == "it is 5.0% worse than its start"
    assert line.text(-1000.0) == "it is at least 1000% worse than its start"
    assert Line("below_start", "{worse}", (0, 1), (0, 2)).text(-0.1) == "better"
    assert Line("risen_of_best", "{ratio:.3g} times", (0, 1), (0, 2)).text(1.48) == "2.48 times"
    assert Line("kl_growth", "{times:.3g} times", (0, 1), (0, 2)).text(5.0) == "at least 1000 times"
    assert Line("points", "{count} points", (0, 1), (0, 2)).text(4.0) == "10000 points"
    assert Line("late_share", "at {level:.3f}", (1, 0), (0, 2)).text(-0.01) == "at -0.010"


@each(all_cards(), lambda card: card.claim)
def test_each_line_of_a_card_reads_well_whatever_it_measured(card):
    @given(st.sampled_from(card.lines), st.floats(allow_nan=False, allow_infinity=False))
    def reads_well(line, value):
        if line.score(np.array([value]))[0] and line.measurement not in ("points", "late_share"):
            assert not WILD.search(line.text(value)), line.text(value)

    reads_well()


ROWS = st.lists(
    st.sampled_from([0.0, 1e-300, -1e-9, 0.01, 0.5, 1.0, -1.0, 3.0, 1e6, -1e12, 1e30, -1e300]),
    min_size=10,
    max_size=30,
)


@given(ROWS, ROWS, st.booleans(), st.booleans())
def test_no_curve_makes_a_card_say_a_wild_number(rows, beside, higher_is_better, companion_is_better):
    with np.errstate(all="ignore"):
        outcome = curve_of(np.array(rows), higher_is_better=higher_is_better)
        other = curve_of(np.array(beside), higher_is_better=companion_is_better)
        measured = {name: float(one.measure(outcome)[0]) for name, one in MEASUREMENTS.items()}
        measured |= {name: float(one.measure(outcome, other)[0]) for name, one in COMPANY.items()}
    for card in all_cards():
        measured[OPINION] = forest().opinion(measured, card.roles[0])
        assert not WILD.search(card.text(measured)), card.text(measured)


def test_a_card_is_read_where_it_has_what_it_needs_and_nothing_excuses_it():
    card = card_in("worse.toml", HEAD + LINE)
    assert card.over.allows({"low_for": 0.1, "late_share": 0.8})
    assert card.over.allows({"low_for": 0.1, "late_share": float("nan")})
    assert not card.over.allows({"low_for": 0.05, "late_share": 0.8})
    assert not card.over.allows({"low_for": float("nan"), "late_share": 0.8})
    assert not card.over.allows({"low_for": 0.1, "late_share": 0.9})


def test_a_bar_for_a_part_of_the_plan_may_be_as_low_as_the_one_at_the_end():
    planned = RUNNING.replace("= 5", "= 4") + "progress = 0.5\n"
    low, high = card_in("worse.toml", HEAD + planned + RUNNING + LINE).running
    assert (low.page_from, high.page_from) == (4.0, 5.0)
    shares = np.array([np.nan, 0.4, 0.5, 1.0])
    no_epochs = np.full(4, np.nan)
    assert low.is_for(shares, no_epochs).tolist() == [False, False, True, True]
    assert high.is_for(shares, no_epochs).all()


def test_a_bar_for_epochs_is_for_no_run_of_which_none_are_known():
    [bar] = card_in("worse.toml", HEAD + RUNNING + "least_epochs = 20\n" + LINE).running
    assert bar.is_for(np.full(3, np.nan), np.array([np.nan, 19.0, 20.0])).tolist() == [False, False, True]


def test_a_bar_that_what_is_found_stands_for_a_while_may_be_as_low_as_the_one_at_the_end():
    stands = RUNNING.replace("= 5", "= 4") + "stands_for = 0.3\n"
    card = card_in("worse.toml", HEAD + stands + LINE)
    [bar] = card.running
    assert bar.earlier_shares == (0.7, 0.85)
    text = card.text({"lost_of_gain": 1.0}, running=bar)
    assert text.endswith("4 of 4, pages while it runs from 4 if it did for 30% of the rows")


def test_few_points_have_a_higher_bar():
    card = card_in("worse.toml", HEAD + "few = { least_points = 5, page_from = 6 }\n" + LINE)
    most = card.over.least_points
    counts = np.array([4.0, 5.0, most - 1.0, most])
    assert card.over.needed(counts).tolist() == [np.inf, 6.0, 6.0, 4.0]
    assert card.over.fewest == 5
    assert card.raised(2).over.needed(counts).tolist() == [np.inf, 12.0, 12.0, 8.0]
    assert card.text({"lost_of_gain": 1.0}, count=5).endswith("4 of 4, pages from 6 of so few rows")
    assert card.text({"lost_of_gain": 1.0}).endswith("4 of 4, pages from 4")


def test_a_run_that_goes_on_has_a_higher_bar_beside_the_one_at_its_end():
    card = card_in("worse.toml", HEAD + RUNNING + LINE)
    [bar] = card.running
    assert (bar.least_points, bar.page_from) == (20, 5.0)
    assert bar.needs == {"low_for": 0.1, "lost_of_size": 0.2}
    assert bar.excuses == {"late_share": 0.85}
    assert card.measurements == {"lost_of_gain", "low_for", "lost_of_size", "late_share"}
    text = card.text({"lost_of_gain": 1.0}, running=bar)
    assert text == "it got worse: it lost 100% of its gain (+4): 4 of 4, pages while it runs from 5"
