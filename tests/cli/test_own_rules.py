"""Rules of one's own, from the configuration to what is told."""

import json

import pytest

from sentinel.config.rules import Rule
from sentinel.detectors.signals import Signal, tag_pattern

pytestmark = pytest.mark.slow  # each replays whole runs

CASES = {
    'signal = "loss"\nabove = 5.0': [1.0] * 20 + [6.0] * 5 + [1.0] * 20,
    'signal = "loss"\nbelow = 0.5': [1.0] * 20 + [0.1] * 5 + [1.0] * 20,
    'tag = "l*"\noutside = [0.5, 5.0]': [1.0] * 20 + [0.1, 6.0, 0.1, 6.0, 6.0] + [1.0] * 20,
    'signal = "loss"\nrises_by = 2.0': [3.0] * 10 + [1.0] * 10 + [3.5] * 5 + [1.0] * 20,
    'signal = "loss"\nfalls_by = 2.0': [1.0] * 10 + [3.0] * 10 + [0.5] * 5 + [3.0] * 20,
}
"""Each is broken from step 20 to step 24."""


@pytest.fixture
def replayed(sentinel, tmp_path):
    def run(rule, values, **others):
        (tmp_path / "sentinel.toml").write_text(f'[[rules]]\nname = "My rule"\n{rule}\n')
        records = [{"step": i, "loss": value, **others} for i, value in enumerate(values)]
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        (found,) = json.loads(sentinel("replay", "metrics.jsonl", "--format", "json").out)["runs"]
        return found, [one for one in found["incidents"] if one["detector"] == "my-rule"]

    return run


@pytest.mark.parametrize(
    "rule", CASES, ids=lambda rule: rule.split()[-1] if "out" in rule else rule.split()[3]
)
def test_a_rule_lives_like_any_detector(replayed, rule):
    _, (found,) = replayed(rule, CASES[rule])
    life = found["onset_step"], found["fired_step"], found["resolved_step"]
    assert life == (20, 22, 34)
    assert (found["state"], found["severity"], found["maturity"]) == ("resolved", "warning", "stable")
    assert found["summary"].startswith("loss ")
    assert [one["event"] for one in found["notifications"]] == ["firing", "resolved"]


def test_it_says_what_it_is_told_to_say(replayed):
    rule = (
        'signal = "loss"\nabove = 5.0\nfor_points = 1\nseverity = "critical"\nmessage = "{tag} {value:.1f}!"'
    )
    _, (found,) = replayed(rule, [1.0, 7.25])
    assert (found["summary"], found["severity"], found["fired_step"]) == ("loss 7.2!", "critical", 1)


@pytest.mark.long
def test_a_lowest_value_is_remembered_for_a_whole_run(replayed):
    _, (found,) = replayed('signal = "loss"\nrises_by = 2.0', [1.0] + [2.5] * 3000 + [3.5] * 3)
    assert (found["onset_step"], found["summary"]) == (3001, "loss rose from 1 to 3.5, by more than 2")


def test_a_tag_that_nobody_logs_is_said(replayed):
    run, incidents = replayed('tag = "my/metric"\nabove = 5.0', [1.0] * 10)
    assert not incidents
    assert {"detector": "my-rule", "missing": ["tag:my/metric"], "skipped": {}} in run["not_judged"]


@pytest.mark.long
def test_a_tag_keeps_its_other_meanings(replayed):
    run, (found,) = replayed('tag = "loss"\nabove = 5.0', [6.0] * 10)
    assert run["signals"] == {"loss": ["loss"], "tag:loss": ["loss"]}
    assert found["signal"] == "tag:loss"


