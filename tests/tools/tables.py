"""The files that hold what many say: `make docs` writes them, and runs are judged by them."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sentinel import catalogue
from sentinel.series import naming


def entries() -> bytes:
    """The front matter of the pages of the catalogue, an entry a line."""
    return catalogue.as_json(catalogue.pages())


def profiles() -> bytes:
    """The profiles of all frameworks by name, a profile a line."""
    files = sorted(naming.PROFILES.with_suffix("").glob("*.toml"))
    tables = {file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in files}
    lines = (b'"%b":%b' % (name.encode(), msgspec.json.encode(table)) for name, table in tables.items())
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def texts() -> Iterator[tuple[Path, bytes]]:
    """Each file with what it ought to hold."""
    yield Path(str(catalogue.ENTRIES)), entries()
    yield naming.PROFILES, profiles()
