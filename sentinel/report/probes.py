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
_OF_MANY_TENSORS = {"<group>": "0", "<layer>": "fc1", "<channel>": "0"}
"""What a name may hold for one of many, by how the pages write it."""


def names() -> Collection[str]:
    """Return the names of the sets of probes."""
    return probe_sets().keys()


def index() -> str:
    """Return a table of all numbers."""
    number_rows = [_row(name, number) for name, kind in probe_sets().items() for number in kind.shows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [_HEAD, ["---"] * len(_HEAD), *number_rows])


def page(name: str) -> str:
    """Return the page of a set. Raises UnknownName."""
    if name not in probe_sets():
        raise UnknownName("set of probes", name, [*probe_sets()])
    probe_set = probe_sets()[name]
    page_lines = [
        f"# {name}",
        "",
        *(f"- `{number}`: {meaning}" for number, meaning in probe_set.shows.items()),
    ]
    page_lines += [f"- makes sure: {', '.join(probe_set.entries)}", f"- cost: {probe_set.cost}"]
    return "\n".join([*page_lines, "", discovery.page(name)])


def judging(probe_number: str) -> list[str]:
    """Return the names of the detectors that judge a number, or need it."""
    signal = signal_of(probe_number)
    detectors = [detector for detector in all_detectors().values() if isinstance(detector, Detector)]
    return [
        detector.name
        for detector in detectors
        if signal is not None and signal in (*detector.judges, *detector.needs)
    ]


def signal_of(probe_number: str) -> Signal | None:
    """Return what sentinel reads a number as."""
    for many, one_of_them in _OF_MANY_TENSORS.items():
        probe_number = probe_number.replace(many, one_of_them)
    meaning = fallback(probe_number)
    return meaning.signal if meaning else None


def _row(name: str, probe_number: str) -> Sequence[str]:
    probe_set = probe_sets()[name]
    asking = [entry.id for entry in catalogue.load().values() if probe_number in entry.probes]
    cells = [f"`{probe_number}`", probe_set.shows[probe_number], f"`{name}`", probe_set.cost.value]
    return [*cells, ", ".join(asking), ", ".join(f"`{detector}`" for detector in judging(probe_number))]
