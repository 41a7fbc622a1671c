"""The page of hostile inputs says what came of them."""

from datetime import date

import pytest

from studies import ROOT
from studies.hostile import lines, logs, receivers, states
from studies.hostile.attempt import Attempt, Result, require, tried
from studies.hostile.page import PAGE, read, rendered


def test_the_page_shows_the_results():
    assert PAGE.read_text() == rendered(*read()), "run `make hostile`"


def test_the_readme_has_the_figure():
    day, results = read()
    held = sum(not result.fell for result in results)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tries = f"Tried on {day} on {len(results)} logs, receivers, states, archives and processes"
    assert f"{tries} that are damaged, closed or made to harm: [{held} held]" in readme


def test_every_input_held():
    day, results = read()
    assert date.fromisoformat(day)
    assert len(results) >= 200
    assert not [result for result in results if result.fell]
    assert {result.area for result in results} == {
        "Other users",
        "Process numbers",
        logs.AREA,
        lines.AREA,
        receivers.AREA,
        states.STATES,
        states.ARCHIVES,
    }


def test_what_fell_stands_on_the_page_with_its_reason():
    page = rendered(
        "2026-01-01", [Result("Readers", "csv", "deep", ""), Result("Readers", "csv", "wide", "too slow")]
    )
    assert "On 2026-01-01, 1 of 2 inputs held." in page
    assert "| wide | 0 of 1 | csv |" in page
    assert "| Readers | csv | wide | too slow |" in page


def test_an_error_of_any_kind_counts_as_a_fall():
    def fails(_):
        require(False, "it is not so")

    def raises(_):
        [][0]

    attempts = [
        Attempt("a", "b", how, do) for how, do in (("fails", fails), ("raises", raises), ("holds", bool))
    ]
    fell = [result.fell for result in tried(attempts, lambda _: None)]
    assert fell[0] == "it is not so"
    assert fell[1].startswith("IndexError in test_hostile.py:")
    assert not fell[2]


@pytest.mark.long
@pytest.mark.parametrize("harm", ["truncated", "zero-filled", "link to /", "pipe", "hostile names"])
def test_readers_hold(harm):
    attempts = [attempt for attempt in logs.attempts() if attempt.harm == harm]
    assert len(attempts) > 10
    assert not [result for result in tried(attempts, lambda _: None) if result.fell]
