"""Every block of code in the docs does what it says, outside the checkout.

A command of sentinel runs in a project that has what the page supposes. What needs another machine, a network
or root is named here, with what tests it instead.
"""

import itertools
import json
import re
import shlex
import shutil
import time

import polars as pl
import pytest

from sentinel.storage.store import Store
from tests.cli.conftest import sentinel
from tests.tools.docs import DOCS, README, ROOT

__all__ = ["sentinel"]

PAGES = [README, *sorted(DOCS.glob("*.md")), *sorted((DOCS / "reference").glob("*.md"))]
KINDS = {"text", "console", "sh", "toml", "python", "json", "yaml", "ini", "Dockerfile"}

INSTALLS = (
    r"uvx? |git clone|cd |python3? -m venv|\S*pip install|ln -s",
    r"make (demo|test|docs|site|faults|bench)",
)
"""`tests/test_package.py` and `tests/test_demo.py` install and run."""
ELSEWHERE = (
    r"kubectl|podman|systemctl|loginctl|install -m|sbatch|sacct|alertmanager",
    r"ssh |sudo |sqlite3|setfacl|mkdir |export |SENTINEL_TOKEN=|python ",
)
"""What needs a cluster, a service manager, another machine or root; their files have tests of their own."""
NOT_RUN = re.compile("|".join([*INSTALLS, *ELSEWHERE]))
NEEDS_MORE = re.compile(
    r"serve\b|mcp\b|.*(wandb|s3|gs|ssh|hf|https?|ntfy)://|.*--engine ray|.*/runs\b.*--shard|.*--listen"
)
"""Commands that go on until they are stopped, or ask a server: see the tests of their rooms."""
FOLLOWS = "watch"


