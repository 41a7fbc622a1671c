"""The report that a person reads."""

import io
import json
import re

import pytest

from sentinel.config.file import Config
from sentinel.detectors.discovery import all_detectors
from sentinel.replays.replaying import replay
from sentinel.report.terminal import show


def written(path, lines):
    path.mkdir(parents=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def report(tmp_path, monkeypatch):
    """What is shown of all that lies in the test's directory."""

    monkeypatch.delenv("COLUMNS", raising=False)

    def shown(details=False):
        out = io.StringIO()
        show(replay([tmp_path], Config(), lambda *_: None), out, details)
        return out.getvalue().splitlines()

    return shown


@pytest.mark.slow
def test_a_quiet_run_says_how_much_of_it_could_be_judged(tmp_path, report):
    written(tmp_path / "run", [{"step": i, "kl": 0.01 + i % 3 / 1000} for i in range(50)])
    quiet, lacking, skipped, coverage, verdict = report(details=True)
    begin = "nothing found  run/metrics.jsonl  jsonl, steps 0 to 49, 50 points"
    able, fitting = re.fullmatch(
        rf"{begin}; (\d+) of (\d+) detectors that fit could judge it", quiet
    ).groups()
    assert 0 < int(able) < int(fitting) < len(all_detectors())
    assert "no clipped_completion_ratio (clipped-completion-ratio)" in lacking
    assert skipped == "not judged, because of no siblings (worse-than-siblings)"
    assert verdict == "1 run, 50 points: nothing found"
    assert coverage == f"1 log was read; {able} detectors could judge it"


@pytest.mark.slow
def test_several_runs_say_where_a_signal_is_missing(tmp_path, report):
    written(tmp_path / "a", [{"step": i, "kl": 0.01} for i in range(50)])
    written(tmp_path / "b", [{"step": i, "kl": 0.01, "entropy": 0.5} for i in range(50)])
    (lacking,) = (line for line in report(details=True) if line.startswith("not judged: "))
    assert "no entropy in 1 of 2 runs (entropy-collapse" in lacking
    assert "kl-blowup" not in lacking


@pytest.mark.slow
def test_a_detector_that_judged_no_point_says_why(tmp_path, report):
    for run, points in {"short": 15, "long": 50}.items():
        written(tmp_path / run, [{"step": i, "loss": 2.0 / (1 + i)} for i in range(points)])
    (skipped,) = (line for line in report(details=True) if line.startswith("not judged, because of "))
    few = skipped.partition("too few points in 1 of 2 runs (")[2].partition(")")[0]
    assert "loss-plateau" in few
    assert "non-finite-metric" not in skipped


@pytest.mark.slow
def test_an_incident_names_what_it_saw_and_what_to_try(tmp_path, report):
    written(tmp_path / "run", [{"step": i, "kl": 0.01 if i < 100 else 3.0} for i in range(200)])
    lines = report()
    (first,) = (line for line in lines if line.startswith("  warning kl-blowup"))
    assert "onset at step 1" in first
    assert any("what to try" in line and "R2" in line for line in lines)
    assert lines[-1].endswith("1 incident in 1 run")


@pytest.mark.slow
def test_text_from_a_run_cannot_drive_the_terminal(tmp_path, report):
    rows = [{"step": i, "evil\x1b[31m/kl": 0.01 if i < 100 else 3.0} for i in range(200)]
    written(tmp_path / "run\x1b[2J", rows)
    assert not [line for line in report() if "\x1b[" in line]


@pytest.fixture
def study(tmp_path):
    """Three runs of one program, with the same trouble and long names."""
    for seed in range(3):
        rows = [{"step": i, "kl": 0.01 if i < 100 + seed else 3.0 + seed} for i in range(200)]
        written(tmp_path / f"runs-of-a-study-with-a-very-long-name-{seed}-and-what-follows-it", rows)
    rows = [{"step": i, "kl": 0.01 if i < 100 else 3.0, "entropy": 0.5} for i in range(200)]
    written(tmp_path / "runs-of-another-program-with-a-name-that-is-no-shorter-than-theirs", rows)


@pytest.mark.slow
def test_equal_incidents_of_one_program_stand_once(study, report):
    lines = report()
    rows = [line for line in lines if line.startswith("warning  kl-blowup")]
    assert len(rows) == 2
    assert sum("and in 2 runs like it" in row for row in rows) == 1
    assert sum("what to try" in line and "as above" not in line for line in lines) == 2
    assert sum("evidence and what to try: as above, in runs-of-a-study" in line for line in lines) == 2
    assert [line for line in lines if "the KL to the reference is 5, " in line]  # its own numbers
    assert sum(line.startswith("  what to try") for line in report(details=True)) == 4


@pytest.mark.slow
def test_the_summary_fits_eighty_columns_and_no_two_of_its_names_read_alike(study, report, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [line for line in report() if line.startswith("warning  kl-blowup")]
    assert max(map(len, rows)) <= 80
    names = {row.split()[2] for row in rows}
    assert len(names) == len(rows) == 2
