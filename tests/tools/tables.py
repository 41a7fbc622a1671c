"""The tables that runs are judged by: `make docs` writes them from the files that people edit."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sentinel import catalogue
from sentinel.catalogue.rules import NEEDS
from sentinel.detectors.reading.card_files import cards_of_files
from sentinel.detectors.reading.cards import CARDS
from sentinel.series import naming
from sentinel.series.roles import names


def entries() -> bytes:
    """The front matter of the pages of the catalogue, an entry a line."""
    return catalogue.as_json(catalogue.pages())


def cards() -> bytes:
    """The score cards by the names of their claims, a card a line."""
    return b"[\n" + b",\n".join(map(msgspec.json.encode, cards_of_files())) + b"\n]\n"


def profiles() -> bytes:
    """The profiles of all frameworks by name, a profile a line."""
    files = sorted(naming.PROFILES.with_suffix("").glob("*.toml"))
    return _lines({file.stem: _content(file) for file in files})


def needs() -> bytes:
    """What entries of the catalogue suppose of a run, a word a line."""
    return _lines(_content(NEEDS.with_suffix(".toml")))


def roles() -> bytes:
    """The names of metrics and what they mean, a table a line."""
    return _lines(_content(names.TABLE.with_suffix(".toml")))


def texts() -> Iterator[tuple[Path, bytes]]:
    """Each file with what it ought to hold."""
    yield Path(str(catalogue.ENTRIES)), entries()
    yield CARDS, cards()
    yield naming.PROFILES, profiles()
    yield NEEDS, needs()
    yield names.TABLE, roles()


def _content(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _lines(tables: Mapping[str, Any]) -> bytes:
    lines = (b'"%b":%b' % (name.encode(), msgspec.json.encode(table)) for name, table in tables.items())
    return b"{\n" + b",\n".join(lines) + b"\n}\n"
