from pathlib import Path
from socket import gethostname

import pytest

from sentinel.pipeline import Pipeline
from sentinel.sources.base import Run
from sentinel.sources.identity import RunIdentity
from sentinel.sources.json.lines import JsonLines

CONFIG = '{"config": {"max_steps": 500, "world_size": 8}}\n'


def tracked(log, place=None, signals=(), host=""):
    pipeline = Pipeline([], {}, dict(signals), lambda *_: None, host)
    return pipeline.track(Run(place or log, "jsonl", JsonLines(log)), "a")


def described(log, place=None):
    run_pipeline = tracked(log, place)
    run_pipeline.log.ingest(run_pipeline.log.poll(1000))
    return run_pipeline.described()


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path("log.jsonl")


def test_a_run_says_where_it_lies_and_what_its_settings_plan(log):
    log.write_text(CONFIG + "".join(f'{{"step": {i}, "train/loss": 1.0}}\n' for i in range(20)))
    assert described(log) == RunIdentity(
        run="a",
        path="log.jsonl",
        location=str(log.absolute()),
        host=gethostname(),
        planned_steps=500.0,
        world_size=8.0,
        owner=log.owner(),
    )


def test_what_the_settings_do_not_say_is_not_known(log):
    log.write_text('{"step": 1, "train/loss": 1.0}\n')
    told = described(log)
    assert (told.planned_steps, told.world_size) == (None, None)


def test_a_log_keeps_the_name_of_the_machine_that_first_read_it(log, monkeypatch):
    monkeypatch.setattr("sentinel.pipeline.gethostname", lambda: "pod-1")
    state = tracked(log).dump()
    monkeypatch.setattr("sentinel.pipeline.gethostname", lambda: "pod-2")
    later = tracked(log)
    upgraded = tracked(log, signals={"a": "loss"})
    named = tracked(log, host="cluster")
    assert [one.restore(state) for one in (later, upgraded, named)] == [True, False, True]
    assert [one.described().host for one in (later, upgraded, named)] == ["pod-1", "pod-1", "cluster"]
