"""The catalogue of training failures: one Markdown page an entry, with front matter.

A page is `<id>.md` in this folder. Its front matter has `title`, `fix` (the first thing to try, one
sentence), `check` (what would tell it from its siblings, one sentence), `siblings` (ids that look alike)
and `source` (links). Its body has the headings Symptom, Cause, Fix and Telling it apart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

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
    body: str


@cache
def load() -> Mapping[str, Entry]:
    """Every entry by id. Raises KeyError for a page whose front matter lacks a field."""
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
