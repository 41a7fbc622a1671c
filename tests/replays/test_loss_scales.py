"""Loss scales of which only the changes are logged, as DeepSpeed prints them."""

import json

import pytest

from sentinel.api import replay


@pytest.mark.parametrize(
    ("steps", "falls"),
    [
        ([100, 250, 390, 560, 700], True),
        ([1, 2, 4, 5, 7], False),  # it finds its level
        ([100, 1300, 2700, 3900, 5200], False),  # one in a thousand steps
    ],
)
def test_the_fifth_halving_of_a_scale_is_told_unless_it_finds_its_level(tmp_path, steps, falls):
    changes = {step: 65536 / 2**number for number, step in enumerate(steps, 1)}
    rows = []
    for step in range(1, 5400):
        row = {"step": step, "loss": 2 + (step * 7919 % 13) / 100}
        rows.append(row | ({"loss_scale": changes[step]} if step in changes else {}))
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay(tmp_path).to_dict()["runs"]
    told = [one["detector"] for one in run["incidents"] if one["detector"] == "loss-scale-collapse"]
    assert bool(told) is falls
