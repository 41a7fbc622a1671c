"""The catalogue of training failures: one Markdown page an entry, with front matter.

A page is `<id>.md` in this folder. Its front matter has `title`, `fix` (the first thing to try, one
sentence), `check` (what would tell it from its siblings, one sentence), `siblings` (ids that look alike),
`needs` (what it supposes of a run, in the words of `needs.toml`), `source` (links) and `checked` (the source
that the page was last compared with, its version, and the day). It may have

- `signatures`: the console lines by which the entry is known (`Signature`);
- `confirms` and `excludes`: rules on what in a run speaks for or against the entry (`rules.py`);
- `checks`: rules on the settings of a run alone that are worth a look by themselves. A report shows those
  that hold, nobody is told of them, and each speaks for the entry as `confirms` does;
- `probes`: what a trainer can log to make the failure visible, and what each is;
- `seen`: how else the failure shows, or why no log shows it, one sentence. An entry that no detector,
  signature, check or probe points to must have it, and one that a detector cites must not.

Its body has the headings Symptom, Cause, Fix and Telling it apart.

`make docs` writes the front matter of all pages into `entries.json`, an entry a line, by which runs are
judged: to parse the pages would take longer than to judge a short run.

A plugin is a package whose folder holds such pages (`sentinel.plugins`); their ids begin with a capital
letter.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from sentinel.catalogue.rules import CauseRule, needs
from sentinel.common.conversion import converter
from sentinel.detectors.severity import Severity, SeverityName
from sentinel.plugins import Group, Plugin, use_plugins


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line that a training prints, by which an entry is known. ``entry`` is the id of its page.

    A line has the signature if it holds ``text`` and, where there is one, the regular expression ``pattern``.
    Of an exception, ``raised`` must be found in the place where it was raised: the last line of one's own
    code and the innermost one. A severity of `warning` or `critical` says that the line ends the training.
    `info` says that the training goes on and that the line is worth knowing; a report shows it, and nobody is
    told.
    """

    text: str
    level: SeverityName = msgspec.field(name="severity")
    pattern: str | None = None
    raised: str | None = None
    entry: str = ""

    @property
    def severity(self) -> Severity:
        """How bad a line is that has it."""
        return Severity.named(self.level)

    @property
    def key(self) -> str:
        """A name that no other signature has."""
        return f"{self.entry} {self.text} {self.pattern}"

    def is_in(self, line: str, raised_in: str = "") -> bool:
        """Return whether a line has it. ``raised_in`` is where it was raised, empty where nothing was."""
        return (
            self.text in line
            and (self.pattern is None or bool(re.search(self.pattern, line)))
            and (self.raised is None or bool(re.search(self.raised, raised_in)))
        )


_FENCE = "---"
"""The line above the front matter of a page, and below it."""

HEADINGS = ("## Symptom", "## Cause", "## Fix", "## Telling it apart")


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The source that a page was last compared with."""

    source: str
    version: str
    date: date

    def __str__(self) -> str:
        version = f"version {self.version}" if self.version[0].isdigit() else self.version
        return f"{self.date} against {self.source}, {version}"


_to_signature = converter(Signature)
_to_rules = converter(tuple[CauseRule, ...])
_to_checked = converter(Checked)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One failure: what it is called, what to try first, and its page."""

    id: str
    title: str
    fix: str
    check: str
    siblings: tuple[str, ...]
    needs: tuple[str, ...]
    source: tuple[str, ...]
    checked: Checked
    signatures: tuple[Signature, ...] = ()
    confirms: tuple[CauseRule, ...] = ()
    excludes: tuple[CauseRule, ...] = ()
    checks: tuple[CauseRule, ...] = ()
    probes: Mapping[str, str] = {}
    visibility: str = ""
    package: str = ""  # which brought it, such as `sentinel-acme 1.2`; empty for an entry of sentinel
    module: str = __name__  # in whose folder the page lies

    @property
    def body(self) -> str:
        """What stands on the page below its front matter."""
        _, _, body = _page_text(self.module, self.id).partition(f"\n{_FENCE}\n")
        return body.strip()

    def is_printed(self, line: str, raised_in: str) -> bool:
        """Return whether a line that the run printed is one by which the entry is known."""
        return any(signature.is_in(line, raised_in) for signature in self.signatures)


