"""Which catalogue entry is behind an incident: the usual order, moved by what the run shows.

An entry that stands at rank n of those that a finding cites has the weight 1/n. Each rule of its page that
holds multiplies the weight by four (``confirms`` and ``checks``) or divides it by four (``excludes``). So one
clue moves an entry past some that are more usual, and two outdo nearly any order. Scores are the shares of
the weights.

Rules see the row at which the incident fires or gets worse and what preceded it in the log. So causes are
the same however the log was cut into polls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel.catalogue import Entry
from sentinel.catalogue.rules import Clues

_CLUE = 4.0
"""By how much one clue changes an entry's odds: from likely to doubtful, as between ranks 1 and 4."""


@dataclass(frozen=True)
class PossibleCause:
    """An entry that may be behind an incident. The scores of all of an incident's add up to 1."""

    id: str
    score: float
    because: str  # what in the run speaks for it and against it; may be empty


def possible_causes(
    cited: Sequence[str], clues: Clues, entries: Mapping[str, Entry]
) -> tuple[PossibleCause, ...]:
    """The cited entries, likeliest first; of equal ones the more usual first."""
    weights, reasons = [], []
    for rank, entry in enumerate((entries[id_] for id_ in cited), 1):
        speaks_for = [rule.because for rule in (*entry.checks, *entry.confirms) if rule.holds(clues)]
        against = [rule.because for rule in entry.excludes if rule.holds(clues)]
        weights.append(_CLUE ** (len(speaks_for) - len(against)) / rank)
        reasons.append("; ".join([*speaks_for, *(f"against it: {reason}" for reason in against)]))
    whole = sum(weights)
    found = [
        PossibleCause(id_, round(weight / whole, 3), because)
        for id_, weight, because in zip(cited, weights, reasons, strict=True)
    ]
    return tuple(sorted(found, key=lambda cause: -cause.score))
