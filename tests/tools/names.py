"""The names of parameters, functions and metrics on pages, and the library in whose source each stands.

python -m tests.tools.names SITE-PACKAGES     reads the libraries there, and writes tests/catalogue/names.toml

`tests/catalogue/test_names.py` fails for a page with a name that nothing there, nor sentinel, knows.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from inspect import signature
from pathlib import Path

from sentinel import catalogue
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "catalogue" / "names.toml"
LIBRARIES = (
    *("torch", "trl", "transformers", "accelerate", "peft", "datasets", "stable_baselines3", "lightning"),
    *("huggingface_hub", "gymnasium", "wandb", "keras"),
)
OURS = [ROOT / "sentinel" / "series", ROOT / "sentinel" / "probes"]

QUOTED = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_]\w*")

HEAD = """\
# The names of parameters, functions and metrics on pages, by the library in whose source they stand.
# `python -m tests.tools.names SITE-PACKAGES` writes the libraries; what stands elsewhere is written by hand.
"""


def named() -> dict[str, set[str]]:
    """The pages of each name: what stands between backticks and has an underscore or a capital within."""
    pages = {one.name: one.doc for one in all_detectors().values()}
    pages |= {
        one.id: f"{one.fix} {one.check} {one.body} {one.visibility}" for one in catalogue.load().values()
    }
    found: dict[str, set[str]] = {}
    for page, text in pages.items():
        for quoted in QUOTED.findall(text):
            for word in WORD.findall(quoted):
                if "_" in word.strip("_") or re.search("[a-z][A-Z]", word):
                    found.setdefault(word, set()).add(page)
    return found


def words(*places: Path) -> set[str]:
    """All words of the sources below some folders."""
    files = (file for place in places for kind in ("py", "pyi", "toml") for file in place.rglob(f"*.{kind}"))
    return {word for file in files for word in WORD.findall(file.read_text("utf-8", "ignore"))}


def ours() -> set[str]:
    """The words that sentinel reads in logs and settings, and the thresholds of its rules."""
    rules = [one.rule for one in all_detectors().values() if isinstance(one, Detector)]
    return (
        words(*OURS) | {*Signal, *Setting} | {name for rule in rules for name in signature(rule).parameters}
    )


def read() -> Mapping[str, Mapping[str, str]]:
    """What the file holds: by library its version and names, and by name where else it stands."""
    return tomllib.loads(DATA.read_text("utf-8"))


def lines(places: Path, elsewhere: Mapping[str, str]) -> Iterator[str]:
    """The file, with the libraries that lie there."""
    left = {*named()} - ours() - {*elsewhere}
    yield HEAD
    for library in LIBRARIES:
        there = left & words(places / library)
        left -= there
        if there:
            yield f'[{library}]\nversion = "{_version(places, library)}"\nnames = """\n'
            yield from (f"{name}\n" for name in sorted(there))
            yield '"""\n\n'
    yield "[elsewhere]\n"
    yield from (
        f'{name} = "{place}"\n' for name, place in sorted({**dict.fromkeys(left, "?"), **elsewhere}.items())
    )


def _version(places: Path, library: str) -> str:
    (told,) = list(places.glob(f"{library}-*.dist-info"))
    return told.name.removesuffix(".dist-info").partition("-")[2]


if __name__ == "__main__":
    DATA.write_text("".join(lines(Path(sys.argv[1]), read()["elsewhere"] if DATA.exists() else {})), "utf-8")
