"""The catalogue of training failures: one Markdown page an entry, with front matter.

A page is `<id>.md` in this folder. Its front matter has `title`, `fix` (the first thing to try, one
sentence), `check` (what would tell it from its siblings, one sentence), `siblings` (ids that look alike)
and `source` (links). It may have `signatures`: lists of a regular expression and the severity (`warning` or
`critical`) of a console line in which it is found. It may have `confirms` and `excludes`: what in a run
speaks for or against the entry, as `rules` describes. Its body has the headings Symptom, Cause, Fix and
Telling it apart.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from detectors.api import Severity
from sentinel.catalogue.rules import Rule

HEADINGS = ("## Symptom", "## Cause", "## Fix", "## Telling it apart")


@dataclass(frozen=True)
class Entry:
    """One failure: what it is called, what to try first, and its page."""

    id: str
    title: str
    fix: str
    check: str
    siblings: tuple[str, ...]
    source: tuple[str, ...]
    signatures: tuple["Signature", ...]
    confirms: tuple[Rule, ...]
    excludes: tuple[Rule, ...]
    body: str


@dataclass(frozen=True)
class Signature:
    """How an error that an entry describes shows in a line that a training prints."""

    entry: str
    pattern: re.Pattern[str]
    severity: Severity

    def may_be_in(self, text: str) -> bool:
        """Whether a line of the text may have it; far faster than to look at each line."""
        return re.search(self.pattern.pattern.strip("^$"), text) is not None


@cache
def signatures() -> tuple[Signature, ...]:
    """Those of all entries, in the order of their ids."""
    return tuple(signature for entry in load().values() for signature in entry.signatures)


@cache
def load() -> Mapping[str, Entry]:
    """Every entry by id.

    Raises KeyError for a page whose front matter lacks a field, and msgspec.ValidationError for a rule that
    is none.
    """
    import frontmatter  # only what shows pages pays for it

    pages = (page for page in files(__name__).iterdir() if page.name.endswith(".md"))
    entries = {}
    for page in sorted(pages, key=lambda page: page.name):
        post = frontmatter.loads(page.read_text(encoding="utf-8"))
        meta: Mapping[str, Any] = post.metadata
        name = page.name.removesuffix(".md")
        entries[name] = Entry(
            id=name,
            title=meta["title"],
            fix=meta["fix"],
            check=meta["check"],
            siblings=tuple(meta["siblings"]),
            source=tuple(meta["source"]),
            signatures=tuple(
                Signature(name, re.compile(pattern), Severity[severity.upper()])
                for pattern, severity in meta.get("signatures", ())
            ),
            confirms=msgspec.convert(meta.get("confirms", ()), tuple[Rule, ...]),
            excludes=msgspec.convert(meta.get("excludes", ()), tuple[Rule, ...]),
            body=post.content.strip(),
        )
    return entries


def cited(ids: Iterable[str]) -> list[dict[str, str]]:
    """What a notification says of some entries, in the same order; ids without a page are left out."""
    entries = load()
    return [
        {"id": i, "title": entries[i].title, "fix": entries[i].fix, "check": entries[i].check}
        for i in ids
        if i in entries
    ]