def evaluated(seconds, *, without=range(0)):
    """A row each ten seconds, and an evaluation each hundred, except at some steps."""
    for step in range(seconds // 10):
        evaluation = {"eval_loss": 2.0} if step % 10 == 0 and step not in without else {}
        yield {"step": step, "time": 1.7e9 + 10 * step, "loss": 1.0, **evaluation}


@pytest.fixture
def missing(sentinel, tmp_path):
    def run(rows, message=""):
        keys = f'name = "no eval"\ntag = "eval*"\nmissing_for = "30m"\nmessage = "{message}"'
        (tmp_path / "sentinel.toml").write_text(f"[[rules]]\n{keys}\n")
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (found,) = json.loads(sentinel("replay", "metrics.jsonl", "--format", "json").out)["runs"]
        return found, [one for one in found["incidents"] if one["detector"] == "no-eval"]

    return run


@pytest.mark.long
def test_a_tag_that_is_missing_while_the_run_goes_on(missing):
    _, (found,) = missing(evaluated(9000, without=range(301, 700)))
    assert (found["onset_step"], found["fired_step"], found["resolved_step"]) == (300, 481, 700)
    assert (found["tag"], found["state"], found["severity"]) == ("eval_loss", "resolved", "warning")
    assert found["summary"] == ("eval_loss was last logged at step 300, 30 min 10 s ago, and the run goes on")
    _, (found,) = missing(evaluated(9000, without=range(301, 999)), "{tag}: {missing_seconds:duration}!")
    assert (found["summary"], found["state"]) == ("eval_loss: 30 min 10 s!", "firing")


@pytest.mark.long
def test_a_run_that_pauses_as_a_whole_misses_nothing(missing):
    rows = [*evaluated(9000)]
    for row in rows[405:]:
        row["time"] += 86400
    assert missing(rows)[1] == []


def test_a_replay_says_why_it_cannot_know_what_is_missing(missing):
    run, incidents = missing({k: v for k, v in row.items() if k != "time"} for row in evaluated(9000))
    assert not incidents
    assert {"detector": "no-eval", "missing": ["times"], "skipped": {}} in run["not_judged"]


@pytest.mark.long
def test_hovering_is_one_incident(replayed):
    values = [5.0 + (0.1 if (i * 7919) % 97 < 48 else -0.1) for i in range(20_000)]
    _, incidents = replayed('signal = "loss"\nabove = 5.0\nfor_points = 1', values)
    assert len(incidents) == 1


def test_rules_are_known_to_other_commands(sentinel, tmp_path):
    (tmp_path / "sentinel.toml").write_text('[[rules]]\nname = "My rule"\nsignal = "loss"\nabove = 1.0\n')
    assert sentinel("check-config").out == "sentinel.toml: no mistakes; sinks: terminal; rules: my-rule\n"
    assert sentinel("silence", "add", "*", "--detector", "my-rule", "--reason", "x").status == 0


def test_a_rule_has_a_page(sentinel, tmp_path):
    text = '[[rules]]\nname = "My rule"\nsignal = "loss"\nabove = 1.5\nmessage = "{tag} is high"\n'
    file = tmp_path / "mine.toml"
    file.write_text(f'poll = true\n{text}[[rules]]\nname = "gone"\ntag = "x"\nmissing_for = "2h"\n')
    for name in ("My rule", "my-rule"):
        page = " ".join(sentinel("explain", name, "--config", "mine.toml").out.split())
        assert page.startswith(f"# my-rule A rule of your own, at {file}:3: - ")
        assert "- `above = 1.5`: a value above this is wrong -" in page
        assert "when 3 points in a row are wrong, and is over when 10 points" in page
        assert page.endswith("- warning: {tag} is high")
    gone = " ".join(sentinel("explain", "gone", "--config", "mine.toml").out.split())
    assert '- `missing_for = "2h"`: ' in gone
    assert "over when the tag is logged" in gone
    assert f"- **gone**: {file}:8 " in " ".join(sentinel("explain", "--config", "mine.toml").out.split())
    assert "(did you mean 'my-rule'?)" in sentinel("explain", "my-rul", "--config", "mine.toml").err


def test_the_signal_of_a_rule_is_no_name_for_a_tag():
    own = Signal("tag:my/*")
    assert own not in set(Signal)
    assert own == Signal("tag:my/*")
    assert (tag_pattern(own), tag_pattern(Signal.LOSS)) == ("my/*", None)
    with pytest.raises(ValueError, match="'los' is not a valid Signal"):
        Signal("los")


def test_the_keys_of_a_rule_are_told_in_the_schema():
    for field in Rule.model_fields.values():
        assert field.description
