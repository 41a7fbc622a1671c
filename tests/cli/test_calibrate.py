"""From an archive to a configuration that keeps a budget of pages."""

import json
import re
import shutil
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from sentinel.common.clock import SystemClock
from sentinel.config import CONFIG_FILE

pytestmark = pytest.mark.slow  # each replays an archive several times

PAGE = Path(__file__).parents[2] / "deploy" / "site" / "docs" / "fewer-false-pages.md"
SIGNALS = '[signals]\n"my/odd/kl" = "kl"\n'


@pytest.fixture
def archive(sick_run, tmp_path):
    """Nineteen runs that are well, and one whose KL leaves the far behind."""
    for number in range(19):
        run = tmp_path / "runs" / f"well-{number}"
        run.mkdir()
        rows = [{"step": i, "my/odd/kl": 0.01 + (i * number) % 7 / 1000} for i in range(200)]
        (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "runs"


@pytest.mark.long
def test_what_pages_too_often_only_informs(sentinel, archive, tmp_path):
    ran = sentinel("calibrate", "runs", "--pages-per-run", 0.01)
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "before: 1 of 20 healthy runs (5.0%, at most 24.9%) would page; 0 other runs left out",
        "kl-blowup: far only informs: it paged in 1 of 20 healthy runs (5.0%, at most 24.9%)",
        "after: 0 of 20 healthy runs (0.0%, at most 16.8%)",
        "promised: at most 24.9% of healthy runs page (1.0% allowed): when left out, 1 of 20 healthy runs "
        "(5.0%, at most 24.9%) did",
        'calibration.toml: written; add `include = ["calibration.toml"]` to sentinel.toml',
    ]
    (tmp_path / "sentinel.toml").write_text(f'include = ["calibration.toml"]\n{SIGNALS}')
    checked = sentinel("check-config").out
    assert "only inform: kl-blowup: far" in checked
    assert ": at most 24.9% of healthy runs page (1.0% allowed): when left out, 1 of 20" in checked
    told = json.loads(sentinel("replay", "runs/sick", "--format", "json").out)["runs"][0]["incidents"]
    assert [(one["detector"], one["severity"]) for one in told] == [("kl-blowup", "info")]
    again = sentinel("calibrate", "runs", "--pages-per-run", 0.01)
    assert again.out == ran.out, "an archive is calibrated as if it had never been"


@pytest.fixture
def far_from_the_start(archive):
    """A run whose KL is as large as a healthy one may be here."""
    _log(archive / "far" / "metrics.jsonl", 2.5)


def _log(file, kl):
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps({'step': i, 'my/odd/kl': kl})}\n" for i in range(200)))


@pytest.mark.long
def test_a_detector_becomes_stricter_where_that_is_enough(sentinel, archive, far_from_the_start, tmp_path):
    """What healthy runs do pages nobody any more, and what is worse still does: a quiet variant misses it."""
    (tmp_path / "bad.txt").write_text("sick*\n")
    ran = sentinel("calibrate", "runs", "--bad", "bad.txt")
    assert ran.out.splitlines()[:3] == [
        "before: 1 of 20 healthy runs (5.0%, at most 24.9%) would page; 1 other run left out",
        "kl-blowup: 1.5 times as strict (critical_per_token from 2 to 3, warning_per_sequence from 12 to 18, "
        "warning_per_update from 0.1 to 0.15, wreck_per_update from 1 to 1.5, growth from 5 to 7.5): it "
        "paged in 1 of 20 healthy runs (5.0%, at most 24.9%), now in 0 (0.0%, at most 16.8%)",
        "after: 0 of 20 healthy runs (0.0%, at most 16.8%)",
    ]
    (tmp_path / "sentinel.toml").write_text(f'include = ["calibration.toml"]\n{SIGNALS}')
    assert "kl-blowup: 1.5 times as strict\n" in sentinel("check-config").out
    _log(tmp_path / "later" / "alike" / "metrics.jsonl", 2.5)
    _log(tmp_path / "later" / "worse" / "metrics.jsonl", 4.0)
    sentinel("watch", "later", "--once")
    told = json.loads(sentinel("status", "--format", "json").out)["incidents"]
    (paged,) = (one for one in told if one["severity"] != "info")
    assert (Path(paged["run"]).parent.name, paged["severity"]) == ("worse", "critical")
    assert "realised: 1 of 2 healthy runs" in sentinel("status").out
    again = sentinel("calibrate", "runs", "--bad", "bad.txt")
    assert again.out == ran.out, "an archive is calibrated as if it had never been"
    kept = sentinel("calibrate", "runs", "--bad", "bad.txt", "--out", "results", "--workers", 1).out
    assert kept.partition("\n")[2] == ran.out, "of kept results the same runs are judged again"
    stricter = sentinel("archive", "judge", "runs", "--out", "results", "--workers", 1).out
    assert "; 0 parts known before" in stricter, "results of other thresholds are others"


