"""What an agent may ask of runs, over the protocol's own client."""

import json

import anyio
import pytest

import sentinel.replays.kept as kept_module
from sentinel.config.file import Config

pytest.importorskip("mcp", reason="agents need `pip install '.[mcp]'`")
from mcp import Client

from sentinel.mcp_server.known import Answers
from sentinel.mcp_server.server import server
from tests.mcp_server.test_server import NOW, Agent, asked, data

__all__ = ["asked"]

pytestmark = pytest.mark.long  # they start servers and judge whole runs


@pytest.fixture
def runs(tmp_path):
    """Two runs, of which one becomes NaN; they differ in the learning rate."""
    for name, lr in (("sick", 3.0), ("well", 0.1)):
        directory = tmp_path / "runs" / name
        directory.mkdir(parents=True)
        rows = [
            {"step": s, "loss": 2 / (1 + s / 50) if name == "well" or s < 100 else float("nan")}
            for s in range(200)
        ]
        lines = [{"config": {"lr": lr, "hf_token": "secret"}}, *rows, {"step": 200, "loss": 0.4, "done": 1}]
        (directory / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        (directory / "train.log").write_text("begin\nuse HF_TOKEN=abcdefgh\nend\n")
    return tmp_path / "runs"


def test_an_agent_looks_at_a_run_from_all_sides(asked, runs):
    async def talk(agent):
        (incident, *_) = data(await agent.asks("list_incidents", min_severity="critical"))["incidents"]
        assert (incident["run"], incident["detector"]) == ("sick/metrics.jsonl", "non-finite-metric")
        assert data(await agent.asks("list_incidents", limit=1))["left_off"] >= 0
        assert "neither a duration" in await agent.is_refused("list_incidents", since="soon")
        assert "severity" in await agent.is_refused("list_incidents", min_severity="bad")
        page = "\n".join(data(await agent.asks("diagnose", run="sick"))["page"])
        assert "Loss is NaN" in page
        assert "state: " in page
        assert page.count("\n") < 60
        (curve,) = data(await agent.asks("points", run="well", signal="loss", limit=20))["curves"]
        assert len(curve["step_value"]) <= 20
        assert curve["step_value"][0] == [0, 2.0]
        assert curve["not_finite_at"] is None
        settings = data(await agent.asks("settings", run="sick"))["settings"]
        assert (settings["lr"], settings["hf_token"]) == (3, "***")
        (lines,) = data(await agent.asks("printed", run="sick", lines=2))["printed"].values()
        assert lines == ["use HF_TOKEN=***", "end"]
        pair = data(await agent.asks("compare", run="sick", other="well"))
        assert pair["differ"] == {"lr": [3, 0.1]}
        assert pair["signals"]["loss"][1]["first"] == 2

    asked(Answers(Config(), [runs], lambda: NOW), talk)


def test_only_runs_whose_files_changed_are_judged_anew(asked, runs, monkeypatch):
    judged = []
    whole = kept_module.judged

    def count(pipeline, named, **options):
        named = [*named]
        judged.extend(name for _, name in named)
        return whole(pipeline, named, **options)

    monkeypatch.setattr(kept_module, "judged", count)

    async def talk(agent):
        await agent.asks("list_runs")
        await agent.asks("list_incidents")
        assert sorted(judged) == ["sick/metrics.jsonl", "well/metrics.jsonl"]
        judged.clear()
        with (runs / "well" / "metrics.jsonl").open("a") as file:
            file.write('{"step": 201, "loss": NaN}\n{"step": 202, "loss": NaN}\n')
        found = data(await agent.asks("list_incidents", run="well"))["incidents"]
        assert judged == ["well/metrics.jsonl"]
        assert [incident["detector"] for incident in found] == ["non-finite-metric"]

    asked(Answers(Config(), [runs], lambda: NOW), talk)


def test_an_agent_waits_and_is_told_of_progress(runs):
    told = []

    async def progress(seconds, total, message):
        told.append((total, message))

    async def talk():
        async with Client(server(Answers(Config(), [runs], lambda: NOW), tuple)) as client:
            answer = await client.call_tool(
                "wait", {"run": "*", "until": "critical", "timeout": "1h"}, progress_callback=progress
            )
            ended = data(answer.content[0].text)
            assert (ended["outcome"], ended["incident"]["detector"]) == ("incident", "non-finite-metric")
            assert ended["run"]["run"] == "sick/metrics.jsonl"
            assert ended["next_steps"]
            asks = Agent(client).asks
            well = data(await asks("wait", run="well", until="end", timeout="1h"))
            assert (well["outcome"], well["exit_status"]) == ("ended", 0)
            assert [run["run"] for run in well["runs"]] == ["well/metrics.jsonl"]
            refused = await Agent(client).is_refused("wait", until="soon")
            assert "goal" in refused

    anyio.run(talk)
    assert told
    assert all(total == 3600 for total, _ in told)
