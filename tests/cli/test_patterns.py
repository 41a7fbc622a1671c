"""What a pattern for runs matches is the same for silences, sinks and options, and one is told of it."""

import orjson
import pytest

PATTERNS = ["runs/s*", "sick", "./runs/sick", "runs/"]


@pytest.fixture
def sick(sick_run):
    """Adds a sink that asks for runs as the docs write them."""

    def route(*patterns):
        config = sick_run.parents[1] / "sentinel.toml"
        config.write_text(
            f'paths = ["runs"]\nsignals = {{"my/odd/kl" = "kl"}}\n'
            f'[[sinks]]\ntype = "command"\ncommand = ["true"]\nruns = {orjson.dumps(patterns).decode()}\n'
        )
        return sick_run

    return route


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_silence_covers_what_it_says(sentinel, sick, pattern):
    run = sick("*")
    added = sentinel("silence", "add", pattern, "--reason", "known")
    assert "no run that was watched so far matches" in added.err
    assert sentinel("watch", "--once").status == 0
    (decision,) = {
        row["reason"] for row in orjson.loads(sentinel("status", "--format", "json").out)["decisions"]
    }
    assert decision == "silenced"
    again = sentinel("silence", "add", pattern, "--reason", "known")
    assert f"it matches 1 run ({run}/metrics.jsonl) now" in again.out
    assert not again.err


@pytest.mark.parametrize("where", ["runs", "runs/sick", "runs/sick/metrics.jsonl", "."])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_run_takes_the_same_route_wherever_the_search_began(sentinel, sick, pattern, where):
    sick(pattern)
    (run,) = orjson.loads(sentinel("replay", where, "--format", "json").out)["runs"]
    reason = run["incidents"][0]["notifications"][0]["reason"]
    assert reason == "first-notification"
    assert sentinel("replay", where, "--run", pattern).status == 0


def test_the_configuration_says_what_a_sink_asks_for(sentinel, sick):
    run = sick("runs/s*", "runs/none-*")
    checked = sentinel("check-config").out
    assert f"runs/s* (`runs` of sink command): matches 1 run ({run}/metrics.jsonl)" in checked
    assert "runs/none-* (`runs` of sink command): matches none of the 1 run here" in checked
