"""The house rules that no linter knows."""

import ast
import re
import subprocess
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
FILES = sorted([*(ROOT / "sentinel").rglob("*.py"), *(ROOT / "sentinel" / "detectors").rglob("*.py")])
"""`sentinel/detectors` is a link to `detectors/`, and a search follows no links."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS, FORBIDDEN = PROJECT["tool"]["importlinter"]["contracts"]
ROOMS = {room: at for at, line in enumerate(LAYERS["layers"]) for room in line.split(" | ")}
"""The line of each room in the table of who may import whom, from above."""


MAX_BYTES = 300_000  # of one file


@cache
def text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """All that a file holds, in no order that counts."""
    return tuple(ast.walk(ast.parse(text(file))))


def module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(file: Path, types: bool = True) -> tuple[str, ...]:
    """What a file imports, as `module.name`; without ``types``, not what it imports for its types alone."""
    guards = [n for n in nodes(file) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    skipped = {id(node) for guard in guards for part in guard.body for node in ast.walk(part)}
    names: list[str] = []
    for node in nodes(file):
        if not types and id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            assert node.module
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(names)


def room(name: str) -> str:
    """The room of a module of ours, or of a name in one. `import sentinel` gives names of the api."""
    _, *rest = name.split(".")
    return rest[0] if rest and rest[0] in ROOMS else "api"


def ours(file: Path) -> Iterator[str]:
    """The other rooms that a file imports."""
    rooms = {room(name) for name in imports(file) if name.split(".")[0] == "sentinel"}
    yield from rooms - {room(module(file))}


def test_the_table_of_imports_names_every_room():
    there = {file.stem for file in (ROOT / "sentinel").glob("*.py")} - {"__init__"}
    there |= {folder.parent.name for folder in (ROOT / "sentinel").glob("*/__init__.py")}
    assert LAYERS["exhaustive"]
    assert there == ROOMS.keys()


@pytest.mark.long
@each(FILES, module)
def test_a_room_imports_only_rooms_below_it(file):
    assert not [other for other in ours(file) if ROOMS[other] <= ROOMS[room(module(file))]]


@pytest.mark.slow
@each(FILES, module)
def test_reading_and_judging_know_no_receiver(file):
    if f"sentinel.{room(module(file))}" in FORBIDDEN["source_modules"]:
        assert not {f"sentinel.{other}" for other in ours(file)} & {*FORBIDDEN["forbidden_modules"]}


@pytest.mark.long
def test_no_modules_import_each_other():
    """Not even within functions, where Python would allow it. An import for a type alone may point back."""
    modules = {module(file): file for file in FILES}
    needed = {
        name: {n if n in modules else n.rpartition(".")[0] for n in imports(file, types=False)}
        for name, file in modules.items()
    }
    TopologicalSorter(needed).prepare()  # raises CycleError, which names the modules of a circle


@cache
def assigned(file: Path) -> dict[str, set[object]]:
    """The constants in what a module assigns, by the name that it is assigned to."""
    found: dict[str, set[object]] = {}
    for node in ast.parse(text(file)).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            held = {part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)}
            found.update((target.id, held) for target in targets if isinstance(target, ast.Name))
    return found


@cache
def named_constants(file: Path) -> dict[str, set[object]]:
    """The constants behind the names that a module assigns, or imports from a module of ours."""
    modules = {module(each): each for each in FILES}
    found = dict(assigned(file))
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            there = assigned(modules[node.module])
            found.update((n.asname or n.name, there[n.name]) for n in node.names if n.name in there)
    return found


def compared(file: Path) -> Iterator[object]:
    """The constants that a file compares something with.

    What is called a format counts also where the constant stands behind a name.
    """
    named = named_constants(file)
    for node in nodes(file):
        if isinstance(node, ast.Compare):
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            if "format" in ast.unparse(node):
                names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
                yield from (value for name in names for value in named.get(name, ()))


@pytest.mark.slow
def test_a_constant_is_seen_where_it_is_compared(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        'SAVED: str = "trainer_state"\nWRITTEN = ("jsonl", "csv")\n'
        'def test(run):\n    return run.format == SAVED or run.format in WRITTEN or run == "wandb"\n'
    )
    assert {*compared(file)} == {"trainer_state", "jsonl", "csv", "wandb"}


@pytest.mark.slow
@each(FILES, module)
def test_only_sources_ask_for_a_format_by_its_name(file):
    assert file.is_relative_to(ROOT / "sentinel" / "sources") or not formats().keys() & {*compared(file)}


@pytest.mark.slow
def test_detectors_are_a_library_of_their_own():
    allowed = {"msgspec", "polars", "numpy", "scipy"} | sys.stdlib_module_names
    finds = ("sentinel.detectors", "sentinel.plugins")  # which needs nothing itself
    for file in FILES:
        if module(file).startswith("sentinel.detectors"):
            others = [name for name in imports(file) if not name.startswith(finds)]
            assert {name.split(".")[0] for name in others} <= allowed, file


@pytest.mark.slow
@each(FILES, module)
def test_a_type_is_learned_before_threads_start(file):
    """`sentinel.common.conversion` says why."""
    assert file.name == "conversion.py" or "msgspec.convert" not in text(file)


@pytest.mark.slow
@each(FILES, module)
def test_a_value_is_a_struct_unless_its_fields_need_more(file):
    """To make the class of a `msgspec.Struct` takes a thirtieth of the time, and a command makes hundreds."""
    if module(file).startswith(("sentinel.api", "sentinel.probes", "sentinel.callbacks")):
        return  # they are for programs of others, where msgspec need not be imported
    for node in nodes(file):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list):
            special = ("compare=False", "repr=False", "init=False")
            assert node.bases or any(each in ast.unparse(node) for each in special), node.name


@pytest.mark.slow
@each(FILES, module)
def test_time_is_an_argument(file):
    if file == ROOT / "sentinel" / "common" / "clock.py" or "cli" in file.parts:
        return
    clocks = {"time", "time_ns", "now", "utcnow", "today"}
    asked = [
        ast.unparse(node.func)
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in clocks
        and ast.unparse(node.func.value) in ("time", "datetime", "date", "datetime.datetime")
    ]
    assert not asked


@pytest.mark.slow
@each(FILES, module)
def test_a_path_is_asked_about_without_an_error(file):
    """`Path.exists` raises an error where this user may not look; `common/paths.py` does not."""
    if room(module(file)) in ("probes", "testing", "detectors"):
        return
    methods = {"exists", "is_file", "is_dir"}
    asked = [
        ast.unparse(node)
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and ast.unparse(node.func.value) not in ("entry", "os.path")
    ]
    assert not asked


def test_no_pattern_is_compiled_when_its_module_is_imported():
    """`lazy_pattern` compiles it where it is used. The library of detectors, which has few, stands alone."""

    def compiled(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for child in ast.iter_child_nodes(node):
                yield from compiled(child)

    files = [file for file in FILES if not file.is_relative_to(ROOT / "sentinel" / "detectors")]
    trees = ((file, ast.parse(text(file))) for file in files if "re.compile(" in text(file))
    assert not [f"{module(file)}:{node.lineno}" for file, tree in trees for node in compiled(tree)]


@pytest.mark.slow
def test_a_line_assigns_one_thing():
    """A swap and an unpacking are one thought; `a, b = x, y` is two. A hundredth is allowed."""
    assignments = [node for file in FILES for node in nodes(file) if isinstance(node, ast.Assign)]
    pairs = [n for n in assignments if isinstance(n.targets[0], ast.Tuple) and isinstance(n.value, ast.Tuple)]
    assert len(pairs) < len(assignments) / 100


@pytest.mark.slow
def test_the_project_holds_no_file_that_only_lay_there():
    """Whoever clones the project gets all of it for good."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is a copy without its history")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert not [file.name for file in files if file.is_file() and file.stat().st_size > MAX_BYTES]


