"""Builds the Markdown pages of detectors and catalogue entries from their declarations."""

import json
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

import sentinel.detectors
from sentinel import catalogue
from sentinel.catalogue.index import families, search, unwritten
from sentinel.common.errors import UnknownName
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import one_of
from sentinel.detectors.api import Declaration, Detector, Maturity, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.run_checks import RunCheck

if TYPE_CHECKING:
    from sentinel.config.rules import WrittenRule

_MAX_COLUMNS = 80
_PICTURE_INDENT = "    "  # of a line of a picture
_YEAR = timedelta(days=365)
_EVIDENCE_FORMAT = lazy_pattern(r"\{(\w+):[^{}]*\}")  # of a value in a message, such as `{level:.4g}`


class PageBody(TypedDict):
    """`sentinel explain NAME --format json`: a page, and of a catalogue entry what to try and how to tell."""

    schema: Literal[1]
    name: str
    markdown: str
    title: NotRequired[str]
    fix: NotRequired[str]
    check: NotRequired[str]


EXAMPLES = Path(sentinel.detectors.__file__).with_name("examples.toml")
"""By the name of a detector: what its golden looks like, and for which reasons it gives no verdict."""

_SENT = """Of several severities the usual one comes first. By default a sink is sent what is critical or a
warning, and in its quiet hours only what is critical; info stands in reports.
"""


def page(name: str, user_rules: "Callable[[], Sequence[WrittenRule]]" = tuple) -> str:
    """Return the page of a detector, a catalogue entry or a user's rule, by its name or that in kebab-case.

    ``user_rules`` is called if nothing else has the name. Raises UnknownName, and what ``user_rules`` raises.
    """
    detectors = all_detectors()
    catalogue_entries = catalogue.load()
    if name in detectors:
        return _wrapped("\n".join(_detector(detectors[name])))
    if name in catalogue_entries:
        return _wrapped("\n".join(_entry(catalogue_entries[name])))
    if name in unwritten():
        return _wrapped("\n".join(_unwritten(name)))
    rules = user_rules()
    for rule in rules:
        if name in (rule.rule.name, rule.rule.detector_name):
            return _wrapped("\n".join(_user_rule(rule)))
    rule_names = [rule.rule.detector_name for rule in rules]
    raise UnknownName(
        "detector, rule or catalogue entry", name, [*detectors, *rule_names, *catalogue_entries]
    )


def index(user_rules: "Sequence[WrittenRule]" = ()) -> str:
    """Return all detectors with what they flag, the user's rules, and the families of the catalogue."""
    page_lines = [*_detector_index(user_rules), "\n# Catalogue\n"]
    page_lines += [
        f"- **{family}**: {', '.join(entry.id for entry in entries)}"
        for family, entries in families().items()
    ]
    page_lines += ["\n`sentinel explain NAME` shows a page,"]
    page_lines += ["`sentinel explain --list catalogue` the titles of all entries."]
    return _wrapped("\n".join(page_lines))


def detectors(user_rules: "Sequence[WrittenRule]") -> str:
    """Return all detectors with what they flag, and the user's rules."""
    return _wrapped("\n".join(_detector_index(user_rules)))


def _detector_index(user_rules: "Sequence[WrittenRule]") -> list[str]:
    page_lines = [
        "# Detectors\n",
        *(f"- **{name}**: {flags(detector)}" for name, detector in all_detectors().items()),
    ]
    if user_rules:
        page_lines += ["\n# Rules of your own\n"]
        page_lines += [
            f"- **{written.rule.detector_name}**: {written.file}:{written.line}" for written in user_rules
        ]
    return page_lines


def titles() -> str:
    """Return the titles of all catalogue entries, by family."""
    return "\n\n".join(f"# {family}\n\n{_titles(entries)}" for family, entries in families().items())


def matches(words: Sequence[str]) -> str:
    """Return the titles of the catalogue entries whose pages hold all the words."""
    catalogue_entries = search(words)
    return (
        _titles(catalogue_entries)
        if catalogue_entries
        else f"No page of the catalogue holds {' and '.join(words)}."
    )


