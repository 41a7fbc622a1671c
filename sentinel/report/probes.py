"""The pages of `sentinel.probe` as Markdown: which numbers each set logs, and what they make sure."""

from collections.abc import Iterator

from sentinel.ground.errors import UnknownName
from sentinel.probes import discovery
from sentinel.probes.discovery import probe_sets


def index() -> str:
    """All sets with their numbers."""
    return "\n\n".join("\n".join(_numbers(name)) for name in probe_sets())


def page(name: str) -> str:
    """The page of a set. Raises UnknownName."""
    if name not in probe_sets():
        raise UnknownName("set of probes", name, [*probe_sets()])
    return "\n".join([*_numbers(name), "", discovery.page(name)])


def _numbers(name: str) -> Iterator[str]:
    probes = probe_sets()[name]
    yield f"# {name}"
    yield ""
    yield from (f"- `{number}`: {meaning}" for number, meaning in probes.shows.items())
    yield f"- makes sure: {', '.join(probes.entries)}"
    yield f"- cost: {probes.cost}"
