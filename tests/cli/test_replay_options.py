"""Which runs and incidents `sentinel replay` shows, in which order, and lines for programs."""

import json
import re

import pytest

from sentinel.detectors.discovery import all_detectors

pytestmark = pytest.mark.slow  # each replays whole runs


def log(folder, kl, at, steps):
    folder.mkdir(parents=True)
    rows = [
        {
            "step": i,
            "time": 1.7e9 + at + i,
            "train/kl": kl if i >= 20 else 0.01,
            "train/loss": 2.0 * 0.97**i if i < 50 else "NaN",
        }
        for i in range(steps)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def tree(tmp_path):
    """A quiet run, one whose KL is high from step 20 on, and one that is not finite from step 50 on, too."""
    (tmp_path / "sentinel.toml").write_text('[signals]\n"train/kl" = "kl"\n"train/loss" = "loss"\n')
    log(tmp_path / "runs" / "a-quiet", kl=0.01, at=500, steps=40)
    log(tmp_path / "runs" / "b-high", kl=3.0, at=900, steps=45)
    log(tmp_path / "runs" / "c-both", kl=3.0, at=100, steps=60)
    return tmp_path / "runs"


@pytest.fixture
def shown(sentinel, tree):
    """Runs with the detectors of their incidents, in the order of the report."""

    def run(*options):
        ran = sentinel("replay", tree, "--format", "json", *options)
        assert ran.status == 0
        found = json.loads(ran.out)["runs"]
        return {one["run"].split("/")[0]: {i["detector"] for i in one["incidents"]} for one in found}

    return run


def test_all_is_shown_unless_something_is_asked_for(shown):
    found = shown()
    assert [*found] == ["a-quiet", "b-high", "c-both"]
    assert not found["a-quiet"]
    assert {"kl-blowup", "non-finite-metric"} <= found["c-both"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", "kl-blowup"], {"b-high": {"kl-blowup"}, "c-both": {"kl-blowup"}}),
        (["--only", "non-finite-metric"], {"c-both": {"non-finite-metric"}}),
        (["--since", "50"], {"c-both": {"non-finite-metric"}}),
        (["--since", "2023-11-14T22:20", "--only", "kl-blowup"], {"b-high": {"kl-blowup"}}),
        (["--run", "c-*", "--only", "kl-blowup"], {"c-both": {"kl-blowup"}}),
        (["--run", "a-quiet/*"], {"a-quiet": set()}),
        (["--only", "kl-blowup", "--since", "59"], {}),
    ],
    ids=" ".join,
)
def test_what_is_asked_for_is_shown(shown, options, expected):
    assert shown(*options) == expected


@pytest.mark.long
def test_a_severity_stands_for_itself_and_all_worse_ones(shown):
    assert "non-finite-metric" in shown("--only", "critical")["c-both"]
    assert shown("--only", "info").keys() == {"b-high", "c-both"}


