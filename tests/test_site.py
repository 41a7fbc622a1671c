"""The docs site: its links lead somewhere, and what it shows can be run. `make site` builds it."""

import importlib.util
import json
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from sentinel.cli.app import program
from sentinel.cli.screen import screen
from sentinel.config.file import Config, load
from tests.cli.conftest import sentinel
from tests.each import each

__all__ = ["sentinel"]

ROOT = Path(__file__).parents[1]
SITE = ROOT / "deploy" / "site"
RECIPES = ROOT / "deploy" / "recipes"


def made():
    spec = importlib.util.spec_from_file_location("pages", SITE / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


PAGES = made()


def prose(text):
    """The text without what stands in blocks of code or in backticks."""
    return re.sub(r"^ {4}.*$|`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.M)


def anchors(text):
    """The anchors of the headings, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in headings}


def blocks(kind):
    """All blocks of code of one kind, each with the page that it stands on."""
    return [
        (page, block)
        for page, text in PAGES.items()
        for block in re.findall(rf"```{kind}\n(.*?)```", text, re.S)
    ]


@pytest.mark.slow
@each(PAGES, str)
def test_every_link_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(PAGES[page])):
        if "://" in target:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target)) if target else page
        assert path in PAGES or (SITE / "docs" / path).is_file(), f"{page} leads to {path}"
        assert not anchor or anchor in anchors(PAGES[path]), f"{page} leads to {path}#{anchor}"


def test_every_page_stands_in_the_navigation_or_in_a_list():
    names = re.findall(r": (\S+\.md)$", (SITE / "mkdocs.yml").read_text(), re.MULTILINE)
    lists = {
        "finds.md": "detectors/",
        "reference/catalogue.md": "catalogue/",
        "contributing/decisions.md": "contributing/decisions/",
    }
    below = {page for page in PAGES if page.startswith(tuple(lists.values()))}
    assert sorted(names) == sorted(PAGES.keys() - below)
    listed = {
        posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        for page in lists
        for target in re.findall(r"\(([\w./-]+)\)", PAGES[page])
    }
    assert below <= listed


def test_the_guide_for_agents_leads_to_pages():
    named = re.findall(r"\]\(([^)]+)\.html\)", (SITE / "docs" / "llms.txt").read_text())
    assert len(named) > 10
    assert not [page for page in named if f"{page}.md" not in PAGES]


def commands():
    """Every line that calls sentinel, wherever it is shown."""
    made = ("detectors/", "catalogue/", "measurements/", "contributing")
    shown = [(page, text) for page, text in PAGES.items() if not page.startswith(made)]
    shown = [(page, line[4:]) for page, text in shown for line in re.findall(r"^ {4}.*$", text, re.MULTILINE)]
    shown += [(page, line) for page, block in blocks("sh") for line in block.splitlines()]
    for page, line in shown:
        if called := re.match(r"(?:[~/]\S*/)?sentinel ([a-z].*)", line):
            words = shlex.split(called[1], comments=True)
            yield page, words
    for unit in (ROOT / "deploy" / "sentinel.service", RECIPES / "sentinel-user.service"):
        yield unit.name, re.search(r"^ExecStart=\S+ (.*)$", unit.read_text(), re.MULTILINE)[1].split()
    yield "crontab", shlex.split((RECIPES / "crontab").read_text())[6:]
    job = re.search(r"sentinel (watch .*)\)", (RECIPES / "slurm.sh").read_text())
    yield "slurm.sh", shlex.split(job[1])
    container = (RECIPES / "Containerfile").read_text()
    yield "Containerfile", json.loads(re.search(r"^CMD (.*)$", container, re.MULTILINE)[1])
    job = yaml.safe_load((RECIPES / "sidecar.yml").read_text())
    yield "sidecar.yml", job["spec"]["template"]["spec"]["initContainers"][0]["args"]
    yield "kubernetes", container_of(deployment())["args"]
    yield "daemonset.yml", container_of(fleet())["args"]
    archive = yaml.safe_load((RECIPES / "archive-job.yml").read_text())
    yield "archive-job.yml", container_of(archive)["args"]


def fleet():
    return yaml.safe_load((ROOT / "deploy" / "fleet" / "daemonset.yml").read_text())


def deployment():
    """The deployment, as kustomize would make it of its values."""
    folder = ROOT / "deploy" / "kubernetes"
    made = next(
        one
        for one in yaml.safe_load_all((folder / "sentinel.yml").read_text())
        if one["kind"] == "Deployment"
    )
    for patch in yaml.safe_load((folder / "kustomization.yml").read_text())["patches"]:
        for step in yaml.safe_load(patch["patch"]):
            assert (step["op"], step["path"]) == ("add", "/spec/template/spec/volumes/-")
            made["spec"]["template"]["spec"]["volumes"].append(step["value"])
    return made


def container_of(made):
    (container,) = made["spec"]["template"]["spec"]["containers"]
    return container


def test_the_deployment_in_kubernetes_fits_its_configuration(monkeypatch):
    monkeypatch.setenv("WEBHOOK", "https://example.com/hook")
    config = load(ROOT / "deploy" / "kubernetes" / "sentinel.toml")
    made = deployment()
    container = container_of(made)
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    assert {one["name"] for one in mounts.values()} == {
        one["name"] for one in made["spec"]["template"]["spec"]["volumes"]
    }
    assert [str(path) for path in config.paths] == ["/runs"]
    assert mounts["/runs"]["readOnly"]
    assert str(config.state_dir) in mounts
    assert config.listen.port == container["ports"][0]["containerPort"]


def test_the_sidecar_sees_its_training_and_needs_only_the_claim_of_the_runs():
    pod = yaml.safe_load((RECIPES / "sidecar.yml").read_text())["spec"]["template"]["spec"]
    assert pod["shareProcessNamespace"]
    claims = [
        one["persistentVolumeClaim"]["claimName"]
        for one in pod["volumes"]
        if len(one) == 2 and "persistentVolumeClaim" in one
    ]
    assert claims == ["runs"]


def test_the_watch_of_a_node_owns_its_state_and_watches_no_tree_that_all_nodes_see():
    pod = fleet()["spec"]["template"]["spec"]
    (first,) = pod["initContainers"]
    user = pod["securityContext"]["runAsUser"]
    config = tomllib.loads((ROOT / "deploy" / "fleet" / "sentinel.toml").read_text())
    assert first["command"] == ["chown", f"{user}:{user}", config["state_dir"]]
    assert first["securityContext"]["runAsUser"] == 0
    assert {one["name"] for one in first["volumeMounts"]} == {"state"}
    assert not config.get("poll"), "a tree that all nodes see has shares"


@pytest.mark.long
def test_every_command_that_is_shown_has_these_options():
    found = [*commands()]
    assert len(found) > 20
    for place, words in found:
        command = typer.main.get_command(screen if words[0].endswith("/") else program())
        rest = [*words]
        while hasattr(command, "commands"):
            assert rest, f"{place}: {words}"
            assert rest[0] in command.commands, f"{place}: {words}"
            command = command.commands[rest.pop(0)]
        if "--help" not in rest:
            command.make_context("sentinel", rest)  # raises UsageError for what it does not know


@pytest.mark.long  # judges the same run several times
@pytest.mark.parametrize("page", ["index.md", "alert.md", "reference/formats.md", "keep-it-running.md"])
def test_the_first_steps_can_be_taken(sentinel, tmp_path, page):
    """What follows runs until it is stopped looks once instead; what serves has its own tests, and so has
    what asks or tells a service elsewhere.
    """
    for name in ("last-week", "mine", "exp-1"):
        shutil.copytree(ROOT / "sample_logs" / "kl-blowup", tmp_path / "runs" / name)
    for run in (ROOT / "tests" / "sources" / "fixtures" / "wandb").glob("run-*.wandb"):
        (tmp_path / "wandb" / run.stem).mkdir(parents=True)
        shutil.copy(run, tmp_path / "wandb" / run.stem)
    (tmp_path / "sentinel.toml").write_text('paths = ["runs/"]\n\n[[sinks]]\ntype = "terminal"\n')
    assert sentinel("watch", "--once").status == 0
    assert sentinel("watch", "--once", "--state-dir", ".sentinel").status == 0  # as the job did
    shown = [
        words
        for place, words in commands()
        if place == page and words[0] != "serve" and "--notify" not in words and "://" not in words[-1]
    ]
    assert len(shown) >= 3
    for words in shown:
        ran = sentinel(*words, *(["--once"] if words[0] == "watch" else []))
        assert ran.status == 0, f"{words}: {ran.err}"


@pytest.mark.slow
def test_every_configuration_that_is_shown_is_valid(tmp_path):
    assert blocks("toml")
    for page, block in blocks("toml"):
        try:
            Config.model_validate(tomllib.loads(block), context={"directory": tmp_path})
        except ValueError as error:
            pytest.fail(f"{page}: {error}")


@pytest.mark.slow
def test_every_other_block_of_code_can_be_read():
    for page, block in blocks("sh"):
        done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
        assert not done.stderr, f"{page}: {done.stderr}"
    for page, block in blocks("python"):
        compile(block, page, "exec")
    for _, block in blocks("yaml"):
        yaml.safe_load(block)


@pytest.mark.slow  # builds the whole site
def test_it_builds_and_asks_for_nothing_from_outside(tmp_path):
    pytest.importorskip("material", reason="`make site` installs it")
    words = ["build", "--quiet", "--config-file", SITE / "mkdocs.yml", "--site-dir", tmp_path / "site"]
    subprocess.run([sys.executable, "-m", "mkdocs", *words], check=True, cwd=ROOT)
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(https?://[^"]+)"', page.read_text()
        )
        assert not loaded, page
