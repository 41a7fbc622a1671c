"""Two configurations over the same logs."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def logs(sentinel, tmp_path, sick_run):
    """A directory with a loss that rises, and an old configuration with a rule about it."""
    (tmp_path / "sentinel.toml").write_text(rule(5.0) + '[signals]\n"my/odd/kl" = "kl"\n')
    rows = [{"step": i, "my/metric": float(i)} for i in range(100)]
    (tmp_path / "runs" / "rising.jsonl").write_text("\n".join(json.dumps(row) for row in rows))


def rule(above):
    return f'[[rules]]\nname = "high"\ntag = "my/metric"\nabove = {above}\nfor_points = 1\n'


@pytest.mark.parametrize(
    ("above", "lines"),
    [
        (5.0, ["0 gained, 1 lost, 0 moved, 1 same"]),
        (50.0, ["moved: high in jsonl:", "0 gained, 1 lost, 1 moved, 0 same"]),
        (500.0, ["lost: high in jsonl:", "0 gained, 2 lost, 0 moved, 0 same"]),
    ],
)
def test_what_a_threshold_changes(sentinel, logs, tmp_path, above, lines):
    (tmp_path / "new.toml").write_text(rule(above) + "[detectors.kl-blowup]\nenabled = false\n")
    ran = sentinel("backtest", "runs", "--config", "new.toml")
    assert ran.status == 0
    said = [line for line in ran.out.splitlines() if "kl-blowup" not in line]
    assert len(said) == len(lines)
    assert all(line.startswith(start) for line, start in zip(said, lines, strict=True))
    assert "lost: kl-blowup" in ran.out


def test_what_people_said_stands_beside_it(sentinel, logs, tmp_path):
    sentinel("watch", "runs", "--once")
    incidents = json.loads(sentinel("status", "--format", "json").out)["incidents"]
    (high,) = [one["id"] for one in incidents if one["detector"] == "high"]
    sentinel("feedback", high, "false-alarm")
    (tmp_path / "new.toml").write_text(rule(500.0) + '[signals]\n"my/odd/kl" = "kl"\n')
    ran = sentinel("backtest", "runs", "--config", "new.toml")
    assert "step 6 (false-alarm)" in ran.out
    assert ran.out.endswith("0 gained, 1 lost, 0 moved, 1 same\n")
