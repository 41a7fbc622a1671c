"""Why an expected alert did not come, for each run that lacks one, without its name."""

from collections.abc import Iterator, Sequence

from studies.strangers.judge import Outcome
from tests.tools.docs import table

HEAD = """A line for each run that lacks an expected alert.

- **As info**: a right incident shows in reports. Its rule pages nobody while there may be a harmless reason.
- **Not in the log**: none of the wanted detectors could judge a row, for these reasons.
- **Not solved**: they judged and said nothing.

"""


def misses(outcomes: Sequence[Outcome]) -> str:
    """The section on runs that lack an expected alert."""
    head = ["Logs", "Points", "One of these was wanted", "Why it did not come", "What rang instead"]
    return HEAD + table(head, [*_rows(outcomes)])


def _rows(outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    for one in outcomes:
        if one.label.healthy is False and one.found < one.wanted:
            wanted = sorted(frozenset().union(*one.label.expect))
            instead = dict.fromkeys(said.name for said in one.loud)
            cells = ", ".join(f"`{name}`" for name in wanted), _why(one, wanted)
            yield [one.label.kind, f"{one.length:,}", *cells, ", ".join(f"`{name}`" for name in instead)]


def _why(one: Outcome, wanted: Sequence[str]) -> str:
    if one.found_with_info == one.wanted:
        return "as info"
    if not one.read:
        return "not in the log: no scalar"
    if all(name in one.silent for name in wanted):
        return "not in the log: " + ", ".join(dict.fromkeys(one.silent[name] for name in wanted))
    return "not solved"
