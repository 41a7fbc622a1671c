"""What a run does not log although its settings make it worth watching, from its log to the incident."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.sources.base import Run
from sentinel.sources.json.lines import JsonLines

STEPS = 150
CONFIG = {"max_grad_norm": 1.0, "lr_scheduler_type": "cosine", "fp16": True}


def lines(config=CONFIG, logged=("loss",), late=(), every=1):
    rows = [
        {"step": step, **dict.fromkeys(logged if step < 120 else (*logged, *late), 1.0)}
        for step in range(0, STEPS, every)
    ]
    return [json.dumps(row) + "\n" for row in [{"config": config}, *rows]]


def follow(log):
    def fail(check, run, error):
        raise error

    pipeline = Pipeline([all_detectors()["missing-signal"]], {}, {}, fail)
    return pipeline, pipeline.track(Run(log, "jsonl", JsonLines(log)), "a")


def read(pipeline, run_pipeline):
    (advance,) = pipeline.advance([run_pipeline])
    assert advance.failure is None
    return [change.incident for change in advance.changes]


def said(directory, **given):
    log = directory / "metrics.jsonl"
    log.write_text("".join(lines(**given)))
    pipeline, run_pipeline = follow(log)
    incidents = read(pipeline, run_pipeline)
    assert run_pipeline.log.streams, "nothing was read"
    return [(one.fired_step, one.summary, one.catalogue) for one in incidents]


def test_one_finding_names_all_that_is_missing_and_the_lines_that_log_it(tmp_path):
    ((step, summary, entries),) = said(tmp_path)
    assert step == 100
    assert summary.startswith(
        "the run does not log grad_norm (it clips at 1), learning_rate (its schedule is cosine), "
        "loss_scale (it trains in float16); to have it watched: `log("
    )
    assert set(entries) == {"G8", "O23", "O24", "A-logging"}


@pytest.mark.parametrize(
    "given",
    [
        {"logged": ("loss", "grad_norm", "learning_rate", "loss_scale")},
        {"config": {"lr_scheduler_type": "constant", "max_grad_norm": 0}},
        {"config": {}},
        {"logged": ("accuracy",)},
        {"every": 10},
    ],
    ids=["all is logged", "nothing is implied", "no settings", "no training", "few points"],
)
def test_nothing_is_said(tmp_path, given):
    assert not said(tmp_path, **given)


def test_what_comes_later_counts_as_missing(tmp_path):
    ((_, summary, _),) = said(tmp_path, late=("grad_norm", "learning_rate", "loss_scale"))
    assert "grad_norm" in summary


@pytest.mark.long
@settings(deadline=None, max_examples=15)
@given(cuts=st.sets(st.integers(1, STEPS), max_size=5), reload=st.booleans())
def test_it_is_the_same_however_the_log_grew(tmp_path_factory, cuts, reload):
    directory = tmp_path_factory.mktemp("run")
    expected = said(directory)
    log = directory / "grown.jsonl"
    log.touch()
    pipeline, run_pipeline = follow(log)
    found = []
    done = 0
    for cut in [*sorted(cuts), STEPS + 1]:
        with log.open("a") as file:
            file.writelines(lines()[done:cut])
        done = cut
        found += read(pipeline, run_pipeline)
        if reload:
            state = run_pipeline.dump()
            pipeline, run_pipeline = follow(log)
            assert run_pipeline.restore(state)
    assert [(one.fired_step, one.summary, one.catalogue) for one in found] == expected
