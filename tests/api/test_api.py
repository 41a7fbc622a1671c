"""`import sentinel`: a replay as typed data."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import sentinel
from sentinel.detectors.severity import Severity
from tests.tools.schemas import fits

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture(scope="module")
def report():
    return sentinel.replay(SAMPLES / "kl-blowup", SAMPLES / "healthy-rl")


@pytest.mark.slow
def test_the_import_brings_nothing_else():
    code = "import sys; known = {*sys.modules}; import sentinel; print(*sorted({*sys.modules} - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in done.stdout.split()} <= {"sentinel", "importlib", "warnings"}


def test_the_names_of_the_module_are_those_of_the_api():
    assert dir(sentinel) == sorted([*sentinel.__all__, "__version__"])
    assert all(getattr(sentinel, name) for name in dir(sentinel))
    assert sentinel.Severity is Severity


def test_a_single_name_may_be_a_string(tmp_path):
    for name, loss in (("sick", "NaN"), ("well", "1.0")):
        rows = [f'{{"step": {step}, "loss": {loss if step > 20 else 1.0}}}\n' for step in range(50)]
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text("".join(rows))
    judged = sentinel.replay(tmp_path, run="sick", only="critical")
    assert [run.name for run in judged.runs] == ["sick/metrics.jsonl"]
    assert judged.points("sick/").height == 50


@pytest.mark.slow  # long logs
def test_a_report_is_plain_data(report):
    assert report.verdict.startswith("1 incident (1 critical) in 1 of 2 runs")
    assert report.coverage.startswith("2 logs were read; ")
    sick, healthy = report.runs
    (incident,) = report.incidents
    assert sick.incidents == [incident]
    assert (incident.detector, incident.severity, incident.fired_step) == ("kl-blowup", Severity.CRITICAL, 70)
    assert incident.causes[0].entry.id == "R1"
    assert healthy.incidents == []
    assert not report.is_healthy()
    assert report.verdict in repr(report)


@pytest.mark.slow
def test_every_layout_is_that_of_the_command(report):
    assert "critical kl-blowup  onset at step 62, fired at 70" in str(report)
    assert report.to_markdown().startswith("**1 incident (1 critical)")
    fits("replay", json.dumps(report.to_dict()))


@pytest.mark.slow
def test_a_notebook_shows_the_page_in_a_sandbox(report):
    shown = report._repr_html_()
    assert shown.startswith('<iframe title="Report of sentinel" sandbox="allow-scripts" srcdoc="&lt;!doctype')
    assert shown.count("<") == shown.count(">") == 2


@pytest.mark.slow
def test_points_are_those_of_the_log(report):
    points = report.points("kl-*")
    kl = points.filter(pl.col("tag") == "train/kl")
    assert len(points) == report.runs[0].points
    assert kl["signal"].unique().to_list() == ["kl"]
    assert kl["step"].is_sorted()
    assert kl["time"].dtype == pl.Datetime("us", "UTC")
    assert kl["value"].max() == pytest.approx(9.254, abs=1e-3)
    assert report.points("nothing").is_empty()


@pytest.mark.slow
def test_a_log_without_times_has_none(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "odd": 2.0}\n{"step": 2, "odd": "NaN"}\n')
    points = sentinel.replay(tmp_path).points()
    assert points["time"].to_list() == [None, None]
    assert points["signal"].to_list() == [None, None]
    assert points["value"].is_nan().to_list() == [False, True]


@pytest.mark.slow
def test_the_options_are_those_of_the_command(tmp_path):
    (tmp_path / "sentinel.toml").write_text('[signals]\n"my/odd" = "kl"\n')
    rows = [{"step": i, "my/odd": 0.01 if i < 50 else 1.0} for i in range(99)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sentinel.replay(tmp_path).is_healthy()
    config = tmp_path / "sentinel.toml"
    (found,) = sentinel.replay(tmp_path, config=config).incidents
    assert found.detector == "kl-blowup"
    assert sentinel.replay(tmp_path, config=config, since="90").incidents == []
    assert sentinel.replay(tmp_path, config=config).is_healthy(below="critical")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        (["missing"], {}, "missing: no such file or directory"),
        (["ftp://host/run"], {}, "ftp:// is unknown"),
        ([SAMPLES / "kl-blowup"], {"only": ["kl-blow"]}, "did you mean 'kl-blowup'"),
        ([SAMPLES / "kl-blowup"], {"config": "missing.toml"}, "missing.toml"),
        ([SAMPLES / "kl-blowup"], {"baseline": ["missing"]}, "missing: no such file or directory"),
        ([SAMPLES / "kl-blowup"], {"sort": "worse"}, "did you mean 'worst'"),
        ([], {}, "name a log"),
    ],
    ids=["path", "address", "detector", "config", "baseline", "order", "nothing"],
)
def test_every_mistake_is_one_kind_of_error(arguments, options, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sentinel.SentinelError, match=problem):
        sentinel.replay(*arguments, **options)


@pytest.mark.long  # many runs
def test_a_report_compares_with_a_baseline():
    good = sentinel.replay(SAMPLES / "kl-blowup", baseline=[SAMPLES / "healthy-rl"])
    ((title, statements),) = good.story.comparisons
    assert title == "kl-blowup beside the baseline"
    assert statements


@pytest.mark.long
def test_a_run_that_cannot_be_read_is_not_healthy(tmp_path):
    (tmp_path / "good.jsonl").write_text("".join(f'{{"step": {i}, "loss": {9 - i}}}\n' for i in range(9)))
    assert sentinel.replay(tmp_path).is_healthy()
    (tmp_path / "run-x.wandb").write_text("x" * 500)
    report = sentinel.replay(tmp_path)
    assert report.coverage.startswith("1 log was read, 1 could not be read; ")
    assert not report.is_healthy()


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match="no attribute 'reply'"):
        sentinel.reply  # noqa: B018