def stale(today: date) -> str:
    """Return the catalogue entries that were compared with their source over a year ago, the oldest first."""
    catalogue_entries = [entry for entry in catalogue.load().values() if today - entry.checked.date > _YEAR]
    catalogue_entries.sort(key=lambda entry: entry.checked.date)
    if not catalogue_entries:
        return "Every page of the catalogue was checked within the last year."
    return "\n".join(f"- **{entry.id}**: checked on {entry.checked}" for entry in catalogue_entries)


def flags(detector: Declaration) -> str:
    """Return the first paragraph of a detector's page, in one line."""
    return " ".join(detector.doc.split("\n\n")[0].split())


def severities(declared: Sequence[Severity]) -> str:
    """Join severities as people read them: "info or warning"."""
    return one_of(severity.label for severity in declared)


def _titles(catalogue_entries: Iterable[catalogue.Entry]) -> str:
    return "\n".join(f"- **{entry.id}**: {entry.title}" for entry in catalogue_entries)


def _unwritten(id_: str) -> Iterator[str]:
    yield f"# {id_} has no page\n"
    yield f"The documents behind the catalogue refer to {id_}, and none of them describes it. The nearest:\n"
    yield _titles(catalogue.load()[entry_id] for entry_id in unwritten()[id_])


def _detector(detector: Declaration) -> Iterator[str]:
    yield f"# {detector.name}\n"
    yield from _own_page(detector)
    yield "## What it reads\n"
    yield from _inputs(detector)
    if detector.parameters:
        yield f"\n## Parameters\n\nSet in sentinel.toml under `[detectors.{detector.name}]`.\n"
    for name, parameter in detector.parameters.items():
        yield f"- `{name} = {parameter.default}`: {parameter.meaning}"
    if detector.stricter:
        moved = ", ".join(f"`{name}`" for name in detector.stricter.names)
        yield f"- `stricter = 1.0`: factor that moves {moved}, so that it pages less"
    yield from _messages(detector)
    if detector.catalogue:
        yield "\n## What it may be\n"
    catalogue_entries = catalogue.load()
    for cited_entry in (catalogue_entries[id_] for id_ in detector.catalogue):
        yield f"- **{cited_entry.id}**: {cited_entry.title}. {cited_entry.fix}"


def _inputs(detector: Declaration) -> Iterator[str]:
    """Yield the signals that a detector reads, by what it needs them for; of a check, its own words."""
    match detector:
        case Detector():
            for role, signal_names in (
                ("judges", detector.judges),
                ("needs at the same step", detector.needs),
                ("also uses", dict.fromkeys(use.signal for use in detector.uses)),
                ("settings of the run", detector.settings),
            ):
                if signal_names:
                    yield f"- {role}: {', '.join(f'`{name}`' for name in signal_names)}"
        case RunCheck():
            yield f"- {detector.reads}"


def _messages(detector: Declaration) -> Iterator[str]:
    """Yield what a detector says in each of its variants, and who is sent it."""
    yield f"\n## What it says ({detector.maturity})\n"
    yield _SENT
    if detector.maturity is Maturity.PREVIEW:
        yield "This is a preview: only sinks with `include_preview = true` are sent anything of it.\n"
    for name, variant in detector.variants.items():
        cited = f" ({', '.join(variant.catalogue)})" if variant.catalogue else ""
        message = _EVIDENCE_FORMAT.sub(r"{\1}", variant.message)
        yield f"- **{name}** ({severities(variant.severities)}): {message}{cited}"


