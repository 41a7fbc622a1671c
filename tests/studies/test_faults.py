"""The harness, without the trainings: they need libraries that the tests do not have."""

import csv

import pytest

from sentinel.catalogue import load
from studies.faults.fault import fault
from studies.faults.judge import export, outcome
from studies.faults.loggers import jsonl, table
from studies.faults.page import PAGE, read, rendered
from studies.faults.train import runs, train
from studies.faults.truth import Run


@fault("O2", title="the loss does not fall", strengths=(3.0, 2.0, 1.0), visible=(0, 0, 40), logger=jsonl)
def stand_in(strength, log):
    log.config({"rate": 0.1})
    for step in range(3):
        log.write(step, {"train/loss": 1 + strength, "train/step": 7})


def replayed(*incidents):
    usual = {"inhibited_by": None, "maturity": "stable", "severity": "warning"}
    return [{"last_step": 200, "incidents": [usual | one for one in incidents], "signals": {}}]


def incident(detector, step, *causes, **others):
    return {"detector": detector, "fired_step": step, "catalogue": causes, **others}


RUN = Run("a/faint", "a", "", "faint", 2, False, ("O2", "O4"), 100)


def test_each_strength_is_trained_with_and_without_the_fault():
    trained = [(strength, run.path, run.healthy, run.visible) for _, strength, run in runs([stand_in])]
    assert trained[0] == (3.0, "stand-in/plain", False, 0)
    assert trained[-1] == (0.0, "stand-in/faint-twin", True, 40)
    assert len(trained) == 6


def test_a_run_is_exported_under_the_names_that_peers_know(tmp_path):
    train(stand_in, 2.0, tmp_path / "run")
    export(tmp_path / "run", [{"signals": {"loss": ["train/loss"]}}], tmp_path / "run.csv")
    rows = [*csv.DictReader((tmp_path / "run.csv").read_text().splitlines())]
    assert rows[2] == {"step": "2", "loss": "3.0", "train/step": "7.0"}


def test_a_table_has_the_columns_of_its_first_step(tmp_path):
    with table(tmp_path) as log:
        log.write(0, {"loss": 1.5})
        log.write(1, {"loss": 1.25})
    assert (tmp_path / "metrics.csv").read_text().split() == ["step,loss", "0,1.5", "1,1.25"]


def test_an_alert_is_what_a_sink_hears_of():
    said = outcome(
        RUN,
        replayed(
            incident("late", 180, "O4", "O2"),
            incident("early", 120, "O7", "O2"),
            incident("noted", 110, "O2", severity="info"),
            incident("tried", 110, "O2", maturity="preview"),
            incident("explained", 110, "O2", inhibited_by="another"),
        ),
        {},
    )
    assert [alert.detector for alert in said.alerts] == ["early", "late"]
    assert said.shown == ["noted", "tried"]
    assert said.delay == pytest.approx(0.2)
    assert said.right.detector == "early"
    assert said.first  # O4 describes the fault as well


def test_a_run_of_which_nobody_hears():
    said = outcome(RUN, replayed(), {"peer": None})
    assert (said.right, said.first, said.delay) == (None, False, None)


def test_the_page_shows_the_outcomes():
    assert PAGE.read_text() == rendered(read()), "run `make faults`"


def test_faults_are_described_by_entries_of_the_catalogue():
    assert {entry for one in read() for entry in one.run.catalogue} <= {*load()}
