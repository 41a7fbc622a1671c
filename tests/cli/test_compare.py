import json

import pytest

pytestmark = pytest.mark.long


def test_replay_compares_runs(tmp_path, sentinel):
    for lr in (0.1, 0.2):
        lines = [{"config": {"lr": lr}}, *({"step": s, "loss": 1 + 1 / (1 + s)} for s in range(60))]
        (tmp_path / f"lr{lr}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = sentinel("replay", tmp_path, "--compare", "--format", "json")
    (comparison,) = json.loads(done.out)["comparisons"]
    assert comparison["arms"] == {"0.1": ["lr0.1.jsonl"], "0.2": ["lr0.2.jsonl"]}
    shown = sentinel("replay", tmp_path, "--compare").out
    assert "lr: 0.1 (1 run), 0.2 (1 run)" in shown
    assert "with one run a value, that may be chance (R6)" in " ".join(shown.split())


def test_of_many_seeds_the_lowest_the_middle_and_the_highest_end_are_shown(tmp_path, sentinel):
    for seed in range(9):
        lines = [{"config": {"seed": seed}}, *({"step": s, "loss": 1 + seed / 4} for s in range(60))]
        (tmp_path / f"seed{seed}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = " ".join(sentinel("replay", tmp_path, "--compare").out.split())
    assert "seed: 9 values, 9 runs" in shown
    assert "at the end seed=0: 1 median: 2 seed=8: 3" in shown
