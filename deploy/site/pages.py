"""All pages of the docs site as Markdown, by their path on the site.

They are written for GitHub, where a link leads to a file of the repository. On the site it leads to the page
that is made of this file; a file that is no page is named and not linked. What a page takes from elsewhere
(recipes, tables of the code) stands in it between marks, and `make docs` renews it.
The pages of detectors and of catalogue entries are those of `sentinel explain`.
"""

import posixpath
import re
from pathlib import Path

from sentinel import catalogue
from sentinel.detectors.discovery import all_detectors
from sentinel.report.pages import page

ROOT = Path(__file__).parents[2]
DOCS = Path(__file__).parent / "docs"

# A block of code, code within a line, or a line that is indented like code: no link stands there.
_CODE = r"^```.*?^```|`[^`\n]*`|^ {4}.*?$"
_LINK = r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)"
_CODE_OR_LINK = re.compile(rf"{_CODE}|{_LINK}", re.MULTILINE | re.DOTALL)

_COPIED = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files of the repository outside the docs that are pages of the site."""


def pages() -> dict[str, str]:
    """Return the Markdown of every page."""
    sources = {file.relative_to(ROOT).as_posix(): file for file in DOCS.rglob("*.md")}
    sources |= {name: ROOT / name for name in _COPIED}
    found = {_places()[name]: _relinked(file.read_text("utf-8"), name) for name, file in sources.items()}
    figures = _figures()
    for name in all_detectors():
        found[f"detectors/{name}.md"] = _linked(page(name), "detectors") + figures.get(name, "")
    for id_ in catalogue.load():
        found[f"catalogue/{id_}.md"] = _linked(page(id_), "catalogue")
    return found


def _places() -> dict[str, str]:
    """Return where on the site each file of the repository is shown that a page may link."""
    docs = {
        file.relative_to(ROOT).as_posix(): file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.*")
    }
    detectors = {
        file.relative_to(ROOT).as_posix(): f"detectors/{name}.md"
        for file in (ROOT / "detectors").glob("*/*.py")
        if (name := file.stem.replace("_", "-")) in all_detectors()
    }
    entries = {f"sentinel/catalogue/{id_}.md": f"catalogue/{id_}.md" for id_ in catalogue.load()}
    return _COPIED | docs | detectors | entries


def _relinked(text: str, file: str) -> str:
    """Return the text of a file of the repository with links to pages of the site."""
    places = _places()
    home = posixpath.dirname(places[file])

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if not target or "://" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if path not in places:
            return f"{found['text']} (`{path}`)" if found["text"] != path else f"`{path}`"
        place = posixpath.relpath(places[path], home)
        return f"{found['image']}[{found['text']}]({place}{found['anchor'] or ''})"

    return _CODE_OR_LINK.sub(lambda found: found[0] if found["target"] is None else link(found), text)


def _linked(text: str, folder: str) -> str:
    """Return the page of a detector or of an entry, with links to those that it names."""
    places = {name: f"detectors/{name}.md" for name in all_detectors()}
    places |= {id_: f"catalogue/{id_}.md" for id_ in catalogue.load()}

    def to(name: str) -> str:
        return f"[{name}]({posixpath.relpath(places[name], folder)})" if name in places else name

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
