"""What other packages bring by entry points, and what becomes of a package that is broken."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import pytest

import sentinel.sinks
import sentinel.sources
from sentinel import catalogue, plugins
from sentinel.catalogue import index
from sentinel.cli.app import main
from sentinel.detectors.api import Declaration
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.plugins import Group, broken_plugins, packages_with_plugins
from sentinel.sinks.base import SinkConfig
from sentinel.sinks.discovery import BUILT_IN_SINKS, sink_types, type_of
from sentinel.sources import registry
from sentinel.sources.base import Run
from sentinel.sources.discovery import discover, location
from sentinel.sources.json.lines import JsonLines
from sentinel.sources.registry import BUILT_IN_FORMATS, BUILT_IN_SCHEMES, format_named, formats, remotes

RULE = '''"""Says that it is there."""

from sentinel.detectors.run_checks import RunFinding, run_check
from sentinel.detectors.api import Variant


@run_check(reads="nothing", variants={"there": Variant("it is there", ())})
def NAME(run):
    return []
'''

SOURCE = """from pathlib import Path

from sentinel.sources.base import PollResult, Run

FORMAT = "acme"
hidden_logs = (".acme",)
is_console = True


class Source:
    def poll(self, cursor, limit):
        return PollResult(cursor)


def find(directory, names):
    for name in names:
        if name.endswith(".acme"):
            yield Run(directory / name, FORMAT, Source())


SCHEMES = ("acme",)


def check(url):
    pass


def search(url, copies):
    return ()
"""

SINK = """from typing import Literal

from sentinel.sinks.base import SinkConfig
from sentinel.sinks.terminal import TerminalConfig, TerminalSink


class AcmeConfig(SinkConfig):
    type: Literal["acme"] = "acme"

    def open(self):
        return TerminalSink(self.name or self.type)
