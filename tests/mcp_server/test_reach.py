"""An agent reaches the runs that it was given, and no others by any tool."""

import json
from contextlib import suppress
from datetime import timedelta

import pytest

pytest.importorskip("mcp", reason="agents need the extra `mcp`")

from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.config.file import Config, load
from sentinel.mcp_server.known import Answers
from sentinel.mcp_server.reach import is_given
from sentinel.sources.discovery import locations_of
from sentinel.storage.states import state_of_config
from sentinel.storage.store import Store

pytestmark = pytest.mark.slow  # they judge whole runs

DAY = timedelta(days=1).total_seconds()


@pytest.fixture
def two(sentinel, tmp_path):
    """Two directories with a sick run each, which one watch has recorded."""
    for name in ("mine", "other"):
        place = tmp_path / name / "sick"
        place.mkdir(parents=True)
        rows = [{"step": i, "kl": 0.01 if i < 60 else 50.0 + i} for i in range(120)]
        (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sentinel.toml").write_text('paths = ["mine", "other"]\n')
    assert sentinel("watch", "--once").status == 0
    return tmp_path


def answers(two, *given):
    config = load(two / "sentinel.toml")
    config = config.model_copy(update={"state_dir": state_of_config(two / "sentinel.toml")})
    return Answers(config, locations_of(str(two / place) for place in given), SystemClock().now)


def silences(two):
    with Store(state_of_config(two / "sentinel.toml"), read_only=True) as store:
        return store.silences(0.0)


@pytest.mark.parametrize("run", ["*", "sick", "*sick*", "other/*", "/*", "mine/../other/*"])
def test_no_silence_covers_a_run_elsewhere(two, run):
    agent = answers(two, "mine")
    with suppress(SentinelError):
        agent.silence(run, "1h", "told to")
    for silence in silences(two):
        assert silence.covers(str(two / "mine/sick/metrics.jsonl"))
        assert not silence.covers(str(two / "other/sick/metrics.jsonl"), "other/sick/metrics.jsonl")


def test_an_incident_elsewhere_is_not_acknowledged(two):
    agent = answers(two, "mine")
    with Store(state_of_config(two / "sentinel.toml"), read_only=True) as store:
        ids = {store.incident(one["id"]).run: one["id"] for one in answers(two).incidents("*")["incidents"]}
    for run, incident in ids.items():
        if "/other/" in run:
            with pytest.raises(SentinelError, match="of a run that you were not given"):
                agent.acknowledge(incident)
        else:
            agent.acknowledge(incident)
    (silence,) = silences(two)
    assert "/mine/" in silence.run
    assert silence.until - silence.created_at == DAY


def test_what_reads_is_below_the_given_paths(two):
    agent = answers(two, "mine")
    assert [run["path"] for run in agent.runs("*")["runs"]] == [str(two / "mine/sick/metrics.jsonl")]
    assert {incident["run"] for incident in agent.incidents("*")["incidents"]} == {
        "mine/sick/metrics.jsonl"[5:]
    }
    reads = (agent.runs, agent.incidents, agent.replayed, agent.siblings, agent.locations_of)
    for read in (*reads, agent.settings, agent.diagnosis):
        with pytest.raises(SentinelError):
            read("other/*")


def test_a_pattern_is_bounded(two):
    for agent in (answers(two), answers(two, "mine")):
        for ask in (agent.runs, agent.incidents, agent.replayed, agent.siblings):
            with pytest.raises(SentinelError, match="a pattern may have 12,288 characters"):
                ask("[" * 16_000)
        with pytest.raises(SentinelError, match="a pattern may have 12,288 characters"):
            agent.silence("[" * 16_000, "1h", "told to")


def test_a_path_is_given_by_a_place_above_it(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for given in ("a", "link", "*", ""):
        assert is_given(str(tmp_path / "a/run"), locations_of([str(tmp_path / given)]))
    for given in ("b", "a/run/inner", "a/ru"):
        assert not is_given(str(tmp_path / "a/run"), locations_of([str(tmp_path / given)]))
    assert is_given("wandb://team/project/x1", locations_of(["wandb://team/project"]))
    assert not is_given("wandb://team/project-2/x1", locations_of(["wandb://team/project"]))


def test_without_a_state_nothing_is_silenced(tmp_path):
    with pytest.raises(SentinelError):
        Answers(Config(state_dir=tmp_path), locations_of([str(tmp_path)]), SystemClock().now).silence(
            "*", "1h", "x"
        )
