"""The outcome of a run: what a person or a profile says wins over its name."""

import json

import pytest
from typer.testing import CliRunner

from sentinel.cli.app import program

ROWS = 40


def _log(folder, **series):
    lines = [
        json.dumps({"step": step, **{tag: value(step) for tag, value in series.items()}})
        for step in range(ROWS)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


def _run(folder, *options):
    result = CliRunner().invoke(program(), ["runs", str(folder), "--format", "json", *options])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(result.output)["runs"]
    return run


def _falling(step):
    return 2.0 * 0.95**step


def _rising(step):
    return 0.9 - 0.8 * 0.95**step


def test_the_outcome_has_a_direction_a_split_a_unit_and_a_reason(tmp_path):
    run = _run(_log(tmp_path, train_loss=_falling, val_loss=_falling, val_mcc=_rising))
    assert run["outcome"] == {
        "tag": "val_mcc",
        "kind": "metric",
        "direction": "higher",
        "split": "held-out",
        "unit": "share",
        "why": "a metric of held-out data: its name says so",
    }
    assert run["signals"]["eval_score"] == ["val_mcc"]


def test_a_run_of_unknown_numbers_has_no_outcome(tmp_path):
    assert _run(_log(tmp_path, whatever=_falling))["outcome"] is None


@pytest.mark.parametrize(
    ("signal", "outcome"),
    [
        ("eval_error_rate", ("whatever", "lower", "[signals] names it")),
        ("ignore", ("val_loss", "lower", None)),
    ],
)
def test_the_configuration_says_what_the_outcome_is(tmp_path, signal, outcome):
    config = tmp_path / "sentinel.toml"
    config.write_text(f'paths = ["."]\n[signals]\nwhatever = "{signal}"\nval_mcc = "ignore"\n', "utf-8")
    _log(tmp_path, train_loss=_falling, val_loss=_falling, val_mcc=_rising, whatever=_rising)
    tag, direction, why = outcome
    run = _run(tmp_path, "--config", str(config))
    assert (run["outcome"]["tag"], run["outcome"]["direction"]) == (tag, direction)
    assert why is None or why in run["outcome"]["why"]


def test_details_name_the_outcome(tmp_path):
    _log(tmp_path, train_loss=_falling, val_mcc=_rising)
    result = CliRunner().invoke(program(), ["runs", str(tmp_path), "--details"])
    assert "outcome: val_mcc, higher is better, held-out, a share; a metric of held-out data" in result.output


def test_a_loss_beside_a_reward_that_another_clock_counts_is_an_agents(tmp_path):
    lists = {
        "training_returns": [_rising(step) for step in range(ROWS)],
        "losses": [[100 * step, 0.1 + step / 5] for step in range(ROWS // 2)],
    }
    (tmp_path / "training_log.json").write_text(json.dumps(lists), "utf-8")
    assert _run(tmp_path)["signals"] == {"reward": ["training_returns"], "value_loss": ["losses"]}
    del lists["training_returns"]
    (tmp_path / "training_log.json").write_text(json.dumps(lists), "utf-8")
    assert _run(tmp_path)["signals"] == {"loss": ["losses"]}


def test_a_reward_beside_the_rating_of_a_player_is_none_of_its_own(tmp_path):
    run = _run(_log(tmp_path, avg_reward=_rising, learner_rating=lambda step: 2000.0 + step))
    assert run["outcome"] is None
    assert "reward" not in run["signals"]


def test_losses_beside_wins_are_games(tmp_path):
    run = _run(_log(tmp_path, wins=lambda step: 10.0 + step % 3, losses=lambda step: 9.0 + step % 5))
    assert run["outcome"] is None
    assert not run["signals"].keys() & {"loss", "policy_loss"}
    alone = tmp_path / "alone"
    alone.mkdir()
    assert _run(_log(alone, losses=_falling))["signals"] == {"loss": ["losses"]}
    assert _run(_log(alone, wins=_rising, loss=_falling))["signals"] == {"loss": ["loss"]}


@pytest.mark.parametrize(
    ("beside", "signal"),
    [("rewards.csv", "value_loss"), ("CumulativeReward.csv", "value_loss"), ("scores.csv", "loss")],
)
def test_a_loss_in_a_file_beside_one_of_rewards_is_an_agents(tmp_path, beside, signal):
    rows = "".join(f"{step},{_falling(step)}\n" for step in range(ROWS))
    (tmp_path / "loss.csv").write_text(f"episode,loss\n{rows}", "utf-8")
    (tmp_path / beside).write_text("written by the same training", "utf-8")
    assert _run(tmp_path)["signals"] == {signal: ["loss"]}