@pytest.mark.parametrize(("sort", "first"), [("name", "a-quiet"), ("worst", "c-both"), ("newest", "b-high")])
def test_runs_have_the_order_that_is_asked_for(shown, sort, first):
    assert next(iter(shown("--sort", sort))) == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "kl-blowp"], "no detector or severity is called 'kl-blowp' (did you mean 'kl-blowup'?)"),
        (["--since", "soon"], "--since soon: is neither a step nor a time (2026-01-31T12:00)"),
        (["--run", "d-*"], "no run is called d-*; there is a-quiet/metrics.jsonl"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_nothing_can_match_is_said(sentinel, tree, options, message):
    ran = sentinel("replay", tree, *options)
    assert (ran.status, ran.out, ran.err) == (2, "", f"sentinel: {message}\n")


@pytest.mark.long
def test_the_exit_status_is_about_what_is_shown(sentinel, tree):
    words = "replay", tree, "--fail-on", "critical", "--format", "jsonl"
    assert sentinel(*words).status == 1
    assert sentinel(*words, "--run", "a-*").status == 0
    assert sentinel(*words, "--since", "59").status == 0


@pytest.mark.long
def test_a_filtered_report_says_that_it_is(sentinel, tree):
    options = "--only", "kl-blowup", "--since", "5"
    assert "kl-blowup since step 5: 2 runs, " in sentinel("replay", tree, *options).out.splitlines()[-1]
    for form in ("markdown", "html"):
        assert "kl-blowup since step 5" in sentinel("replay", tree, *options, "--format", form).out


@pytest.mark.long
def test_lines_hold_what_the_document_holds(sentinel, tree):
    whole = json.loads(sentinel("replay", tree, "--format", "json").out)["runs"]
    lines = [json.loads(line) for line in sentinel("replay", tree, "--format", "jsonl").out.splitlines()]
    age = re.compile(r"\d+ \w+ \d+ \w+ ago")
    for run in (*whole, *lines):
        run["state_evidence"] = age.sub("ago", run["state_evidence"])
    assert [{"schema": 1, **run} for run in whole] == lines


def test_a_tree_begins_with_one_screen(sentinel, tree):
    lines = sentinel("replay", tree).out.splitlines()
    begin = lines[: lines.index("")]
    assert begin[0].startswith("3 runs, ")
    assert all(name in "\n".join(begin) for name in ("b-high", "c-both"))
    assert begin[0] == lines[-1]


def test_without_a_terminal_nothing_is_folded_or_padded(sentinel, tree, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    lines = sentinel("replay", tree, "--details").out.splitlines()
    assert max(map(len, lines)) > 200
    assert [line for line in lines if line != line.rstrip()] == []
    (lacking,) = [line for line in lines if line.startswith("not judged: ")]
    enabled = [(name, one) for name, one in all_detectors().items() if one.enabled]
    assert all(name in lacking for name, one in enabled if one.demand.missing({"kl", "loss"}))


@pytest.mark.long
def test_every_form_says_how_much_was_read_and_judged(sentinel, tree):
    (tree / "d-broken").mkdir()
    (tree / "d-broken" / "run-x.wandb").write_text("x" * 500)
    coverage = r"3 logs were read, 1 could not be read; \d+ detectors could judge them"
    for options in ((), ("--only", "kl-blowup")):
        for form in ("terminal", "markdown", "html", "jsonl"):
            ran = sentinel("replay", tree, "--format", form, *options)
            assert re.search(coverage, " ".join((ran.out + ran.err).split())), form
        document = json.loads(sentinel("replay", tree, "--format", "json", *options).out)
        assert document["coverage"] == {"read": 3, "cut": 0, "unread": 1}
        assert 0 < document["runs"][0]["judged_by"] < document["runs"][0]["detectors"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "begins"),
    [("x.html", "<!doctype html>"), ("x.md", "**"), ("x.json", "{"), ("x.sarif", "{"), ("x.txt", "1 run")],
)
def test_the_name_of_the_file_chooses_the_form(sentinel, sick_run, tmp_path, name, begins):
    assert sentinel("replay", "-o", name).status == 0
    written = (tmp_path / name).read_text()
    assert written.lower().startswith(begins) or begins == "1 run"
    assert name != "x.json" or json.loads(written)["schema"] == 1


@pytest.mark.slow
def test_without_a_path_the_current_directory_is_read(sentinel, sick_run, tmp_path):
    (tmp_path / "sentinel.toml").unlink()
    assert sentinel("replay").status == 0
    assert "sick" in sentinel("runs").out
    assert sentinel("watch", "--once").status == 0


@pytest.mark.slow
def test_a_replay_says_what_would_have_been_told(sentinel, sick_run):
    assert "a watch would have sent it to: terminal" in sentinel("replay", ".").out


@pytest.mark.slow
def test_a_comparison_of_nothing_says_so(sentinel, sick_run):
    ran = sentinel("replay", ".", "--compare")
    assert ran.status == 0
    assert "nothing to compare" in ran.err
