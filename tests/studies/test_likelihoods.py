"""How likely entries are: what is fitted to cases, what it claims of others, and the numbers in use."""

import re
import tomllib

import pytest

from sentinel import catalogue
from sentinel.incidents.causes import Listed, likelihoods
from studies import MEASUREMENTS
from studies.strangers.calibration import calibration, expected_error, left_out
from studies.strangers.likelihoods import BY_HAND, Case, Claim, claims, fitted, text

PAGE = MEASUREMENTS / "strangers.md"


def case(*right, first=("A", 0, 0), second=("B", 0, 0), fold=0):
    return Case([Listed(*first), Listed(*second)], ["A" in right, "B" in right], 1.0, fold)


def test_without_cases_the_usual_order_stands():
    by = fitted([])
    assert (by.confirms, by.excludes, by.entries) == (4.0, 4.0, {})


@pytest.mark.slow
def test_what_was_right_more_often_than_its_place_says_weighs_more():
    by = fitted([case("B")] * 20)
    assert by.weights(case().listed)[1] > BY_HAND.weights(case().listed)[1]
    assert by.entries["B"].factor > 1 > by.entries["A"].factor
    assert fitted([case("B")]).entries["B"].factor < 1.3, "one case says little"


@pytest.mark.slow
def test_a_clue_that_misleads_counts_less_and_one_that_tells_more():
    misleads = fitted([case("A", second=("B", 1, 0)), case("A", first=("A", 0, 1))] * 10)
    tells = fitted([case("B", second=("B", 1, 0)), case("B", first=("A", 0, 1))] * 10)
    assert misleads.confirms < 4 < tells.confirms
    assert misleads.excludes < 4 < tells.excludes


@pytest.mark.long
def test_the_first_is_called_as_likely_as_it_is_right():
    cases = [case(*("A" if at % 4 else "B"), fold=at % 5) for at in range(80)]
    told = claims(fitted(cases), cases)
    assert told[0].claimed == pytest.approx(0.75, abs=0.05)
    assert expected_error(left_out(cases)) < 0.05


def test_the_calibration_error_is_the_distance_of_claim_and_truth():
    assert expected_error([Claim(0.9, True, 1.0), Claim(0.9, False, 1.0)]) == pytest.approx(0.4)
    assert expected_error([Claim(0.9, True, 1.0), Claim(0.6, False, 1.0)]) == pytest.approx(0.35)


def test_what_is_written_is_what_is_read():
    by = fitted([case("A"), case("B")])
    assert tomllib.loads(text(by))["entries"] == {
        name: {"factor": one.factor, "right": one.right, "expected": one.expected}
        for name, one in by.entries.items()
    }
    assert "No label names" in calibration([])


def test_the_numbers_in_use_are_of_entries_that_exist():
    used = likelihoods()
    assert {*used.entries} <= {*catalogue.load()}
    assert min(used.confirms, used.excludes) > 1, "a clue tells something"
    assert used.slope >= 0, "what weighs more is no less likely"
    assert used.cases >= 100


def test_the_claims_on_runs_that_were_left_out_are_true():
    error = re.search(r"^\| Left out \| ([\d.]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert float(error[1]) <= 0.08