def test_a_score_card_asks_for_more_points_where_a_healthy_run_has_enough(sentinel, tmp_path):
    random = np.random.default_rng(1)
    for number in range(4):
        rewards = -200 + random.normal(0, 8, 150) + (2 * np.arange(150) if number else 0)
        rows = [json.dumps({"step": step, "reward": reward}) for step, reward in enumerate(rewards)]
        log = tmp_path / "runs" / f"run-{number}" / "metrics.jsonl"
        log.parent.mkdir(parents=True)
        log.write_text("\n".join(rows) + "\n")
    ran = sentinel("calibrate", "runs")
    assert "reward-stagnation: 1.5 times as strict (card_bar from 1 to 1.5): it paged in 1 of 4" in ran.out
    assert "after: 0 of 4 healthy runs" in ran.out
    compared = sentinel("backtest", "runs", "--config", "calibration.toml").out
    assert "lost: reward-stagnation in jsonl:" in compared
    assert compared.endswith("0 gained, 1 lost, 0 moved, 0 same\n")


@pytest.mark.long
def test_of_runs_without_end_a_share_of_their_days_may_page(sentinel, tmp_path):
    for number in range(4):
        run = tmp_path / "runs" / f"endless-{number}"
        run.mkdir(parents=True)
        rows = [
            {"step": i, "timestamp": 1.7e9 + i * 3600, "kl": 3.0 if number == 2 and i > 100 else 0.01}
            for i in range(240)
        ]
        (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = sentinel("calibrate", "runs", "--pages-per-run-day", 0.05)
    assert ran.out.splitlines() == [
        "before: 1 of 44 healthy run-days (2.3%, at most 12.0%) would page; 0 other runs left out",
        "after: 1 of 44 healthy run-days (2.3%, at most 12.0%)",
        "promised: at most 12.0% of healthy run-days page (5.0% allowed): when left out, 1 of 44 healthy "
        "run-days (2.3%, at most 12.0%) did",
        'calibration.toml: written; add `include = ["calibration.toml"]` to sentinel.toml',
    ]
    (tmp_path / "sentinel.toml").write_text('include = ["calibration.toml"]')
    assert "at most 12.0% of healthy run-days page" in sentinel("check-config").out
    quiet = sentinel("calibrate", "runs", "--pages-per-run-day", 0.01).out
    assert "kl-blowup: far only informs: it paged in 1 of 44 healthy run-days" in quiet
    both = sentinel("calibrate", "runs", "--pages-per-run-day", 0.05, "--pages-per-run", 0.01)
    assert (both.status, "either --pages-per-run or --pages-per-run-day" in both.err) == (2, True)


def test_without_times_no_run_day_is_known(sentinel, archive):
    ran = sentinel("calibrate", "runs", "--pages-per-run-day", 0.05)
    assert ran.status == 2
    assert "runs: no healthy log holds times, so no run-day is known; use --pages-per-run" in ran.err


@pytest.mark.long
def test_results_that_are_kept_say_the_same(sentinel, archive, tmp_path):
    plain = sentinel("calibrate", "runs").out
    first = sentinel("calibrate", "runs", "--out", "results", "--workers", 1).out
    again = sentinel("calibrate", "runs", "--out", "results", "--workers", 1).out
    assert first.partition("\n")[2] == again.partition("\n")[2] == plain
    assert "20 runs; 0 parts known before" in first
    assert "0 runs; " in again
    assert "--workers needs --out DIR" in sentinel("calibrate", "runs", "--workers", 1).err


def test_runs_that_went_wrong_do_not_count(sentinel, archive, tmp_path):
    (tmp_path / "bad.txt").write_text("sick*\n")
    ran = sentinel("calibrate", "runs", "--bad", "bad.txt", "-o", "budget.toml")
    assert "before: 0 of 19 healthy runs" in ran.out
    assert "1 other run left out" in ran.out
    assert "[detectors" not in (tmp_path / "budget.toml").read_text()


@pytest.mark.long
def test_an_answer_says_that_a_run_went_wrong(sentinel, archive):
    sentinel("watch", "runs", "--once")
    (incident,) = json.loads(sentinel("status", "--format", "json").out)["incidents"]
    sentinel("feedback", incident["id"], "useful")
    assert "before: 0 of 19 healthy runs" in sentinel("calibrate", "runs").out


@pytest.mark.long
def test_a_status_says_what_came_of_the_promise(sentinel, archive, tmp_path):
    """A fleet whose runs are unlike the archive's pages falsely, and the answers say so."""
    (tmp_path / "bad.txt").write_text("sick*\n")
    sentinel("calibrate", "runs", "--bad", "bad.txt")
    (tmp_path / "sentinel.toml").write_text(f'include = ["calibration.toml"]\n{SIGNALS}')
    begins = SystemClock().now() + 60
    for number in range(7):
        run = tmp_path / "later" / f"drifted-{number}"
        run.mkdir(parents=True)
        rows = [
            {"step": i, "timestamp": begins + i, "my/odd/kl": 0.01 if i < 100 else 3.0} for i in range(200)
        ]
        (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sentinel("watch", "later", "--once")
    asked = sentinel("status").out
    assert "realised: 7 of 7 healthy runs (100.0%, at most 100.0%); 7 pages" in asked
    assert "if 7 pages without an answer were false, recalibrate" in asked
    for incident in json.loads(sentinel("status", "--format", "json").out)["incidents"]:
        sentinel("feedback", incident["id"], "false-alarm")
    assert "recalibrate: 7 false of 7 answers" in sentinel("status").out
    promise = json.loads(sentinel("status", "--format", "json").out)["promise"]
    assert (promise["runs"], promise["pages"], promise["realised"]["false"]) == (19, 0, 7)


@pytest.mark.long
def test_a_doubtful_page_is_asked_about_and_its_answer_heeded(sentinel, archive, tmp_path):
    sentinel("calibrate", "runs", "--html", "doubtful.html")
    page = (tmp_path / "doubtful.html").read_text()
    assert "1 page to look at first" in page
    commands = re.findall(r'value="sentinel ([^"]+)"', page)
    assert [command.split()[2] for command in commands] == ["useful", "false-alarm"]
    assert sentinel(*commands[0].split()).out.endswith(": kl-blowup is recorded as useful\n")
    again = sentinel("calibrate", "runs", "--html", "doubtful.html").out
    assert "before: 0 of 19 healthy runs" in again
    assert "0 pages to look at first" in (tmp_path / "doubtful.html").read_text()
    wrong = sentinel("feedback", "0" * 16, "useful", "--detector", "kl-blowp")
    assert "no such detector (did you mean 'kl-blowup'?)" in wrong.err


@pytest.mark.long
def test_the_way_from_an_archive_to_a_calibrated_watch_is_as_the_page_has_it(sentinel, archive, tmp_path):
    """Each file and each command of the page, in its order."""
    archive.rename(tmp_path / "2026")
    (tmp_path / "runs" / "2027").mkdir(parents=True)
    (tmp_path / "2026").rename(tmp_path / "runs" / "2026")
    shutil.copytree(tmp_path / "runs" / "2026" / "well-1", tmp_path / "runs" / "2027" / "next")
    way = PAGE.read_text("utf-8").partition("## Ten minutes")[2].partition("\n## ")[0]
    said = {}
    for title, text in re.findall(r' +```\w+(?: title="([^"]+)")?\n(.*?) +```', way, re.DOTALL):
        if title:
            (tmp_path / title).write_text(dedent(text) + (SIGNALS if title == CONFIG_FILE else ""))
            continue
        for line in re.findall(r"^ +(?:\$ )?sentinel (.+)", text, re.MULTILINE):
            words = line.split()
            if words[0] == "feedback":
                words[1] = re.search(r"sentinel feedback (\w+)", (tmp_path / "doubtful.html").read_text())[1]
            said[words[0]] = sentinel(*words, *(["--once"] if words == ["watch"] else []))
            assert said[words[0]].status == 0, said
    assert [*said] == ["calibrate", "feedback", "check-config", "watch", "status"]
    assert "only inform: kl-blowup: far" in said["check-config"].out
    assert "realised: 0 of 1 healthy runs" in said["status"].out


def test_what_cannot_be_done_is_said(sentinel, archive, tmp_path):
    (tmp_path / "bad.txt").write_text("*\n")
    nothing = sentinel("calibrate", "runs", "--bad", "bad.txt")
    assert (nothing.status, nothing.out) == (2, "")
    assert "no run counts as healthy" in nothing.err
    missing = sentinel("calibrate", "runs", "--bad", "none.txt")
    assert missing.status == 2
    assert "none.txt: cannot be read: " in missing.err


def test_a_file_that_cannot_be_written_is_said_before_anything_is_read(sentinel, archive):
    ran = sentinel("calibrate", "none", "-o", "no/such/c.toml")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("sentinel: no/such/c.toml: ")