@cache
def signatures() -> tuple[Signature, ...]:
    """Return those of all entries, in the order of their ids."""
    return tuple(signature for entry in load().values() for signature in entry.signatures)


ENTRIES = files(__name__) / "entries.json"
"""The front matter of all pages of this folder."""

_stored_entries = msgspec.json.Decoder(tuple[Entry, ...])


@cache
def load() -> Mapping[str, Entry]:
    """Return every entry by id, those of plugins last.

    A plugin with a page that is not of the form of a page is left out.
    """
    built_in = {entry.id: entry for entry in _stored_entries.decode(ENTRIES.read_bytes())}
    plugins: dict[str, Entry] = {}

    def use(plugin: Plugin) -> None:
        brought = pages(plugin.thing.__name__, plugin.distribution)
        if not brought:
            raise ValueError("it has no page")
        for entry in brought:
            _check_entry(entry)
            if entry.id in built_in or entry.id in plugins:
                raise ValueError(f"two entries have the id {entry.id}")
        plugins.update({entry.id: entry for entry in brought})

    use_plugins(Group.CATALOGUE, use)
    return {**built_in, **plugins}


def pages(module: str = __name__, package: str = "") -> list[Entry]:
    """Return the entries of the pages in the folder of a module, in the order of their ids.

    Raises ValueError for a page whose front matter lacks a field, and msgspec.ValidationError for a rule, a
    signature or a check against a source that is not of its form.
    """
    import frontmatter  # slow to import

    all_files = (file.name for file in files(module).iterdir())
    names = sorted((name.removesuffix(".md") for name in all_files if name.endswith(".md")), key=_entry_order)
    return [
        _entry(name, frontmatter.loads(_page_text(module, name)).metadata, module, package) for name in names
    ]


def as_json(entries: Iterable[Entry]) -> bytes:
    """Return what `entries.json` says of some entries."""
    return b"[\n" + b",\n".join(map(msgspec.json.encode, entries)) + b"\n]\n"


def _page_text(module: str, name: str) -> str:
    return (files(module) / f"{name}.md").read_text(encoding="utf-8")


def _entry(name: str, meta: Mapping[str, Any], module: str, package: str) -> Entry:
    try:
        return Entry(
            id=name,
            title=meta["title"],
            fix=meta["fix"],
            check=meta["check"],
            siblings=tuple(meta["siblings"]),
            needs=tuple(meta["needs"]),
            source=tuple(meta["source"]),
            checked=_to_checked(meta["checked"]),
            signatures=tuple(_to_signature({**each, "entry": name}) for each in meta.get("signatures", ())),
            confirms=_to_rules(meta.get("confirms", ())),
            excludes=_to_rules(meta.get("excludes", ())),
            checks=_to_rules(meta.get("checks", ())),
            probes=dict(meta.get("probes", {})),
            visibility=meta.get("seen", ""),
            package=package,
            module=module,
        )
    except KeyError as error:
        raise ValueError(f"{name}: its front matter lacks {error.args[0]}") from None


def _check_entry(entry: Entry) -> None:
    """Raise ValueError for an entry of a plugin on which a report or a command would fail."""
    if re.match("[A-Z]", entry.id) is None:
        raise ValueError(f"the id {entry.id} does not begin with a capital letter")
    if unknown := sorted({*entry.needs} - needs().keys()):
        raise ValueError(f"{entry.id} needs {unknown[0]}, which is no word of needs.toml")


def cited(ids: Iterable[str]) -> list[dict[str, str]]:
    """Return what a notification says of some entries, in the same order; ids without a page are left out."""
    entries = load()
    return [
        {"id": i, "title": entries[i].title, "fix": entries[i].fix, "check": entries[i].check}
        for i in ids
        if i in entries
    ]


def _entry_order(name: str) -> list[str | int]:
    """Return a sort key by which O3 precedes O21."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
