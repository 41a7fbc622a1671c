import json

import pytest

from tests.tools.schemas import fits

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


def test_a_comparison_stands_alone(tmp_path, sentinel):
    for name, lr in (("a", 0.1), ("b", 0.2)):
        rows = ({"step": s, "loss": (1 + lr) / (1 + s) if s < 50 else float("nan")} for s in range(60))
        lines = [{"config": {"lr": lr, "hf_token": f"s3cret{lr}"}}, *rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pair = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    shown = sentinel("compare", *pair)
    assert shown.status == 0
    assert shown.out.startswith("a.jsonl beside b.jsonl\nsettings that differ:\n  lr: 0.1 | 0.2\nsignals")
    assert "loss: 0.022 (0.022 to 1.1, not finite at step 50) | 0.024 (0.024 to 1.2, not" in shown.out
    assert "with one run a value, that may be chance (R6)" in shown.out
    assert "NaN" not in shown.out
    assert "s3cret" not in shown.out
    written = sentinel("compare", tmp_path, "--format", "json").out
    fits("compare", written)
    assert json.loads(written)["pair"]["differ"] == {"lr": [0.1, 0.2]}
    alone = sentinel("compare", pair[0])
    assert (alone.status, alone.out) == (2, "")
    assert "nothing to compare: of 1 runs" in alone.err


def test_of_many_seeds_the_lowest_the_middle_and_the_highest_end_are_shown(tmp_path, sentinel):
    for seed in range(9):
        lines = [{"config": {"seed": seed}}, *({"step": s, "loss": 1 + seed / 4} for s in range(60))]
        (tmp_path / f"seed{seed}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = " ".join(sentinel("replay", tmp_path, "--compare").out.split())
    assert "seed: 9 values, 9 runs" in shown
    assert "at the end seed=0: 1 median: 2 seed=8: 3" in shown
