"""Scores the catalogue entries that may be behind an incident: the usual order, moved by what the run shows.

The usual order is that in which a finding cites the entries. The rules of a page that hold speak for its
entry (``confirms`` and ``checks``) or against it (``excludes``). How much a rule counts was fitted to
labelled runs. A score says how likely an entry is among those that are listed.

`make strangers` fits these numbers and writes `likelihoods.toml`, with the number of cases behind each. An
entry has the weight ``1 / rank``, by its rank among those that are listed. Each rule that speaks for it
multiplies the weight by ``confirms``, and each that speaks against it divides the weight by ``excludes``.
The ``factor`` of an entry corrects this by how often the entry was right in the labelled runs. With few
cases the factor is near 1.

Several entries may describe one problem, so the first one is right more often than its share of the weights
says. ``offset`` and ``slope`` turn the logit of that share into the logit of how often it is right.

Facts are what the curves and the printed lines of this run say; circumstances are its settings, its framework
and which signals it logs. A fact counts three times, and all circumstances together once, so that no settings
outvote a curve. An entry that a fact speaks against, and none for, is left out.

An entry that needs what the run does not show, such as several ranks, is left out. If this would leave out
every cited entry, all stay, and each says what it needs. A printed line shows everything that the entries
with this line need.

Rules see the row at which the incident fires or gets worse and what preceded it in the log. So causes are
the same however the log was cut into polls.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Self

import msgspec

from sentinel.catalogue import Entry
from sentinel.catalogue.rules import CauseRule, Clues, not_shown
from sentinel.common.conversion import converter

_AGAINST = "against it: "
_OF_A_FACT = 3
_MAX_CAUSE_SHARE = 0.99
"""Shares are cut to between 1 % and 99 % before calibration, because the logit of 0 or 1 is infinite."""


class Fitted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the labelled runs say of an entry: cases in which it was right, and in which it was expected."""

    factor: float
    right: float
    expected: float


