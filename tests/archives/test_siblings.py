"""Runs of an archive beside their siblings, as one replay compares them."""

import json
import shutil

import polars as pl
import pytest

from sentinel.archives.engine import Local
from sentinel.common.shard import Shard
from sentinel.replays.replaying import replay
from sentinel.report.json import document
from tests import fleets
from tests.archives.conftest import NOW, archived, as_json, config, reported

pytestmark = pytest.mark.long  # each judges some dozens of runs

RULE = "worse-than-siblings"
BAD = 50  # a seed


def program(name):
    """The settings of a program; those of two programs differ in more than siblings may."""
    return {"model": name, "data": name, "optimizer": name}


def write_lines(place, lines, name="metrics.jsonl"):
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def fleet(tmp_path):
    """Programs with nine good runs in as many directories, and one that is worse in a way of its own."""
    root = tmp_path / "fleet"
    for name in ("plain", "unplanned", "other-batch", "further-tag", "short", "ends-in-nan", "no-settings"):
        more = program(name) | ({"max_steps": None} if name == "unplanned" else {})
        for seed in range(9):
            fleets.write(root / f"{name}-{seed}" / "logs", seed, **more)
        bad = [*fleets.lines(BAD, 0.5, **more)]
        match name:
            case "other-batch":
                bad = [*fleets.lines(BAD, 0.5, **more, batch_size=3)]
            case "further-tag":
                bad += [json.dumps({"step": step, "eval/loss": 3 - step / 100}) for step in (100, 200)]
            case "short":
                bad = bad[:160]
            case "ends-in-nan":
                bad += [f'{{"step": {step}, "train/loss": NaN}}' for step in range(201, 211)]
            case "no-settings":
                bad = bad[1:]
        write_lines(root / "bad" / name, bad)
    told = [json.loads(line) for line in fleets.lines(BAD, 0.5)][1:]
    rows = [f"{row['step']},{row['train/loss']}" for row in told]
    write_lines(root / "bad" / "plain", ["step,train/loss", *rows], "metrics.csv")  # of the same training
    fleets.write(root / "copy" / "of-plain-1", 1, **program("plain"))
    for rate in (0.1, 0.2):
        for seed in range(5):
            bad = 2.0 * (seed == 4 and rate == 0.2)
            fleets.write(
                root / f"sweep-{rate}" / f"{seed}", seed, bad, learning_rate=rate, **program("sweep")
            )
    return root


def found_by(body):
    incidents = {
        run["run"]: [one for one in run["incidents"] if one["detector"] == RULE] for run in body["runs"]
    }
    return {run: told for run, told in incidents.items() if told}


def replayed(fleet, settings):
    return as_json(document(replay([fleet], settings, lambda *_: None), NOW))


@pytest.mark.parametrize("shards", [1, 3])
def test_an_archive_says_of_siblings_what_one_replay_says(tmp_path, fleet, shards):
    expected = replayed(fleet, config(fleet))
    names = {"plain", "unplanned", "other-batch", "further-tag", "short", "ends-in-nan"}
    bad = {f"bad/{name}/metrics.jsonl" for name in names} | {"sweep-0.2/4/metrics.jsonl"}
    assert set(found_by(expected)) == bad
    for index in range(shards):
        results, _ = archived(tmp_path / "results", fleet, shard=Shard(index, shards))
    found = reported(results)
    assert found_by(found) == found_by(expected)
    assert found == expected
    table = pl.read_parquet(tmp_path / "results" / "incidents" / "*.parquet").filter(detector=RULE)
    assert {*table["id"]} == {one["id"] for told in found_by(found).values() for one in told}
    archived(tmp_path / "results", fleet, shard=Shard(0, shards))
    assert not (tmp_path / "results" / "incidents" / "siblings.parquet").exists()  # it may be another one now


@pytest.mark.parametrize("rule", [{"siblings_to_warn": 20}, {"informs": ["worse"]}, {"enabled": False}])
def test_the_rule_is_as_the_archive_was_judged_with_it(tmp_path, fleet, rule):
    shutil.rmtree(fleet / "bad" / "unplanned")
    settings = config(fleet).model_copy(update={"detectors": {RULE: rule}})
    expected = replayed(fleet, settings)
    severities = {one["severity"] for told in found_by(expected).values() for one in told}
    assert severities == ({"info"} if rule.get("enabled", True) else set())
    results, _ = archived(tmp_path / "results", fleet, settings=settings)
    assert reported(results) == expected


def test_processes_and_comparisons_change_nothing(tmp_path, fleet):
    expected = reported(archived(tmp_path / "one", fleet)[0])
    assert found_by(expected)
    assert reported(archived(tmp_path / "two", fleet, Local(2), compare=True)[0]) == expected


def test_results_that_keep_no_courses_can_still_be_read(tmp_path, fleet):
    results, _ = archived(tmp_path / "results", fleet)
    (place,) = (tmp_path / "results").glob("manifest-*.json")
    told = json.loads(place.read_text())
    del told["siblings"]
    place.write_text(json.dumps(told))
    found = reported(results)
    assert not found_by(found)
    (run,) = [run for run in found["runs"] if run["run"] == "bad/plain/metrics.jsonl"]
    (reason,) = [one for one in run["not_judged"] if one["detector"] == RULE]
    assert reason["skipped"] == {"no siblings": 1}
