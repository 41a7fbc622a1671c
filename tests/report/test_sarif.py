"""SARIF has the form of the standard, and text from a run is text there."""

import json
from pathlib import Path

import pytest

from sentinel.detectors.discovery import all_detectors

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture
def written(sentinel):
    """The one run of a SARIF log about these paths. Its form is that of the standard's own schema."""

    from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

    def write(*paths):
        text = sentinel("replay", *paths, "--format", "sarif").out
        Sarif.model_validate_json(text)
        (run,) = json.loads(text)["runs"]
        return run

    return write


@pytest.mark.long  # replays whole runs
def test_an_incident_is_a_result_at_its_log(written, tmp_path):
    log = tmp_path / "a run" / "metrics.jsonl"
    log.parent.mkdir()
    rows = [{"step": i, "loss": 1.5 if i < 50 else "NaN", "grad_norm": 1.0} for i in range(99)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = written("a run", SAMPLES / "kl-blowup")
    results = {one["ruleId"]: one for one in run["results"]}
    own = results["non-finite-metric"]
    elsewhere = results["kl-blowup"]
    assert own["level"] == elsewhere["level"] == "error"
    assert own["properties"]["onset_step"] == 50
    assert "It began at step 62 and was found at step 70. R1: " in elsewhere["message"]["text"]
    rules = run["tool"]["driver"]["rules"]
    assert rules[elsewhere["ruleIndex"]]["id"] == "kl-blowup"
    assert {one["id"] for one in rules} <= all_detectors().keys()
    assert all("## What it catches" in one["help"]["markdown"] for one in rules)
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in (own, elsewhere)]
    assert places == ["a%20run/metrics.jsonl", (SAMPLES / "kl-blowup").as_uri()]
    assert own["partialFingerprints"] != elsewhere["partialFingerprints"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"].startswith("2 logs were read; ")


def test_a_printed_error_stands_at_its_line(written, tmp_path):
    rows = [{"step": i, "loss": 1.5 * 0.99**i} for i in range(60)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 3, in <module>']
    (tmp_path / "train.log").write_text("\n".join([*lines, "    step()", "ValueError: [x](http://evil)", ""]))
    (error,) = (one for one in written(tmp_path)["results"] if one["ruleId"] == "console-error")
    place = error["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "train.log"}, "region": {"startLine": 5}}
    assert r"\[x\](http://evil)" in error["message"]["text"]


def test_what_cannot_be_read_is_told(written, tmp_path):
    (tmp_path / "ok.jsonl").write_text("".join(f'{{"step": {i}, "loss": 1.5}}\n' for i in range(9)))
    (tmp_path / "run-x.wandb").write_text("x" * 500)
    (invocation,) = written(tmp_path)["invocations"]
    assert not invocation["executionSuccessful"]
    coverage, *troubles = invocation["toolExecutionNotifications"]
    assert coverage["message"]["text"].startswith("1 log was read, 1 could not be read; ")
    assert any("no W&B log" in one["message"]["text"] for one in troubles)
