"""Every regular expression of the product takes time linear in its text, and little of it for each place.

A log may hold anything, and a pattern that scans thousands of characters from each of them holds up the whole
watch: nothing interrupts it. So each pattern reads texts that it nearly matches, beside a plain one that
reads the same.
"""

import ast
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from pkgutil import walk_packages
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
import pytest

import sentinel
from sentinel.catalogue import load
from sentinel.common.lazy_pattern import _LazyPattern
from sentinel.sources.console import lines
from sentinel.sources.readers import records, words
from tests.near_matches import near_matches

pytestmark = pytest.mark.slow

MAX_RATIO = 120
"""How much longer than a plain one a pattern may take. The slowest take 70 times as long, because they try
many words at each place; one that scans 4,000 characters from each place takes 300 times as long or more."""

ROOT = Path(sentinel.__file__).parents[1]
SIZE = 1 << 13  # of all texts, to find the slowest ones
LARGE_SIZE = 1 << 20  # of those
SLOWEST = 2
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")

MAX_NAME = 255
"""Bytes of the name of a file."""

FULLMATCH = {pattern.pattern for pattern in (records.NUMBER, *lines._BEGUN_BLOCK, *words._COUNTER.values())}
"""What matches whole texts alone, and has another name in the loop that uses it."""

SHORT = {
    ("sentinel.sources.console.log", "_CONSOLE_NAME"): MAX_NAME,
    ("sentinel.sources.swanlab.log", "_SWANLAB_NAME"): MAX_NAME,
}
"""The patterns that read short texts alone, with their lengths."""

TRUSTED = {
    ("sentinel.detectors.api", "_FIRST_STEP"),  # reads pages of detectors, which are code
    ("sentinel.sources.wandb.messages", "_DESCRIPTION"),  # reads the source of wandb as it is installed
    ("sentinel.testing.golden", "_GOLDEN_FENCE"),  # reads pages of the one who runs the test
}


class Reader(NamedTuple):
    """A pattern, where it stands, and the way in which it is used."""

    module: str
    name: str
    pattern: re.Pattern[Any]
    method: str


def within(value: object, depth: int = 4) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, _LazyPattern):
        yield re.compile(value.pattern, value.flags)
    elif depth and isinstance(value, dict):
        for one in [*value, *value.values()]:
            yield from within(one, depth - 1)
    elif depth and isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from within(one, depth - 1)
    elif depth and isinstance(value, msgspec.Struct):
        for field in msgspec.structs.astuple(value):
            yield from within(field, depth - 1)


def readers() -> list[Reader]:
    """Return the patterns of all modules, those within functions, and those of the catalogue."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources()}
    everywhere = uses(*trees.values())
    found: dict[tuple[Any, ...], Reader] = {}
    for module in modules():
        own = uses(trees[Path(module.__file__ or "").resolve()])
        for name, value in vars(module).items():
            methods = (own if name.startswith("_") else everywhere).get(name, {"search"})
            for pattern, use in product(within(value), methods):
                method = "fullmatch" if pattern.pattern in FULLMATCH else use
                key = (pattern.pattern, pattern.flags, method)
                found.setdefault(key, Reader(module.__name__, name, pattern, method))
    for path, tree in trees.items():
        for pattern, method in inline(tree):
            found.setdefault((pattern.pattern, pattern.flags, method), Reader(path.stem, "", pattern, method))
    for entry in load().values():
        for signature in entry.signatures:
            for text in filter(None, (signature.pattern, signature.raised)):
                found.setdefault(
                    (text, 0, "search"), Reader("catalogue", entry.id, re.compile(text), "search")
                )
    return [*found.values()]


def sources() -> list[Path]:
    places = [*(ROOT / "sentinel").rglob("*.py"), *(ROOT / "detectors").rglob("*.py")]
    return [place.resolve() for place in places]


def modules() -> Iterator[Any]:
    for each in walk_packages(sentinel.__path__, "sentinel."):
        if not each.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # a callback of a framework that is not installed
                yield import_module(each.name)


def uses(*trees: ast.AST) -> dict[str, set[str]]:
    """Return the names of which a method of patterns is used, with what it does with a text."""
    found: dict[str, set[str]] = {}
    for node in chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if isinstance(owner, ast.Name):
                found.setdefault(owner.id, set()).add(plain(node.attr))
    return found


def inline(tree: ast.AST) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield the patterns that stand in a call such as `re.sub`, with the method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_re and isinstance(node.args[0], ast.Constant):
                yield re.compile(node.args[0].value), plain(node.func.attr)


def plain(method: str) -> str:
    """Return what a method does with a text: it looks at its beginning, at all of it, or at each place."""
    return method if method in {"match", "fullmatch"} else "search"


def seconds(pattern: re.Pattern[Any], method: str, text: Any, most: float) -> float:
    """Return how long the pattern takes; after ``most`` seconds it is interrupted."""
    begin = perf_counter()
    with suppress(TimeoutError):
        signal.setitimer(signal.ITIMER_REAL, most)
        if method == "search":
            for _ in pattern.finditer(text):
                pass
        else:
            getattr(pattern, method)(text)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return perf_counter() - begin


@pytest.fixture
def interruptible():
    def interrupt(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


def ratio(reader: Reader, text: Any) -> float:
    """Return how much longer than a plain pattern one takes for a text."""
    beside = re.compile(r"\w\s\w\s\0")
    plain_text = "ab cd " * (len(text) // 6)
    least = float("inf")
    for _ in range(2):  # something else may have had the processor
        peer = seconds(beside, "search", plain_text, 60.0)
        least = min(least, seconds(reader.pattern, reader.method, text, 1.25 * MAX_RATIO * peer) / peer)
        if least < MAX_RATIO / 4:
            break
    return least


def slowest(reader: Reader) -> list[tuple[float, Any]]:
    """Return the largest ratios, with the texts."""
    size = SHORT.get((reader.module, reader.name), SIZE)
    texts = sorted(near_matches(reader.pattern, size), key=lambda text: ratio(reader, text))[-SLOWEST:]
    if size == SIZE:
        texts = [text * (LARGE_SIZE // SIZE) for text in texts]
    return sorted((ratio(reader, text), text[:80]) for text in texts)


READERS = [reader for reader in readers() if (reader.module, reader.name) not in TRUSTED]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: f"{reader.module}.{reader.name}")
def test_near_matches_cost_little_more_than_a_plain_scan(reader):
    *_, (most, text) = slowest(reader)
    assert most <= MAX_RATIO, (reader.pattern.pattern, reader.method, text)


def test_all_patterns_are_here():
    assert len(READERS) > 250
    assert {"catalogue", "sentinel.sources.console.lines"} <= {reader.module for reader in READERS}


@pytest.mark.usefixtures("interruptible")
def test_a_pattern_that_scans_on_from_each_place_is_noticed():
    pattern = re.compile(r"(?<!\w)(?P<epoch>\d{1,9})epoch results: .{1,40000}?(?=\[valid\])")
    *_, (most, _) = slowest(Reader("", "", pattern, "search"))
    assert most > MAX_RATIO
