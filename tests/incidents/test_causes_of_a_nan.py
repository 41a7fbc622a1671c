"""The first cause of a loss that is NaN is what its parts say of the row in which it broke."""

import json
import math
import random

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay

BREAKS = 60
ENTRY = "N-loss-part-overflow"


def one_leaps(step):
    return {"train/box_loss": 0.1 if step < BREAKS else 4e9, "train/dfl_loss": 1.0}


def none_leaps(_):
    return {"train/box_loss": 0.1, "train/dfl_loss": 1.0}


@pytest.mark.parametrize(("parts", "is_first"), [(one_leaps, True), (none_leaps, False)])
def test_a_part_that_leapt_in_the_row_of_the_nan_is_its_first_cause(tmp_path, parts, is_first):
    dice = random.Random(1)
    rows = [
        {
            "step": step,
            "loss": 2.0 * 0.99**step * dice.uniform(0.98, 1.02) if step < BREAKS else math.nan,
            **{tag: value * dice.uniform(0.95, 1.05) for tag, value in parts(step).items()},
        }
        for step in range(BREAKS + 3)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay([tmp_path], Config(), lambda *_: None).runs
    (nan,) = [one for one in run.incidents.values() if one.detector == "non-finite-metric"]
    assert (nan.causes[0].id == ENTRY) is is_first
