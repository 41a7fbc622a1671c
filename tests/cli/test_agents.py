"""What an agent asks on a command line: JSON of every answer, exit statuses, and the skill."""

import json
from pathlib import Path

from tests.tools.schemas import fits


def test_the_screen_is_one_object(sentinel, sick_run):
    written = sentinel(str(sick_run.parent), "--format", "json").out
    fits("path", written)
    told = json.loads(written)
    assert (told["runs"], told["severities"]) == (1, {"critical": 1})
    assert told["troubles"][0]["detector"] == "kl-blowup"


def test_a_page_is_an_object(sentinel):
    told = json.loads(sentinel("explain", "R2", "--format", "json").out)
    assert told["name"] == "R2"
    assert told["fix"]
    assert told["markdown"].startswith("# R2")
    assert sentinel("explain", "--format", "json").status == 2


def test_status_fails_on_an_open_incident(sentinel, sick_run):
    sentinel("watch", "--once")
    assert sentinel("status").status == 0
    assert sentinel("status", "--fail-on", "critical").status == 1
    assert sentinel("status", "--fail-on", "critical", "--run", "other*").status == 0


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
