"""Which catalogue entry is behind an incident: the usual order, moved by what the run shows.

The usual order is that in which a finding cites the entries. The rules of a page that hold speak for its
entry (``confirms`` and ``checks``) or against it (``excludes``). How much the rules count was fitted to
labelled runs (`likelihoods.py`). Scores say how likely each entry is among those that are listed.

An entry that supposes what the run does not show, such as several ranks, is left out. Only where all cited
entries do, they stay, and each says what it supposes. A line that the run printed shows all that the entries
with this line suppose.

Rules see the row at which the incident fires or gets worse and what preceded it in the log. So causes are
the same however the log was cut into polls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel.alerts.likelihoods import Listed, likelihoods
from sentinel.catalogue import Entry
from sentinel.catalogue.needs import not_shown
from sentinel.catalogue.rules import Clues


@dataclass(frozen=True)
class PossibleCause:
    """An entry that may be behind an incident. The scores of all of an incident's add up to 1."""

    id: str
    score: float
    because: str  # what in the run speaks for it and against it; may be empty
    supposes: tuple[str, ...] = ()  # what the run does not show, because no entry was left that it shows

    @property
    def reasons(self) -> str:
        """What speaks for it and against it, and what it supposes; may be empty."""
        supposed = f"it supposes {' and '.join(self.supposes)}, which the run does not show"
        return "; ".join(filter(None, (self.because, supposed if self.supposes else "")))


def share(cause: PossibleCause, causes: Sequence[PossibleCause]) -> str:
    """How likely the first cause is, "80%"; empty if no clue of the run made it, and for other causes.

    Labelled runs show how often the first is right. Of the others they do not: several may be one trouble.
    """
    return f"{cause.score:.0%}" if cause == causes[0] and any(one.because for one in causes) else ""


def possible_causes(
    cited: Sequence[str], clues: Clues, entries: Mapping[str, Entry]
) -> tuple[PossibleCause, ...]:
    """The cited entries that the run allows, likeliest first; of equal ones the more usual first."""
    supposed = {id_: _supposed(entries[id_], clues) for id_ in cited}
    shown = [id_ for id_ in cited if not supposed[id_]] or cited
    listed, reasons = [], []
    for entry in (entries[id_] for id_ in shown):
        speaks_for = [rule.because for rule in (*entry.checks, *entry.confirms) if rule.holds(clues)]
        against = [rule.because for rule in entry.excludes if rule.holds(clues)]
        listed.append(Listed(entry.id, len(speaks_for), len(against)))
        reasons.append("; ".join([*speaks_for, *(f"against it: {reason}" for reason in against)]))
    found = [
        PossibleCause(id_, round(share, 3), because, supposed[id_])
        for id_, share, because in zip(shown, likelihoods().shares(listed), reasons, strict=True)
    ]
    return tuple(sorted(found, key=lambda cause: -cause.score))


def _supposed(entry: Entry, clues: Clues) -> tuple[str, ...]:
    """What the entry supposes and the run does not show."""
    printed = entry.is_printed(str(clues.evidence.get("text", "")), str(clues.evidence.get("place", "")))
    return () if printed else not_shown(entry.needs, clues)
