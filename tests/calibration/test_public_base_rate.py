"""The rates of public runs stand in where an archive has too few runs of its own."""

import json

import pytest

from sentinel.calibration import public_base_rate as module
from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Kind, Pages, Stratum, Stricter
from sentinel.calibration.public_base_rate import (
    PublicRuns,
    by_stratum,
    faults_lost,
    faulty,
    reference,
    written,
)
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.strictness import FACTORS
from tests.sinks.samples import INCIDENT

SPIKE = Kind("loss-spike", "single")
SHORT = Stratum("trl", 100)
LONG = Stratum("trl", float("inf"))


def archive(**runs):
    """So many runs of each stratum, of which the first one pages."""
    return Pages(
        {
            f"{name}-{number}": ArchivedRun({} if number else {SPIKE: INCIDENT}, stratum)
            for name, stratum in (("short", SHORT), ("long", LONG))
            for number in range(runs.get(name, 0))
        }
    )


@pytest.fixture
def public(monkeypatch):
    runs = {SHORT: PublicRuns(70, [frozenset({SPIKE})])}
    monkeypatch.setattr(module, "reference", lambda: runs)


def test_a_stratum_with_enough_runs_speaks_for_itself(public):
    assert [*by_stratum(archive(short=50), ())] == [
        "trl, up to 100 points: 1 of 50 healthy runs (2.0%, at most 10.6%)"
    ]


def test_with_too_few_runs_the_public_ones_stand_beside_them(public):
    short, long = by_stratum(archive(short=12, long=3), {SPIKE})
    assert short == (
        "trl, up to 100 points: 0 of 12 healthy runs (0.0%, at most 26.5%); too few to say, and of public "
        "ones 0 of 70 healthy runs (0.0%, at most 5.1%)"
    )
    assert long.endswith("too few to say")


def test_what_is_shipped_is_read_as_it_was_written(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "DATA", tmp_path / "reference.json")
    (tmp_path / "reference.json").write_text(written(archive(short=3, long=2)))
    strata = reference.__wrapped__()
    assert {stratum: runs.rate() for stratum, runs in strata.items()} == {SHORT: Rate(1, 3), LONG: Rate(1, 2)}
    assert json.loads((tmp_path / "reference.json").read_text())["healthy"][1]["up_to"] is None


def test_what_a_change_costs_is_the_faults_that_page_no_more(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "DATA", tmp_path / "reference.json")
    pages = archive(short=1)
    for number in range(5):
        paged = {SPIKE: INCIDENT}
        remaining = {SPIKE: INCIDENT} if number else {}
        factors = {Stricter("loss-spike", factor): ArchivedRun(remaining, SHORT) for factor in FACTORS[1:]}
        pages.others[str(number)] = ArchivedRun(paged, SHORT, stricter=factors)
    (tmp_path / "reference.json").write_text(written(pages))
    monkeypatch.setattr(module, "faulty", faulty.__wrapped__)
    changes = [SPIKE, *(Stricter("loss-spike", factor) for factor in FACTORS)]
    assert [faults_lost(change) for change in changes] == [5, 0, 1, 1, 1]


def test_the_shipped_reference_names_frameworks_and_kinds_and_nothing_else():
    assert sum(runs.runs for runs in reference().values()) > 250
    rows = json.loads(module.DATA.read_text("utf-8"))
    assert {key for row in rows["healthy"] for key in row} == {"framework", "up_to", "runs", "paged"}
    assert {key for row in rows["faulty"] for key in row} == {"detector", "variant", "runs"}
    for kind, runs in faulty().items():
        assert kind.variant in all_detectors()[kind.detector].variants
        assert runs == sorted(runs, reverse=True)
