"""The groups of siblings among listed runs, for a person and as data."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from sentinel.common.text import clean_text

if TYPE_CHECKING:
    from sentinel.replays.listing import Siblings

_MAX_VALUES = 5


class SiblingsBody(TypedDict):
    """Runs of one training program, by their names, and the values of the settings in which they differ."""

    runs: list[str]
    differ: dict[str, list[str]]


def sibling_bodies(all_siblings: "Sequence[Siblings]") -> list[SiblingsBody]:
    """Return the groups as data."""
    return [
        {
            "runs": [run.overview.name for run in siblings.runs],
            "differ": {name: list(values) for name, values in siblings.differ.items()},
        }
        for siblings in all_siblings
    ]


def sibling_lines(all_siblings: "Sequence[Siblings]") -> Iterator[tuple[int, str]]:
    """Yield the groups of siblings, with what differs within each; see `sentinel.report.listing.lines`."""
    for siblings in all_siblings:
        framework = siblings.runs[0].overview.understanding.framework
        program = f" of {framework}" if framework else ""
        yield 0, f"{len(siblings.runs)} siblings{program}, {_differ(siblings)}"
        yield from ((2, clean_text(run.overview.name)) for run in siblings.runs)
    if not all_siblings:
        yield 0, "no siblings: no two runs log the same tags and differ in few settings"


def _differ(siblings: "Siblings") -> str:
    settings = []
    for name, setting_values in siblings.differ.items():
        first_values = ", ".join(clean_text(value, 40) for value in setting_values[:_MAX_VALUES])
        further = (
            f" and {len(setting_values) - _MAX_VALUES} more" if len(setting_values) > _MAX_VALUES else ""
        )
        settings.append(f"{clean_text(name)} ({first_values}{further})")
    return f"which differ in {' and '.join(settings)}" if settings else "with equal settings"
