"""Builds the Markdown pages of detectors and catalogue entries from their declarations."""

from collections.abc import Iterator

from detectors.api import Declaration, Detector
from detectors.checks import RunCheck
from detectors.discovery import all_detectors
from sentinel import catalogue
from sentinel.errors import UnknownName


def page(name: str) -> str:
    """The page of a detector or of a catalogue entry.

    Raises UnknownName.
    """
    detectors, entries = all_detectors(), catalogue.load()
    if name in detectors:
        return "\n".join(_detector(detectors[name]))
    if name in entries:
        return "\n".join(_entry(entries[name]))
    raise UnknownName("detector or catalogue entry", name, [*detectors, *entries])


def _detector(detector: Declaration) -> Iterator[str]:
    yield f"# {detector.name}\n"
    yield f"{detector.page}\n"
    yield "## What it reads\n"
    match detector:
        case Detector():
            for role, names in (
                ("judges", detector.judges),
                ("needs at the same step", detector.needs),
                ("also uses", dict.fromkeys(use.signal for use in detector.uses)),
                ("settings of the run", detector.settings),
            ):
                if names:
                    yield f"- {role}: {', '.join(f'`{name}`' for name in names)}"
        case RunCheck():
            yield f"- {detector.reads}"
    yield f"\n## Parameters\n\nSet in sentinel.toml under `[detectors.{detector.name}]`.\n"
    for name, parameter in detector.parameters.items():
        yield f"- `{name} = {parameter.default}`: {parameter.meaning}"
    yield f"\n## What it says ({detector.maturity})\n"
    for name, variant in detector.variants.items():
        yield f"- **{name}**: {variant.message} ({', '.join(variant.catalogue)})"
    yield "\n## What it may be\n"
    entries = catalogue.load()
    for entry in (entries[id_] for id_ in detector.catalogue):
        yield f"- **{entry.id}**: {entry.title}. {entry.fix}"


def _entry(entry: catalogue.Entry) -> Iterator[str]:
    yield f"# {entry.id}: {entry.title}\n"
    yield f"**First thing to try.** {entry.fix}\n"
    yield f"**The check that tells.** {entry.check}\n"
    yield f"{entry.body}\n"
    for title, rules in (("confirms", entry.confirms), ("excludes", entry.excludes)):
        if rules:
            yield f"## What in a run {title} it\n"
            yield from (f"- {rule}: {rule.because}" for rule in rules)
            yield ""
    citing = [name for name, detector in all_detectors().items() if entry.id in detector.catalogue]
    for label, names in (("Look-alikes", entry.siblings), ("Detectors", citing), ("Sources", entry.source)):
        if names:
            yield f"{label}: {', '.join(names)}\n"
