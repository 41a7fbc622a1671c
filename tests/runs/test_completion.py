"""What the points of a log say about whether more is to come."""

import json
import math

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.runs.end_inference import completion_of
from sentinel.sources.base import Run
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.json.lines import JsonLines


def completion(directory, rows, settings=None):
    log = directory / "metrics.jsonl"
    head = [{"config": settings}] if settings else []
    log.write_text("".join(json.dumps(row) + "\n" for row in (*head, *rows)))
    return completion_of_run(Run(log, "jsonl", JsonLines(log)))


def completion_of_run(run):
    pipeline = Pipeline(all_detectors().values(), {}, {})
    run_pipeline = pipeline.track(run, "a")
    while pipeline.advance([run_pipeline])[0].more:
        pass
    return completion_of(run_pipeline.log)


def rows(steps, rate=None):
    records = [{"step": step, "loss": 2.0 + 0.1 * math.sin(step)} for step in steps]
    for place, row in enumerate(records):
        if rate is not None:
            row["learning_rate"] = rate((place + 1) / 300)
    return records


SHAPES = {
    "linear": lambda share: 1e-3 * (1 - share),
    "cosine": lambda share: 5e-4 * (1 + math.cos(math.pi * share)),
    "warm-up": lambda share: 1e-3 * min(share / 0.1, (1 - share) / 0.9),
}
ENDLESS = {
    "constant": lambda _: 1e-3,
    "exponential": lambda share: 1e-3 * 0.4**share,
    "inverse square root": lambda share: 1e-4 / math.sqrt(share),
    "halved": lambda share: 1e-3 * 0.5 ** math.floor(4 * share),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_schedule_tells_its_end_from_its_middle(tmp_path, shape):
    whole = rows(range(3, 2403, 8), SHAPES[shape])
    assert "the end of its schedule" in completion(tmp_path, whole).over
    amid = completion(tmp_path, whole[:140])
    assert (amid.over, "the middle of its schedule" in amid.goes_on) == ("", True)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ENDLESS)
def test_a_schedule_without_an_end_says_nothing(tmp_path, shape):
    result = completion(tmp_path, rows(range(3, 2403, 8), ENDLESS[shape]))
    assert (result.over, result.goes_on) == ("", "")


@pytest.mark.slow
def test_a_plan_is_reached_if_no_further_row_was_to_come(tmp_path):
    plan = {"max_steps": 4044}
    near, amid = (completion(tmp_path, rows(range(50, last + 1, 50)), plan) for last in (4000, 3950))
    assert near.over == "it stopped at step 4000 of 4044 planned, and its log is written every 50 steps"
    assert (amid.over, amid.goes_on) == ("", "it is at step 3950 of 4044 planned")


def test_a_few_rows_of_a_plan_do_not_say_that_the_next_one_is_its_last(tmp_path):
    assert completion(tmp_path, rows([500, 1000, 1500]), {"max_steps": 1999}).goes_on


@pytest.mark.slow
def test_a_plan_that_was_passed_counts_something_else(tmp_path):
    result = completion(tmp_path, rows(range(3, 303)), {"max_steps": 100})
    assert (result.over, result.goes_on) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
def test_a_row_for_each_planned_epoch_is_the_end(tmp_path, first):
    epochs = [{"epoch": first + n, "loss": 1.0} for n in range(30)]
    assert completion(tmp_path, epochs, {"epochs": 30}).over == "it logged 30 epochs of 30 planned"
    assert not completion(tmp_path, epochs[:29], {"epochs": 30}).over


@pytest.mark.slow
def test_arguments_beside_a_table_without_times_tell_its_end(tmp_path):
    """Ultralytics writes both so. Whether the file is older than the first row is not known."""
    log = tmp_path / "results.csv"
    log.write_text("epoch,train/box_loss\n" + "".join(f"{epoch},1.{epoch}\n" for epoch in range(1, 31)))
    (tmp_path / "args.yaml").write_text("epochs: 30\n")
    run = Run(log, "csv", CsvLog(log))
    assert completion_of_run(run).over == "it logged 30 epochs of 30 planned"
    (tmp_path / "args.yaml").write_text("epochs: 50\n")
    assert not completion_of_run(run).over


@pytest.mark.long
def test_two_signs_that_may_each_be_chance_are_enough(tmp_path):
    training = rows(range(1, 1001))
    assert completion(tmp_path, training).hint == "1000 is a round number of steps"
    with_evaluation = [*training[:500], {"step": 500, "eval_loss": 1.0}, *training[500:]]
    assert not completion(tmp_path, with_evaluation).over
    last = {"step": 1000, "eval_loss": 1.0}
    assert completion(tmp_path, [*with_evaluation, last]).over == (
        "1000 is a round number of steps and an evaluation was the last that it logged"
    )
    assert not completion(tmp_path, [*with_evaluation[:973], {"step": 972, "eval_loss": 1.0}]).over


@pytest.mark.slow
def test_a_step_is_only_as_round_as_all_that_are_logged(tmp_path):
    assert completion(tmp_path, rows(range(100, 1001, 100))).hint == ""
