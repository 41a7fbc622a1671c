"""The Markdown report: it renders as a table and details, and names of runs stay text."""

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def rendered(text):
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


@pytest.mark.long
def test_a_table_of_what_is_wrong_and_details_that_fold(sentinel):
    shown = sentinel(
        "replay",
        *(ROOT / "sample_logs" / name for name in ("kl-blowup", "healthy-rl")),
        "--format",
        "markdown",
    )
    html = rendered(shown.out)
    assert html.startswith("<p><strong>1 incident (1 critical) in 1 of 2 runs")
    assert "<td><strong>kl-blowup</strong>: The KL to the reference is " in html
    assert html.count("<details>") == html.count("</details>") == 1
    assert "<strong>R1: Reward hacking" in html


def test_names_from_a_run_are_text(sentinel, tmp_path):
    name = "@team #12 [x](javascript:alert(1)) <img src=x> | a | `zz` https:..evil.test"
    (tmp_path / name).mkdir()
    rows = [{"step": i, "loss": 1.0 if i < 50 else "NaN"} for i in range(99)]
    (tmp_path / name / "metrics.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    shown = sentinel("replay", tmp_path / name, "--format", "markdown").out
    html = rendered(shown)
    for forbidden in ("<img", "<a ", "<code>zz", "@team", "#12"):
        assert forbidden not in html
    header, _, row = [line for line in html.splitlines() if line.startswith("<t")][:3]
    assert header
    assert row


def test_a_quiet_run_is_one_sentence(sentinel):
    shown = sentinel("replay", ROOT / "sample_logs" / "healthy-rl", "--format", "markdown").out
    assert shown.startswith("**Nothing found in 1 run with 1,407 points.** 1 log was read; ")
    assert "|" not in shown
