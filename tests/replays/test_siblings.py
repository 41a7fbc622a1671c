import json

import numpy as np
import pytest

STEPS = range(1, 201)


@pytest.fixture
def tree(tmp_path):
    """Five runs of a program, of which the last is worse from half on, and one of another program."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        place = tmp_path / "runs" / f"run-{seed}"
        place.mkdir(parents=True)
        level = 0.02 * random.normal()
        rows = [{"config": {"learning_rate": 0.1, "seed": seed, "max_steps": 200}}]
        for step in STEPS:
            loss = (
                1 + 2 * np.exp(-step / 40) + level + 0.05 * random.normal() + 0.3 * (seed == 5 and step > 100)
            )
            rows.append({"step": step, "train/loss": loss})
        (place / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "runs"


def judged(sentinel, *words):
    return {run["run"]: run for run in json.loads(sentinel("replay", *words, "--format", "json").out)["runs"]}


@pytest.mark.long
def test_a_run_is_held_against_the_others_of_the_tree(sentinel, tree):
    runs = judged(sentinel, str(tree))
    found = {name: [one["detector"] for one in run["incidents"]] for name, run in runs.items()}
    assert found.pop("run-5/metrics.jsonl") == ["worse-than-siblings"]
    assert not any(found.values())
    (incident,) = runs["run-5/metrics.jsonl"]["incidents"]
    assert incident["severity"] == "info"
    assert 90 <= incident["onset_step"] <= 132
    assert incident["evidence"]["siblings"] == 5


@pytest.mark.long
def test_a_run_without_siblings_says_so(sentinel, tree):
    (run,) = judged(sentinel, str(tree / "run-5")).values()
    (reason,) = [one for one in run["not_judged"] if one["detector"] == "worse-than-siblings"]
    assert reason == {"detector": "worse-than-siblings", "missing": [], "held_back": {"no siblings": 1}}


@pytest.mark.long
def test_a_baseline_of_three_runs_stands_for_the_siblings(sentinel, tree):
    (run,) = judged(sentinel, str(tree / "run-5"), *(f"--baseline={tree}/run-{n}" for n in range(5))).values()
    (incident,) = run["incidents"]
    assert (incident["detector"], incident["evidence"]["siblings"]) == ("worse-than-siblings", 5)
