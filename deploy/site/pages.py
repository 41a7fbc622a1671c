"""All pages of the docs site as Markdown, by their path on the site.

What stands in `docs/` is written by hand. A line `<!-- include FILE: Heading -->` there stands for that
section of a file of the repository (`Heading (its beginning)` for what precedes its subsections), and
`<!-- generated: NAME -->` for a table that is made from the code.
The pages of detectors and of catalogue entries are those of `sentinel explain`.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sentinel import catalogue
from sentinel.catalogue.index import families
from sentinel.detectors.discovery import all_detectors
from sentinel.notifications.decide import Reason
from sentinel.report.pages import flags, page, severities
from sentinel.sources.registry import formats

ROOT = Path(__file__).parents[2]
DOCS = Path(__file__).parent / "docs"

_INCLUDE = re.compile(r"^<!-- include (?P<file>\S+)(?:: (?P<heading>.+?))? -->$", re.MULTILINE)
_GENERATED = re.compile(r"^<!-- generated: (?P<name>\w+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")

_COPIED = {
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site."""


def pages() -> dict[str, str]:
    """Return the Markdown of every page. Raises ValueError for an inclusion of something that is not
    there.
    """
    found = {str(file.relative_to(DOCS)): _whole(file.read_text("utf-8")) for file in DOCS.rglob("*.md")}
    found |= {place: _relinked((ROOT / file).read_text("utf-8"), file) for file, place in _COPIED.items()}
    figures = _figures()
    for name in all_detectors():
        found[f"detectors/{name}.md"] = _linked(page(name), "detectors") + figures.get(name, "")
    for id_ in catalogue.load():
        found[f"catalogue/{id_}.md"] = _linked(page(id_), "catalogue")
    return found


def _whole(text: str) -> str:
    text = _INCLUDE.sub(lambda found: _included(found["file"], found["heading"]), text)
    return _GENERATED.sub(lambda found: "\n".join(_TABLES[found["name"]]()), text)


def _included(file: str, heading: str | None) -> str:
    """Return a section of a file of the repository, without its heading; without one the whole file, in a
    block.
    """
    text = (ROOT / file).read_text("utf-8")
    if heading is None:
        kind = {".sh": "sh", ".toml": "toml", ".yml": "yaml"}.get(Path(file).suffix, "ini")
        return f"```{kind}\n{text.strip()}\n```"
    name = heading.removesuffix(" (its beginning)")
    match = re.search(rf"^(#+) {re.escape(name)}$", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{file} has no section {heading!r}")
    rest = text[match.end() :]
    deepest = 6 if name != heading else len(match[1])
    end = re.search(rf"^#{{1,{deepest}}} ", rest, re.MULTILINE)
    return _relinked(rest[: end.start() if end else None].strip("\n"), file)


def _relinked(text: str, file: str) -> str:
    """Return the text with links to pages of the site; what lies only in the repository is named, not
    linked.
    """

    def link(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if not target or "://" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        return f"[{found['text']}]({_COPIED[path]}{anchor})" if path in _COPIED else f"`{path}`"

    return _LINK.sub(link, text)


def _linked(text: str, folder: str) -> str:
    """Return the page of a detector or of an entry, with links to those that it names."""
    known = {name: f"detectors/{name}.md" for name in all_detectors()}
    known |= {id_: f"catalogue/{id_}.md" for id_ in catalogue.load()}

    def to(name: str) -> str:
        return f"[{name}]({posixpath.relpath(known[name], folder)})" if name in known else name

    def listed(found: re.Match[str]) -> str:
        names = (name.strip() for name in found[2].split(","))
        return f"{found[1]}: {', '.join(map(to, names))}\n"

    text = re.sub(r"`([^`]*<![^`]*)`", lambda found: f"<code>{_spelled(found[1])}</code>", text)
    text = re.sub(r"^- \*\*([\w-]+)\*\*:", lambda found: f"- **{to(found[1])}**:", text, flags=re.MULTILINE)
    return re.sub(r"^(Look-alikes|Detectors): ((?:.+\n?)+)", listed, text, flags=re.MULTILINE)


def _spelled(code: str) -> str:
    """Code in character references, because MkDocs takes `<![` for the beginning of a declaration."""
    return "".join(one if one.isalnum() or one.isspace() else f"&#{ord(one)};" for one in code)


def _figures() -> dict[str, str]:
    """Return the first row of each detector in measurements/figures.md, below the head of its table."""
    lines = (DOCS / "measurements" / "figures.md").read_text("utf-8").splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("| Detector |"))
    rows: dict[str, str] = {}
    for line in lines[head:]:
        if row := re.match(r"\| `([\w-]+)` \|", line):
            rows.setdefault(row[1], line)
    told = (
        "\n\n## Figures\n\n"
        "Measured on simulated runs; [all figures](../measurements/figures.md) explains them.\n"
    )
    return {name: "\n".join([told, *lines[head : head + 2], row, ""]) for name, row in rows.items()}


def _detectors() -> Iterator[str]:
    yield "| Detector | What it flags | Severity | Maturity |\n| --- | --- | --- | --- |"
    for name, one in all_detectors().items():
        severity = severities(one.severities)
        yield f"| [{name}](detectors/{name}.md) | {flags(one)} | {severity} | {one.maturity} |"


def _catalogue() -> Iterator[str]:
    for family, entries in families().items():
        yield f"\n## {family}\n"
        yield from (f"- [{one.id}](catalogue/{one.id}.md): {one.title}" for one in entries)


def _reasons() -> Iterator[str]:
    yield "| Reason | What it means |\n| --- | --- |"
    yield from (f"| `{one}` | {one.text} |" for one in Reason if not one.sends)


def _formats() -> Iterator[str]:
    yield from (f"- `{name}`" for name in formats())


def _decisions() -> Iterator[str]:
    for file in sorted((DOCS / "decisions").glob("*.md")):
        title = file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        yield f"- [{title}](decisions/{file.name})"


_TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "decisions": _decisions,
    "detectors": _detectors,
    "catalogue": _catalogue,
    "reasons": _reasons,
    "formats": _formats,
}