@pytest.mark.long
@each(FILES, module)
def test_what_lies_in_a_run_is_never_executed(file):
    banned = {"pickle", "dill", "joblib", "cloudpickle", "marshal", "shelve", "torch", "subprocess"}
    if module(file) != "sentinel.sources.sidecars.plain_yaml":
        banned.add("yaml")
    if module(file) in ("sentinel.sinks.command", "sentinel.processes.stacks"):
        # run what the configuration names, and py-spy, and nothing else
        banned.remove("subprocess")
    if module(file) == "sentinel.testing.sources":  # sends runs that it wrote itself
        banned.remove("pickle")
    if module(file).startswith("sentinel.probes."):  # works within a training and never reads a run
        banned.remove("torch")
    assert not banned & {name.split(".")[0] for name in imports(file)}


@pytest.mark.long
def test_dependencies_are_those_that_are_imported():
    used = {name.split(".")[0] for file in FILES for name in imports(file)}
    used -= sys.stdlib_module_names | {"sentinel"}
    used -= {"lightning", "torch", "transformers"}  # imported only within a training, which has them
    used -= {"pytest"}  # which imports the plugin
    providers = packages_distributions()  # more than one for a namespace such as google
    by = {name: providers.get(name, [name]) for name in used}  # what only the slow tests install has its name
    provided = {name: {p.casefold().replace("_", "-") for p in them} for name, them in by.items()}
    project = PROJECT["project"]
    declared = {re.split("[<>]", text)[0] for text in project["dependencies"]}  # without a bound
    extras = {
        re.split("[<>]", text)[0] for them in project["optional-dependencies"].values() for text in them
    }
    assert not declared - set().union(*provided.values())
    assert not [name for name, by in provided.items() if not by & (declared | extras)]
