"""Settings and console lines that are worth a look stand in the report, move causes, and tell nobody."""

import io
import json

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from sentinel.report.json import document
from sentinel.report.terminal import show

pytestmark = pytest.mark.slow  # each replays whole runs

PADDED = "Setting `pad_token_id` to `eos_token_id`:2 for open-end generation."


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """The replay of a quiet run with these settings and this console output."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(settings, printed="", tags=("loss",)):
        lines = [{"config": settings}, *({"step": i, **dict.fromkeys(tags, 1 / (1 + i))} for i in range(30))]
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (tmp_path / "train.log").write_text(printed)
        return replay([tmp_path], Config(), lambda *_: None)

    return run


def found(replay):
    (run,) = document(replay, now=0.0)["runs"]
    assert run["incidents"] == []
    return {(*check["catalogue"], *check["settings"].items()) for check in run["checks"]}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"optimizer": "Adam", "weight_decay": 0.01},
            {("O6", ("optimizer", "adam"), ("weight_decay", 0.01))},
        ),
        ({"optimizer": "AdamW", "weight_decay": 0.01}, set()),
        ({"optimizer": "Adam"}, set()),
        ({"lr": 1e-9}, {("O7", ("peak_learning_rate", 1e-9))}),
        (
            {"packing": True, "attn_implementation": "sdpa"},
            {("L4", ("packing", True), ("attention", "sdpa"))},
        ),
        ({"packing": True, "attn_implementation": "flash_attention_2"}, set()),
        ({"warmup_steps": 600, "max_steps": 1000}, {("O8", ("warmup_steps", 600), ("total_steps", 1000))}),
        ({"warmup_steps": 100, "max_steps": 1000}, set()),
        (
            {"drop_last": False, "dataset_size": 129, "batch_size": 64},
            {("DP8", ("drop_last", False), ("dataset_size", 129), ("batch_size", 64))},
        ),
        ({"drop_last": False, "dataset_size": 128, "batch_size": 64}, set()),
        ({"pad_token_id": 2, "eos_token_id": 2}, {("L3", ("padding_id", 2), ("end_id", 2))}),
        ({"pad_token_id": 0, "eos_token_id": 2}, set()),
    ],
)
def test_settings_that_are_worth_a_look(replayed, settings, expected):
    assert found(replayed(settings)) == expected


def test_a_line_that_ends_nothing_is_worth_a_look(replayed):
    one = replayed({}, f"begun\n{PADDED}\n{PADDED}\n")
    assert found(one) == {("L3",)}
    out = io.StringIO()
    show(one, out)
    assert f'worth a look  L3  it printed "{PADDED}", line 2 of train.log' in out.getvalue()


def test_a_check_shows_the_settings_that_it_rests_on(replayed):
    out = io.StringIO()
    show(replayed({"use_reentrant": False, "zero_stage": 3}), out)
    line = "worth a look  A-err-ckpt  ZeRO-3 needs reentrant gradient checkpointing"
    assert f"{line} (use_reentrant = off, zero_stage = 3)" in out.getvalue()
