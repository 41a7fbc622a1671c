"""How likely each catalogue entry of an incident is: numbers that were fitted to labelled runs.

`make strangers` fits them and writes `likelihoods.toml`, with the number of cases behind each. An entry has
the weight ``1 / rank``, by its rank among those that are listed. Each rule that speaks for it
multiplies the weight by ``confirms``, each that speaks against it divides it by ``excludes``. Its own
``factor`` says how much more often it was right than all this says; an entry with few cases has one near 1.

Several entries may describe one trouble, so the first is right more often than its share of the weights
says. ``offset`` and ``slope`` turn the logit of this share into that of how often it was right.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from sentinel.ground.conversion import converter

_SURE = 0.99
"""Shares beyond this count as this before they are compared with how often the first was right."""


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

    def weights(self, listed: "Sequence[Listed]") -> list[float]:
        """The shares of the weights of entries that are listed in their usual order."""
        weights = [
            self._factor(one.id) * self.confirms**one.confirms / self.excludes**one.excludes / rank
            for rank, one in enumerate(listed, 1)
        ]
        whole = sum(weights)
        return [weight / whole for weight in weights]

    def shares(self, listed: "Sequence[Listed]") -> list[float]:
        """How likely each of them is. The shares add up to 1."""
        weights = self.weights(listed)
        if len(weights) < 2:
            return weights
        most = max(weights)
        first = max(self.calibrated(most), 1 / 2)
        likeliest = weights.index(most)
        return [
            first if place == likeliest else weight * (1 - first) / (1 - most)
            for place, weight in enumerate(weights)
        ]

    def calibrated(self, share: float) -> float:
        """How often the first is right that has this share of the weights."""
        return 1 / (1 + math.exp(-self.offset - self.slope * logit(share)))

    def _factor(self, entry: str) -> float:
        return self.entries[entry].factor if entry in self.entries else 1.0


@dataclass(frozen=True)
class Listed:
    """An entry, and how many of its rules speak for it and against it."""

    id: str
    confirms: int
    excludes: int


def logit(share: float) -> float:
    """The logarithm of the odds, bounded."""
    share = min(max(share, 1 - _SURE), _SURE)
    return math.log(share / (1 - share))


_to_likelihoods = converter(Likelihoods)


@cache
def likelihoods() -> Likelihoods:
    """Those that sentinel uses. Raises msgspec.ValidationError for a file that holds others."""
    told: Mapping[str, object] = tomllib.loads((files(__package__) / "likelihoods.toml").read_text("utf-8"))
    return _to_likelihoods(told)
