"""The HTML report: one file that asks for nothing, whatever the runs are called."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sentinel.report.html import SCRIPTS

ROOT = Path(__file__).parents[2]
VENDORED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""uPlot 1.6.32 as its authors published it."""


class Page(HTMLParser):
    """The elements of a page with their attributes, and what scripts and styles hold."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.texts = []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = (tag, dict(attributes)) if tag in ("script", "style") else None
        if self._inside:
            self.texts.append([*self._inside, ""])

    def handle_endtag(self, _):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.texts[-1][2] += data

    def all(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture
def report(sentinel, tmp_path):
    def make(*paths):
        ran = sentinel("replay", *paths, "--format", "html", "-o", tmp_path / "report.html")
        assert (ran.status, ran.out) == (0, "")
        return (tmp_path / "report.html").read_text()

    return make


@pytest.mark.long
def test_it_is_one_file_that_asks_for_nothing(report):
    page = Page(report(*(ROOT / "sample_logs" / name for name in ("kl-blowup", "loss-scale-collapse"))))
    assert not [a for _, a in page.elements if {"src", "srcset", "style", "action"} & {*a}]
    assert not [a for a in page.all("a") if not a["href"].startswith("#")]
    assert not page.all("link")
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len({*ids})
    assert {a["href"][1:] for a in page.all("a")} <= {*ids}


@pytest.mark.long
def test_its_policy_allows_what_stands_in_it_and_nothing_else(report):
    page = Page(report(ROOT / "sample_logs" / "kl-blowup"))
    (policy,) = [a["content"] for a in page.all("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, attributes, text in page.texts:
        if attributes.get("type") != "application/json":
            assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy, tag


@pytest.mark.slow
def test_names_from_a_run_are_text(report, tmp_path):
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
    rows = [{"step": i, f"loss/{hostile}": "NaN" if i > 50 else 1.0, "kl": 0.1} for i in range(99)]
    runs = tmp_path / "javascript:alert(3)"
    runs.mkdir()
    (runs / "metrics.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (runs / "config.json").write_text(json.dumps({hostile: hostile}))
    text = report(runs)
    page = Page(text)
    assert len(page.all("script")) == 1 + len(SCRIPTS), "the data, uPlot and our own"
    assert not page.all("img")
    assert "\u202e" not in text
    assert "&lt;img src=x" in text


@pytest.mark.long
def test_a_long_run_takes_at_most_a_megabyte(report, tmp_path):
    steps = np.arange(50_000)
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(50_000, 20)).cumsum(axis=0)
    head = ",".join(["step", *(f"metric/{i}" for i in range(20))])
    table = np.column_stack([steps, walks])
    np.savetxt(tmp_path / "metrics.csv", table, "%.8g", ",", header=head, comments="")
    assert len(report(tmp_path / "metrics.csv")) < 1_000_000


@pytest.mark.long  # many runs
def test_of_very_many_runs_the_first_have_small_curves(report, monkeypatch):
    runs = [ROOT / "sample_logs" / name for name in ("kl-blowup", "healthy-rl", "flat-loss-at-init")]
    assert report(*runs).count('<svg class="spark"') == 3
    monkeypatch.setattr("sentinel.report.html._MAX_SPARKS", 2)
    assert report(*runs).count('<svg class="spark"') == 2


@pytest.mark.slow
def test_a_curve_is_captioned_with_its_meaning_unless_its_name_says_it(report):
    text = report(ROOT / "sample_logs" / "kl-blowup")
    captions = re.findall("<figcaption>(.*)<button", re.sub('<span class="part">|</span>|<wbr>', "", text))
    assert "train/grad_norm" in captions
    assert "train/loss<small>policy loss</small>" in captions


@pytest.mark.long
def test_why_a_sink_hears_of_nothing_is_said_in_words(report, tmp_path):
    (tmp_path / "sentinel.toml").write_text('[[sinks]]\ntype = "terminal"\nmin_severity = "critical"\n')
    text = report(ROOT / "sample_logs" / "flat-loss-at-init")
    assert "not sent to: terminal, below the sink&#39;s severity" in text


@pytest.mark.slow
def test_an_output_that_cannot_be_written_is_one_line(sentinel):
    ran = sentinel("replay", ROOT / "sample_logs" / "kl-blowup", "--format", "html", "-o", "no/such/r.html")
    assert ran.status == 2
    assert ran.err == "sentinel: no/such/r.html: the report cannot be written: No such file or directory\n"


def test_what_is_not_ours_is_as_it_was_published():
    folder = files("sentinel.report.html")
    for name, digest in VENDORED.items():
        assert sha256(folder.joinpath(name).read_bytes()).hexdigest() == digest
    assert "MIT License" in folder.joinpath("uPlot.LICENSE").read_text()


@pytest.mark.slow
def test_a_report_stays_until_the_new_one_is_whole(sentinel, tmp_path):
    report = tmp_path / "report.html"
    report.write_text("older")
    (tmp_path / "empty").mkdir()
    assert sentinel("replay", tmp_path / "empty", "--format", "html", "-o", report).status == 2
    assert report.read_text() == "older"
    assert (
        sentinel("replay", ROOT / "sample_logs" / "kl-blowup", "--format", "html", "-o", report).status == 0
    )
    assert "kl-blowup" in report.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "report.html"]