def _own_page(detector: Declaration) -> Iterator[str]:
    """Yield the rule's own page, with what is generated: an example, and when it does not judge."""
    example = _examples().get(detector.name, {})
    *sections, source = detector.doc.split("\n## ")
    yield "\n## ".join(sections).rstrip()
    yield "\n## When it does not judge\n"
    if isinstance(detector, RunCheck):
        yield "It looks at the whole run, whenever something that it reads is new."
    elif reasons := example.get("skipped"):
        yield "A point gets no verdict, because of\n"
        yield from (f"- {reason}" for reason in reasons)
    else:
        yield "It judges every point."
    if picture := example.get("picture"):
        yield f"\n## What it looks like\n\n{picture.rstrip()}"
    yield f"\n## {source}\n"


@cache
def _examples() -> dict[str, Any]:
    return tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))


def _user_rule(written: "WrittenRule") -> Iterator[str]:
    rule = written.rule
    detector = written.rule.detector()
    yield f"# {detector.name}\n"
    yield f"A rule of your own, at {written.file}:{written.line}:\n"
    for rule_key, rule_value in written.keys.items():
        meaning = type(rule).model_fields[rule_key].description
        yield f"- `{rule_key} = {json.dumps(rule_value, ensure_ascii=False)}`: {meaning}"
    yield "\n## When it fires and when it is over\n"
    if isinstance(detector, RunCheck):
        yield "It fires as soon as the tag is missing, and is over when the tag is logged again.\n"
    else:
        wrong = (
            "at the first wrong point"
            if detector.hold == 1
            else f"when {detector.hold} points in a row are wrong"
        )
        yield f"It fires {wrong}, and is over when {detector.clear} points in a row are right.\n"
    yield "## What it says\n"
    yield _SENT
    for variant in detector.variants.values():
        yield f"- {severities(variant.severities)}: {variant.message}"


def _entry(cited_entry: catalogue.Entry) -> Iterator[str]:
    yield f"# {cited_entry.id}: {cited_entry.title}\n"
    yield f"**First thing to try.** {cited_entry.fix}\n"
    yield f"**The check that tells.** {cited_entry.check}\n"
    yield f"{cited_entry.body}\n"
    page_lines = []
    for signature in cited_entry.signatures:
        raised = f", raised in `{signature.raised}`" if signature.raised else ""
        page_lines.append(f"`{signature.pattern or signature.text}` ({signature.level}){raised}")
    for title, page_items in (
        ("What in a run confirms it", [f"{rule.because} ({rule})" for rule in cited_entry.confirms]),
        ("What in a run excludes it", [f"{rule.because} ({rule})" for rule in cited_entry.excludes]),
        ("Settings that point to it", [f"{rule.because} ({rule})" for rule in cited_entry.checks]),
        ("Lines that point to it", page_lines),
        ("What to log for it", [f"`{name}`: {what}" for name, what in cited_entry.probes.items()]),
        ("How it shows", [cited_entry.visibility] if cited_entry.visibility else []),
    ):
        if page_items:
            yield f"## {title}\n"
            yield from (f"- {item}" for item in page_items)
            yield ""
    citing = [name for name, detector in all_detectors().items() if cited_entry.id in detector.catalogue]
    for label, entry_ids in (
        ("Look-alikes", cited_entry.siblings),
        ("Detectors", citing),
        ("Sources", cited_entry.source),
    ):
        if entry_ids:
            yield f"{label}: {', '.join(entry_ids)}\n"
    yield f"Checked on {cited_entry.checked}\n"


def _wrapped(page: str) -> str:
    """Return the page with paragraphs and list items in lines of at most 80 characters."""
    page_lines: list[str] = []
    for line in page.splitlines():
        begins = not line or line.startswith(("#", "- ", _PICTURE_INDENT))
        if page_lines and page_lines[-1] and not begins and not page_lines[-1].startswith("#"):
            page_lines[-1] += f" {line.strip()}"
        else:
            page_lines.append(line)
    return "\n".join(_folded(line) for line in page_lines)


def _folded(page_line: str) -> str:
    indent = "  " if page_line.startswith("- ") else ""
    if page_line.startswith(("#", _PICTURE_INDENT)):
        return page_line
    return textwrap.fill(
        page_line, _MAX_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