class Likelihoods(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted numbers, as the module describes them, and the cases behind them."""

    runs: int
    cases: int
    confirmed: int  # cases with a rule that speaks for an entry
    excluded: int  # and with one that speaks against one
    confirms: float
    excludes: float
    offset: float
    slope: float
    entries: dict[str, Fitted]

    def weights(self, candidates: "Sequence[Listed]") -> list[float]:
        """Return the shares of the weights of entries, which come in their usual order."""
        weights = [
            self._factor(entry.id) * self.confirms**entry.confirms / self.excludes**entry.excludes / rank
            for rank, entry in enumerate(candidates, 1)
        ]
        total = sum(weights)
        return [weight / total for weight in weights]

    def shares(self, candidates: "Sequence[Listed]") -> list[float]:
        """Return how likely each entry is. The shares add up to 1."""
        weights = self.weights(candidates)
        if len(weights) < 2:
            return weights
        largest = max(weights)
        likeliest = weights.index(largest)
        share_of_likeliest = max(self.calibrated(largest), 1 / 2)
        others = 1 - share_of_likeliest
        return [
            share_of_likeliest if index == likeliest else weight * others / (1 - largest)
            for index, weight in enumerate(weights)
        ]

    def calibrated(self, share: float) -> float:
        """Return how often the first entry is right if it has this share of the weights."""
        return 1 / (1 + math.exp(-self.offset - self.slope * logit(share)))

    def _factor(self, entry: str) -> float:
        return self.entries[entry].factor if entry in self.entries else 1.0


class Listed(msgspec.Struct, frozen=True):
    """An entry, and how much speaks for it and against it."""

    id: str
    confirms: int
    excludes: int

    @classmethod
    def of(cls, entry: str, speaks_for: Sequence[CauseRule], against: Sequence[CauseRule]) -> Self:
        """Weigh the rules that hold."""
        return cls(entry, _weight(speaks_for), _weight(against))


def _weight(rules: Sequence[CauseRule]) -> int:
    """Return what rules count for together: each fact three times, and all circumstances once."""
    facts = sum(rule.is_fact for rule in rules)
    return _OF_A_FACT * facts + (len(rules) > facts)


def _is_contradicted(speaks_for: Sequence[CauseRule], against: Sequence[CauseRule]) -> bool:
    """Return whether a fact speaks against an entry, and none for it."""
    return any(rule.is_fact for rule in against) and not any(rule.is_fact for rule in speaks_for)


def logit(share: float) -> float:
    """Return the logarithm of the odds, bounded."""
    share = min(max(share, 1 - _MAX_CAUSE_SHARE), _MAX_CAUSE_SHARE)
    return math.log(share / (1 - share))


_to_likelihoods = converter(Likelihoods)


@cache
def likelihoods() -> Likelihoods:
    """Return the fitted numbers. Raises msgspec.ValidationError if their file has another form."""
    return _to_likelihoods(tomllib.loads((files(__package__) / "likelihoods.toml").read_text("utf-8")))


class PossibleCause(msgspec.Struct, frozen=True):
    """An entry that may be behind an incident. The scores of all causes of an incident add up to 1."""

    id: str
    score: float
    reason: str  # what in the run speaks for it and against it; may be empty
    unmet_needs: tuple[str, ...] = ()  # what the run does not show; empty unless no other entry was left

    @property
    def favoured(self) -> bool:
        """Whether something in the run speaks for it, which its reasons then begin with."""
        return bool(self.reason) and not self.reason.startswith(_AGAINST)

    @property
    def reasons(self) -> str:
        """What speaks for it and against it, and what it needs; may be empty."""
        needs = f"it supposes {' and '.join(self.unmet_needs)}, which the run does not show"
        return "; ".join(filter(None, (self.reason, needs if self.unmet_needs else "")))


def share(cause: PossibleCause, causes: Sequence[PossibleCause]) -> str:
    """Return how likely the first cause is, "80%"; empty for other causes, and if no clue of the run speaks
    for it.

    Labelled runs show how often the first cause is right. They do not show it for the others, because several
    may describe one problem.
    """
    return f"{cause.score:.0%}" if cause == causes[0] and cause.favoured else ""


def possible_causes(
    cited: Sequence[str], clues: Clues, entries: Mapping[str, Entry]
) -> tuple[PossibleCause, ...]:
    """Return the cited entries that the run allows, the likeliest first; of equals the more usual first."""
    text = str(clues.evidence.get("text", ""))
    raised_in = str(clues.evidence.get("place", ""))
    unmet_needs = {
        id_: () if entries[id_].is_printed(text, raised_in) else not_shown(entries[id_].needs, clues)
        for id_ in cited
    }
    possible = [entry_id for entry_id in cited if not unmet_needs[entry_id]] or cited
    weighed = [_weigh(entries[id_], clues) for id_ in possible]
    weighed = [candidate for candidate in weighed if not candidate.is_contradicted] or weighed
    shares = likelihoods().shares([candidate.listed for candidate in weighed])
    causes = [
        PossibleCause(
            candidate.listed.id, round(share, 3), candidate.reason, unmet_needs[candidate.listed.id]
        )
        for candidate, share in zip(weighed, shares, strict=True)
    ]
    return tuple(sorted(causes, key=lambda cause: -cause.score))


class _WeighedEntry(msgspec.Struct, frozen=True):
    """A listed entry, with what the run says of it in words."""

    listed: Listed
    reason: str
    is_contradicted: bool


def _weigh(entry: Entry, clues: Clues) -> _WeighedEntry:
    speaks_for = [rule for rule in (*entry.checks, *entry.confirms) if rule.speaks(clues)]
    against = [rule for rule in entry.excludes if rule.speaks(clues)]
    reasons = [rule.because for rule in speaks_for] + [f"{_AGAINST}{rule.because}" for rule in against]
    return _WeighedEntry(
        Listed.of(entry.id, speaks_for, against), "; ".join(reasons), _is_contradicted(speaks_for, against)
    )
