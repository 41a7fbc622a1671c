"""The pages of `sentinel.probe` as Markdown: which numbers each set logs, and what they make sure."""

from collections.abc import Collection, Sequence

from sentinel import catalogue
from sentinel.common.errors import UnknownName
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from sentinel.probes import discovery
from sentinel.probes.discovery import probe_sets
from sentinel.series.generic_names import fallback

_HEAD = "Number", "What it shows", "Set", "Cost", "Entries", "Detectors"
_OF_MANY = {"<group>": "0", "<layer>": "fc1", "<channel>": "0"}
"""What a name may hold for one of many, by how the pages write it."""


def names() -> Collection[str]:
    """Return the names of the sets of probes."""
    return probe_sets().keys()


def index() -> str:
    """Return a table of all numbers."""
    rows = [_row(name, number) for name, kind in probe_sets().items() for number in kind.shows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [_HEAD, ["---"] * len(_HEAD), *rows])


def page(name: str) -> str:
    """Return the page of a set. Raises UnknownName."""
    if name not in probe_sets():
        raise UnknownName("set of probes", name, [*probe_sets()])
    kind = probe_sets()[name]
    lines = [f"# {name}", "", *(f"- `{number}`: {meaning}" for number, meaning in kind.shows.items())]
    lines += [f"- makes sure: {', '.join(kind.entries)}", f"- cost: {kind.cost}"]
    return "\n".join([*lines, "", discovery.page(name)])


def judging(number: str) -> list[str]:
    """Return the names of the detectors that judge a number, or need it."""
    signal = signal_of(number)
    detectors = [detector for detector in all_detectors().values() if isinstance(detector, Detector)]
    return [
        detector.name
        for detector in detectors
        if signal is not None and signal in (*detector.judges, *detector.needs)
    ]


def signal_of(number: str) -> Signal | None:
    """Return what sentinel reads a number as."""
    for many, one_of_them in _OF_MANY.items():
        number = number.replace(many, one_of_them)
    meaning = fallback(number)
    return meaning.signal if meaning else None


def _row(name: str, number: str) -> Sequence[str]:
    kind = probe_sets()[name]
    asking = [entry.id for entry in catalogue.load().values() if number in entry.probes]
    cells = [f"`{number}`", kind.shows[number], f"`{name}`", kind.cost.value]
    return [*cells, ", ".join(asking), ", ".join(f"`{detector}`" for detector in judging(number))]
