"""What an agent asks on a command line: JSON of every answer, exit statuses, and the skill."""

import json
import time
from pathlib import Path

import orjson
from msgspec.structs import replace

import sentinel as library
from sentinel.config.file import Config, load
from sentinel.mcp_server.known import Answers
from sentinel.report.diagnosis import diagnosis
from sentinel.report.run_body import RunBody
from tests.tools.schemas import fits


def test_the_screen_is_one_object(sentinel, sick_run):
    written = sentinel(str(sick_run.parent), "--format", "json").out
    fits("path", written)
    told = json.loads(written)
    assert (told["runs"], told["severities"]) == (1, {"critical": 1})
    assert told["troubles"][0]["detector"] == "kl-blowup"


def test_a_run_has_one_form_in_every_answer(sentinel, sick_run):
    """Also the values are the same, but for what only the watch or only the replay can know."""
    sentinel("watch", "--once")
    (state,) = Path.cwd().rglob("sentinel.sqlite")
    judging = Answers(load(Path("sentinel.toml")), [Path("runs")], time.time)
    asking = Answers(Config(state_dir=state.parent), [], time.time)
    answers = {
        "replay": sentinel("replay", "runs", "--format", "json").out,
        "runs": sentinel("runs", "runs", "--format", "json").out,
        "status": sentinel("status", "--format", "json").out,
        "wait": sentinel("wait", "runs", "--format", "json").out,
        "agent-runs": orjson.dumps(judging.runs("*")),
    }
    heads = []
    for form, text in [*answers.items(), ("agent-runs", orjson.dumps(asking.runs("*")))]:
        fits(form, text)
        told = json.loads(text)
        assert told["schema"] == 1
        (run,) = told["runs"]
        assert [name for name in run if name in RunBody.__annotations__] == [*RunBody.__annotations__]
        heads.append({name: run[name] for name in RunBody.__annotations__ if "state" not in name})
    assert heads[0]["run"] == f"{sick_run.name}/metrics.jsonl"
    assert heads[0]["path"] == str(sick_run.resolve() / "metrics.jsonl")
    assert [*heads] == [heads[0]] * len(heads)
    for answer in (judging, asking):
        text = orjson.dumps(answer.incidents("*"))
        fits("agent-incidents", text)
        (incident, *_) = json.loads(text)["incidents"]
        assert (incident["run"], incident["path"]) == (heads[0]["run"], heads[0]["path"])
    status = json.loads(answers["status"])
    assert {one["path"] for one in status["incidents"] + status["decisions"]} == {heads[0]["path"]}


def test_a_page_is_an_object(sentinel):
    written = sentinel("explain", "R2", "--format", "json").out
    fits("explain", written)
    told = json.loads(written)
    assert told["name"] == "R2"
    assert told["fix"]
    assert told["markdown"].startswith("# R2")
    assert sentinel("explain", "--format", "json").status == 2


def test_status_fails_on_an_open_incident(sentinel, sick_run):
    sentinel("watch", "--once")
    assert sentinel("status").status == 0
    assert sentinel("status", "--fail-on", "critical").status == 1
    assert sentinel("status", "--fail-on", "critical", "--run", "other*").status == 0


def test_a_diagnosis_fits_on_a_page_however_much_is_wrong(sentinel, sick_run):
    (run,) = library.replay("runs", config="sentinel.toml").runs
    few = diagnosis(run)
    many = replace(run, incidents=[*run.incidents] * 40, advisories=[(["R1"], "odd")] * 40)
    page = diagnosis(many)
    assert len(few) < 40
    assert len(page) < 70
    assert page[1].startswith("state: ")
    assert "and 30 more incidents" in page
    assert sum(line.startswith("also critical: kl-blowup since step 100: ") for line in page) == 8


def test_a_cause_without_a_clue_has_no_score(sentinel, sick_run):
    (run,) = json.loads(sentinel("replay", "runs", "--format", "json").out)["runs"]
    causes = [cause for incident in run["incidents"] for cause in incident["causes"]]
    assert causes
    assert all((cause["score"] is None) == (not cause["reason"]) for cause in causes)


def test_the_skill_is_printed_or_written(sentinel, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    printed = sentinel("skill").out
    assert printed.startswith("---\nname: sentinel\ndescription: ")
    assert "sentinel wait PATH" in printed
    assert sentinel("skill", "--claude", "--codex").status == 0
    for home in (".claude", ".codex"):
        assert (tmp_path / home / "skills" / "sentinel" / "SKILL.md").read_text() == printed