def page_name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """The blocks of code of a page: the kind of each, and its text."""
    text = page.read_text().split("<!-- begin commands -->")[0]
    fenced = [
        (kind, body) for _, kind, body in re.findall(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```", text, re.S | re.M)
    ]
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    indented = re.findall(r"(?:^ {4}(?![-*] ).+\n)+", rest, re.MULTILINE)
    no_code = re.compile(r"── |^ {4}[A-Z`]")  # a drawing, or a paragraph of a list
    code = [re.sub(r"^ {4}", "", one, flags=re.M) for one in indented if not no_code.search(one)]
    return [*fenced, *(("sh", one) for one in code)]


def lines(page):
    """The lines of commands of a page, without what they print."""
    for kind, body in blocks(page):
        if kind == "console":
            yield from re.findall(r"^ *\$ (.+)$", body, re.MULTILINE)
        elif kind == "sh" and not body.startswith("#!"):
            joined = body.replace("\\\n", " ")
            yield from (line.strip() for line in joined.splitlines() if re.match(r"\s*[^#\s]", line))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_of_a_kind_that_is_tried(page):
    assert {kind for kind, _ in blocks(page)} <= KINDS


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_is_run_or_named_as_one_that_cannot_be(page):
    for line in lines(page):
        if not line.startswith("sentinel"):
            assert NOT_RUN.match(line), line


@pytest.fixture
def project(sentinel, tmp_path):
    """A project with runs of the names that the docs use, a configuration, and what a watch recorded."""
    runs = tmp_path / "runs"
    sick = (*("last-week", "mine", "today", "exp-1", "smoke"), *("new", "2026/03-01/diverged"))
    well = ("exp-2", "good", "2026/03-02/base", "2027/first", *(f"2026/seeds/{seed}" for seed in range(4)))
    for names, sample in ((sick, "kl-blowup"), (well, "healthy-rl")):
        for name in names:
            shutil.copytree(ROOT / "sample_logs" / sample, runs / name)
    for run in (ROOT / "tests" / "sources" / "fixtures" / "wandb").glob("run-*.wandb"):
        (tmp_path / "wandb" / run.stem).mkdir(parents=True)
        shutil.copy(run, tmp_path / "wandb" / run.stem)
    sink = '[[sinks]]\ntype = "terminal"\nfirst_look = "all"\n'
    (tmp_path / "sentinel.toml").write_text(f'paths = ["runs/"]\n{sink}')
    (tmp_path / "new.toml").write_text("[detectors.kl-blowup]\ncritical_per_token = 3.0\n")
    job = {
        "WorkDir": str(runs / "2026"),
        "User": "me",
        "Account": "lab",
        "AllocTRES": "cpu=8,gres/gpu=4",
        "Start": "2026-11-20T00:00:00",
        "End": "2026-11-21T00:00:00",
    }
    pl.DataFrame([job]).write_parquet(tmp_path / "jobs.parquet")
    (tmp_path / "bad.txt").write_text("2026/03-01/diverged\n")
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    assert sentinel("watch", "--once").status == 0
    assert sentinel("watch", "--once", "--state-dir", ".sentinel").status == 0
    return tmp_path


def incident_of(project):
    with Store(project / ".sentinel") as store:
        return next(one.id for one in store.incidents() if one.detector == "kl-blowup")


@pytest.mark.long  # judges runs many times
@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_of_a_page_works(sentinel, project, page):
    """What follows runs looks once instead."""
    for line in dict.fromkeys(lines(page)):
        if not line.startswith("sentinel ") or NEEDS_MORE.match(line.removeprefix("sentinel ")):
            continue
        line = re.sub(r"\b(ID|[0-9a-f]{16})\b", incident_of(project), line)
        words = shlex.split(line, comments=True)[1:]
        if words == ["sample_logs"] or ">" in words:
            words = words[: words.index(">")] if ">" in words else words
        once = ["--once"] if words[0] == FOLLOWS and "--once" not in words else []
        ran = sentinel(*words, *once)
        may_say_that_a_run_is_ill = "--fail-on" in words or words[0] == "wait"
        allowed = (0, 1) if may_say_that_a_run_is_ill else (0,)
        assert ran.status in allowed, f"{line}: {ran.out[-300:]}{ran.err}"


def test_every_json_that_is_shown_can_be_read():
    for page in PAGES:
        for kind, body in blocks(page):
            if kind == "json":
                json.loads(body)


@pytest.mark.slow
def test_the_loop_that_shows_what_to_log_is_judged_to_its_end(sentinel, tmp_path):
    (loop,) = re.findall(r'```python title="loop.py"\n(.+?)```', (DOCS / "log-this.md").read_text(), re.S)
    exec(loop, {})
    (run,) = json.loads(sentinel("replay", "runs", "--format", "json").out)["runs"]
    assert run["state"] == "finished"
    assert {"loss", "learning_rate", "grad_norm"} <= {*run["signals"]}
    assert [one for one in run["incidents"] if one["severity"] != "info"] == []


@pytest.mark.slow
def test_the_names_that_the_page_says_sentinel_knows_are_those(sentinel, tmp_path):
    table = (DOCS / "log-this.md").read_text().partition("| --- |")[2].partition("\n\n")[0]
    names = [name for row in table.splitlines()[1:] for name in re.findall(r"`([^`]+)`", row.split("|")[2])]
    assert len(names) >= 6
    rows = [{"step": step, **dict.fromkeys(names, 1 / (1 + step))} for step in range(50)]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = json.loads(sentinel("runs", "runs", "--format", "json").out)["runs"]
    meant = {tag for tags in run["signals"].values() for tag in tags}
    assert {*names} <= meant


@pytest.mark.slow
def test_the_loop_that_is_judged_from_within_stops(tmp_path):
    (code,) = re.findall(
        r"```python\n(from sentinel import Monitor.+?)```", (DOCS / "in-code.md").read_text(), re.S
    )
    reached = []

    def train(batch):
        reached.append(batch)
        time.sleep(0.001)  # what a step of a training takes
        return float("nan") if batch >= 50 else 1 / (1 + batch)

    exec(code, {"batches": itertools.count(), "train": train})  # which goes on until it is stopped
    assert len(reached) > 50


def test_paths_in_the_docs_are_in_the_repository():
    for page in PAGES:
        for path in re.findall(r"`((?:deploy|tests|sample_logs|requirements)/[\w./-]+)`", page.read_text()):
            assert (ROOT / path).exists(), f"{page_name(page)}: {path}"
