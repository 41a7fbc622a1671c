"""The house rules that no linter knows."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from sentinel.sources.registry import formats
from tests.each import each

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "sentinel").rglob("*.py"), *(ROOT / "detectors").rglob("*.py")])

ROOMS = {"processes", "frames", "sources", "runs", "alerts", "sinks", "catalogue", "telemetry"}
FLOW = ["cli", "live", "report", "flow", "rooms", "ground", "detectors"]
"""Each may import what stands to its right. The flow is the modules directly in sentinel/ that join
rooms; the ground is the modules that know no room."""
GROUND = {
    "errors",
    "clock",
    "text",
    "conversion",
    "config.CONFIG_FILE",
    "config.table",
    "config.errors",
    "config.state_dir",
}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(file: Path, types: bool = True) -> Iterator[str]:
    """What a file imports, as `module.name`; without ``types``, not what it imports for its types alone."""
    nodes = [*ast.walk(tree(file))]
    if not types:
        guards = [n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
        skipped = {id(node) for guard in guards for part in guard.body for node in ast.walk(part)}
        nodes = [node for node in nodes if id(node) not in skipped]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place(name: str) -> int:
    """Position in FLOW of a module of ours, or of a name in one."""
    top, *rest = name.split(".")
    if top == "detectors":
        return FLOW.index("detectors")
    head = rest[0] if rest else "api"  # `import sentinel` gives names of sentinel.api
    if head in ("cli", "agents", "api", "callbacks", "testing", "__main__"):
        return FLOW.index("cli")
    if head in ("live", "report"):
        return FLOW.index(head)
    if head in ROOMS:
        return FLOW.index("rooms")
    return FLOW.index("ground" if {head, ".".join(rest[:2])} & GROUND else "flow")


@each(FILES, module)
def test_imports_point_one_way(file):
    mine = place(module(file))
    wrong = [n for n in imports(file) if n.split(".")[0] in ("sentinel", "detectors") and place(n) < mine]
    assert not wrong


def test_no_modules_import_each_other():
    """Not even within functions, where Python would allow it. An import for a type alone may point back."""
    modules = {module(file): file for file in FILES}
    needed = {
        name: {n if n in modules else n.rpartition(".")[0] for n in imports(file, types=False)}
        for name, file in modules.items()
    }
    TopologicalSorter(needed).prepare()  # raises CycleError, which names the modules of a circle


@pytest.mark.parametrize("room", ["sources", "runs"])
def test_reading_knows_nothing_of_incidents(room):
    files = [file for file in FILES if file.is_relative_to(ROOT / "sentinel" / room)]
    assert files
    assert not [n for file in files for n in imports(file) if n.startswith("sentinel.alerts")]


def compared(file: Path) -> Iterator[object]:
    """The constants that a file compares something with."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Compare):
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))


@each(FILES, module)
def test_only_sources_ask_for_a_format_by_its_name(file):
    assert file.is_relative_to(ROOT / "sentinel" / "sources") or not formats().keys() & {*compared(file)}


def test_detectors_are_a_library_of_their_own():
    allowed = {"detectors", "polars", "numpy", "scipy"} | sys.stdlib_module_names
    for file in (ROOT / "detectors").rglob("*.py"):
        assert {name.split(".")[0] for name in imports(file)} <= allowed, file


@each(FILES, module)
def test_a_type_is_learned_before_threads_start(file):
    """`sentinel.conversion` says why."""
    assert file.name == "conversion.py" or "msgspec.convert" not in file.read_text(encoding="utf-8")


@each(FILES, module)
def test_time_is_an_argument(file):
    if file == ROOT / "sentinel" / "clock.py" or "cli" in file.parts:
        return
    clocks = {"time", "time_ns", "now", "utcnow", "today"}
    asked = [
        ast.unparse(node.func)
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in clocks
        and ast.unparse(node.func.value) in ("time", "datetime", "date", "datetime.datetime")
    ]
    assert not asked


@each(FILES, module)
def test_files_stay_readable_in_one_sitting(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 300


LONG = {
    "precision.loss_scale_collapse": 128,
    "reinforcement.entropy_collapse": 122,
    "reinforcement.reward_zero_std": 128,
    "runtime.resume_discontinuity": 127,
}
"""Detectors that are longer than the rule says, and their lines; they may only become shorter."""


@each([*(ROOT / "detectors").glob("*/*.py")], module)
def test_a_detector_is_understood_in_two_minutes(file):
    lines = len(file.read_text(encoding="utf-8").splitlines())
    assert lines <= LONG.get(module(file).removeprefix("detectors."), 120)


@each(FILES, module)
def test_what_lies_in_a_run_is_never_executed(file):
    banned = {"pickle", "dill", "joblib", "cloudpickle", "marshal", "shelve", "torch", "subprocess"}
    if module(file) != "sentinel.sources.beside.plain_yaml":
        banned.add("yaml")
    if module(file) in ("sentinel.sinks.command", "sentinel.processes.stacks"):
        # run what the configuration names, and py-spy, and nothing else
        banned.remove("subprocess")
    if module(file).startswith("sentinel.probes."):  # works within a training and never reads a run
        banned.remove("torch")
    assert not banned & {name.split(".")[0] for name in imports(file)}


def test_dependencies_are_those_that_are_imported():
    used = {name.split(".")[0] for file in FILES for name in imports(file)}
    used -= sys.stdlib_module_names | {"sentinel", "detectors"}
    used -= {"lightning", "torch", "transformers"}  # imported only within a training, which has them
    used -= {"pytest"}  # which imports the plugin
    providers = packages_distributions()  # more than one for a namespace such as google
    provided = {name: {p.casefold().replace("_", "-") for p in providers[name]} for name in used}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split("[<>]", text)[0] for text in project["dependencies"]}  # without a bound
    extras = {
        re.split("[<>]", text)[0] for them in project["optional-dependencies"].values() for text in them
    }
    assert not declared - set().union(*provided.values())
    assert not [name for name, by in provided.items() if not by & (declared | extras)]