"""

PAGE = """---
title: The acme accelerator overheats
fix: cool it
check: its own log says so
siblings: []
needs: []
source: [https://acme.example]
checked: {source: acme, version: "1.2", date: 2026-11-01}
seen: only the machine shows it.
---

## Symptom

It is hot.
"""

CACHES = (
    plugins._entry_points,
    plugins._is_named_anywhere,
    all_detectors,
    catalogue.load,
    formats,
    registry._plugins,
    registry.hidden_logs,
    remotes,
    sink_types,
)


def forget():
    for each in CACHES:
        each.cache_clear()
    plugins._broken.clear()
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution of some modules and entry points for this process."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(name, modules, entry_points):
        for path, text in modules.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
        metadata = site / f"{name.replace('-', '_')}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = [f"[{group}]\n{named} = {value}\n" for group, named, value in entry_points]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        forget()
        return site

    forget()
    yield install
    forget()


def modules_below(package):
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(info.name)


# The tables of what sentinel has itself


@pytest.mark.slow
def test_every_source_of_sentinel_stands_in_its_table():
    finding = [module for module in modules_below(sentinel.sources) if callable(vars(module).get("find"))]
    defining = [module for module in finding if module.find.__module__ == module.__name__]
    found = [module for module in defining if hasattr(module, "FORMAT")]
    assert {module.FORMAT: module.__name__ for module in found} == BUILT_IN_FORMATS
    asked = [module for module in modules_below(sentinel.sources) if hasattr(module, "SCHEMES")]
    assert {scheme: module.__name__ for module in asked for scheme in module.SCHEMES} == BUILT_IN_SCHEMES


@pytest.mark.slow
def test_every_sink_of_sentinel_stands_in_its_table():
    found = {
        type_of(thing): f"{module.__name__}:{name}"
        for module in modules_below(sentinel.sinks)
        for name, thing in vars(module).items()
        if inspect.isclass(thing) and issubclass(thing, SinkConfig) and thing.__module__ == module.__name__
    }
    assert {kind: home for kind, home in found.items() if kind} == BUILT_IN_SINKS


def test_a_module_with_another_name_than_its_table_says_is_an_error(monkeypatch):
    monkeypatch.setitem(registry.BUILT_IN_FORMATS, "cvs", BUILT_IN_FORMATS["csv"])
    with pytest.raises(ValueError, match=r"csv\.log reads the format csv, and the table says cvs"):
        format_named("cvs")
    monkeypatch.setitem(BUILT_IN_SINKS, "slak", BUILT_IN_SINKS["slack"])
    sink_types.cache_clear()
    with pytest.raises(ValueError, match="has the type slack, and the table says slak"):
        sink_types()


def test_a_format_of_old_state_has_nothing_that_sets_it_apart():
    old = format_named("of-a-plugin-that-is-gone")
    assert not any((old.is_console, old.is_appended_text, old.written_at_checkpoints))


# What plugins bring


def test_a_module_of_detectors_or_one_of_them_is_found(install):
    modules = {
        "acme_one.py": RULE.replace("NAME", "acme_one"),
        "acme_two.py": RULE.replace("NAME", "acme_two"),
    }
    named = [("sentinel.detectors", "one", "acme_one"), ("sentinel.detectors", "two", "acme_two:acme_two")]
    before = {*all_detectors()}
    install("acme", modules, named)
    assert {*all_detectors()} - before == {"acme-one", "acme-two"}
    assert all_detectors()["acme-one"].doc == "Says that it is there."
    assert not broken_plugins()


def test_a_source_is_found_with_what_sets_it_apart(install, tmp_path):
    install("acme", {"acme_log.py": SOURCE}, [("sentinel.sources", "acme", "acme_log")])
    (tmp_path / "logs" / ".acme").mkdir(parents=True)
    (tmp_path / "logs" / ".acme" / "run.acme").touch()
    assert [run.format for run in discover([tmp_path / "logs"]).runs] == ["acme"]
    assert format_named("acme").is_console
    assert location("acme://there").scheme == "acme"


def test_what_is_stored_belongs_to_the_versions_of_the_plugins(install, tmp_path):
    log = tmp_path / "log.jsonl"
    run = Run(log, "jsonl", JsonLines(log))

    def stored():
        return Pipeline(all_detectors().values(), {}, {}).track(run, "run").layout

    before = stored()
    install("acme", {"acme_log.py": SOURCE}, [("sentinel.sources", "acme", "acme_log")])
    assert packages_with_plugins() == ["acme 1.2"]
    assert stored() != before


def test_a_sink_is_found(install):
    install("acme", {"acme_sink.py": SINK}, [("sentinel.sinks", "acme", "acme_sink")])
    assert {*sink_types()} - {*BUILT_IN_SINKS} == {"acme"}
    assert not broken_plugins()


def test_pages_are_found_and_are_a_family_of_their_own(install):
    site = {"acme_pages/__init__.py": "", "acme_pages/ACME1.md": PAGE}
    install("acme", site, [("sentinel.catalogue", "pages", "acme_pages")])
    assert catalogue.load()["ACME1"].title == "The acme accelerator overheats"
    assert [entry.id for entry in index.families()["From acme 1.2"]] == ["ACME1"]
    assert [entry.id for entry in index.search(["accelerator", "overheats"])] == ["ACME1"]


BROKEN = [
    ("sentinel.detectors", "raise RuntimeError('no such\\n  library')", "RuntimeError: no such library"),
    ("sentinel.detectors", "raise SystemExit(3)", "SystemExit: 3"),
    ("sentinel.detectors", "import acme_absent", "ModuleNotFoundError: No module named 'acme_absent'"),
    ("sentinel.detectors", "", "ValueError: it has no detector and no run check"),
    (
        "sentinel.detectors",
        RULE.replace("NAME", "loss_spike"),
        "ValueError: two detectors are called loss-spike",
    ),
    ("sentinel.sources", "", "ValueError: it has neither FORMAT and find nor SCHEMES, check and search"),
    (
        "sentinel.sources",
        SOURCE.replace('"acme"\n', '"csv"\n'),
        "ValueError: two sources read the format csv",
    ),
    (
        "sentinel.sources",
        SOURCE.replace('("acme",)', '("s3",)'),
        "ValueError: two sources know addresses that begin with s3://",
    ),
    ("sentinel.sinks", "", "ValueError: it has no SinkConfig whose `type` is a Literal"),
    ("sentinel.sinks", SINK.replace('"acme"', '"slack"'), "ValueError: two sinks have the type slack"),
    ("sentinel.catalogue", "", "ValueError: it has no page"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("group", "text", "error"), BROKEN, ids=[error for *_, error in BROKEN])
def test_a_broken_plugin_is_named_and_left_out(install, group, text, error):
    install("acme", {"acme_bad/__init__.py": text}, [(group, "bad", "acme_bad")])
    others = [all_detectors(), formats(), remotes(), sink_types(), catalogue.load()]
    assert all(others)
    (broken,) = broken_plugins()
    assert str(broken) == f"acme 1.2 is left out: its entry point bad in {group}: {error}"


@pytest.mark.slow
def test_a_page_that_a_report_could_not_show_is_left_out(install):
    pages = {
        "acme_a/__init__.py": "",
        "acme_a/acme1.md": PAGE,
        "acme_b/__init__.py": "",
        "acme_b/ACME2.md": PAGE.replace("needs: []", "needs: [acmes]"),
        "acme_c/__init__.py": "",
        "acme_c/O1.md": PAGE,
        "acme_d/__init__.py": "",
        "acme_d/ACME3.md": PAGE.replace("fix: cool it\n", ""),
    }
    install("acme", pages, [("sentinel.catalogue", name, f"acme_{name}") for name in "abcd"])
    assert not [entry.id for entry in catalogue.load().values() if entry.package]
    assert [plugin.error for plugin in broken_plugins()] == [
        "ValueError: the id acme1 does not begin with a capital letter",
        "ValueError: ACME2 needs acmes, which is no word of needs.toml",
        "ValueError: two entries have the id O1",
        "ValueError: ACME3: its front matter lacks fix",
    ]


def test_of_two_plugins_with_one_name_the_first_package_has_it(install):
    rule = RULE.replace("NAME", "acme_one")
    install("beta", {"acme_beta.py": rule}, [("sentinel.detectors", "one", "acme_beta")])
    install("alpha", {"acme_alpha.py": rule}, [("sentinel.detectors", "one", "acme_alpha")])
    kept = all_detectors()["acme-one"]
    assert isinstance(kept, Declaration)
    assert [str(plugin) for plugin in broken_plugins()] == [
        "beta 1.2 is left out: its entry point one in sentinel.detectors: "
        "ValueError: two detectors are called acme-one"
    ]


@pytest.mark.slow
def test_the_commands_name_what_is_broken_and_go_on(install, capsys, tmp_path, monkeypatch):
    bad = {"acme_bad.py": "import acme_absent"}
    install("acme", bad, [(group, "bad", "acme_bad") for group in Group])
    lines = [
        f"sentinel: acme 1.2 is left out: its entry point bad in {group}: "
        "ModuleNotFoundError: No module named 'acme_absent'"
        for group in sorted(Group)
    ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "sentinel.toml").write_text('paths = ["metrics.jsonl"]\n')
    rows = [f'{{"step": {step}, "loss": 0.5}}\n' for step in range(20)]
    (tmp_path / "metrics.jsonl").write_text("".join(rows))
    for words in ("watch --once", "runs .", "status", "check-config", "runs . --format json"):
        with pytest.raises(SystemExit) as ended:
            main(words.split())
        ran = capsys.readouterr()
        assert not ended.value.code
        if words == "watch --once":
            assert all(line.removeprefix("sentinel: ") in ran.err for line in lines)
        else:
            assert ran.err.splitlines() == lines, words
    assert json.loads(ran.out)["runs"]


@pytest.mark.long  # a real process
def test_where_no_plugin_is_installed_nothing_is_imported_to_find_out():
    program = """if True:
        import sys
        from sentinel.cli.plugins import find_broken_plugins
        assert not find_broken_plugins()
        print(*sys.modules)"""
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"importlib.metadata", "sentinel.sources.registry", "pydantic", "polars"} & set(loaded)
