"""Fits how likely each catalogue entry is (`sentinel/incidents/causes.py`) to labels that name entries.

A case is an incident that its label expects and that lists entries. All cases of one run count as one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

from msgspec.structs import asdict, replace
from scipy.optimize import minimize

from sentinel.incidents.causes import Fitted, Likelihoods, Listed
from studies.strangers.judge import Outcome

BY_HAND = Likelihoods(
    runs=0, cases=0, confirmed=0, excluded=0, confirms=4.0, excludes=4.0, offset=0.0, slope=1.0,
    entries={},
)  # fmt: skip
"""What a person would take: rank n weighs 1/n, and one clue moves an entry past three that are more usual."""

_AS_BEFORE = 5.0
"""How much it costs to leave those: five cases' logarithm of the likelihood for a factor of e."""

_CASES_OF_AN_ENTRY = 4.0
"""The cases that an entry needs for half of what they say to be believed."""

_DOUBTED = 5.0
"""Cases of which half are taken as wrong, because some rules were written with some of the runs in view."""

_ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """The entries that an incident lists, which of them are right, and the share of its run."""

    listed: Sequence[Listed]
    right: Sequence[bool]
    share: float
    fold: int


@dataclass(frozen=True)
class Claim:
    """How likely the first entry was called, and whether it was right."""

    claimed: float
    right: bool
    share: float


def cases(outcomes: Iterable[Outcome]) -> list[Case]:
    """Those of all runs whose label names entries."""
    found = []
    for outcome in outcomes:
        label = outcome.label
        expected = frozenset().union(*label.expect) if label.catalogue else frozenset()
        told = [one for one in outcome.said if one.detector in expected and one.causes]
        found += [
            Case(one.causes, [cause.id in label.catalogue for cause in one.causes], 1 / len(told), label.fold)
            for one in told
        ]
    return found


def fitted(of: Sequence[Case]) -> Likelihoods:
    """The numbers that fit the cases best, drawn towards those set by hand where cases are few."""
    choices = [case for case in of if len(case.listed) > 1]
    weights = _weighed(choices)
    offset, slope = minimize(_misjudged, (0.0, 1.0), ([*_firsts(weights, choices)],), "Nelder-Mead").x
    return replace(
        weights,
        runs=round(sum(case.share for case in of)),
        cases=len(of),
        confirmed=sum(any(one.confirms for one in case.listed) for case in of),
        excluded=sum(any(one.excludes for one in case.listed) for case in of),
        offset=round(float(offset), 3),
        slope=round(max(float(slope), 0.0), 3),
    )


def claims(by: Likelihoods, of: Iterable[Case]) -> list[Claim]:
    """What these numbers claim of each case."""
    shares = [by.shares(case.listed) for case in of]
    return [
        Claim(max(one), case.right[one.index(max(one))], case.share)
        for one, case in zip(shares, of, strict=True)
    ]


def text(of: Likelihoods) -> str:
    """The file that sentinel reads."""
    told = asdict(of)
    entries = sorted(told.pop("entries").items())
    lines = ["# `make strangers` writes this file; `causes.py` says what it means.", ""]
    lines += [f"{name} = {value}" for name, value in told.items()]
    lines += ["", "[entries]"]
    lines += [
        f"{name} = {{factor = {one.factor}, right = {one.right}, expected = {one.expected}}}"
        for name, one in entries
    ]
    return "\n".join(lines) + "\n"


def _weighed(of: Sequence[Case]) -> Likelihoods:
    """The weights that make the right entries likeliest; those of entries and of rules by turns."""
    found = BY_HAND
    for _ in range(_ROUNDS):
        best = minimize(_unlikely, _logarithms(found), (found, of), "Nelder-Mead").x
        found = replace(_with(found, best), entries=_entries(_with(found, best), of))
    return found


def _logarithms(of: Likelihoods) -> tuple[float, ...]:
    return log(of.confirms), log(of.excludes)


def _with(of: Likelihoods, logarithms: Sequence[float]) -> Likelihoods:
    confirms, excludes = (round(exp(one), 3) for one in logarithms)
    return replace(of, confirms=confirms, excludes=excludes)


def _unlikely(logarithms: Sequence[float], before: Likelihoods, of: Sequence[Case]) -> float:
    """How unlikely the right entries are, and how far the numbers are from those set by hand."""
    by = _with(before, logarithms)
    moved = sum((a - b) ** 2 for a, b in zip(logarithms, _logarithms(BY_HAND), strict=True))
    likely = (sum(_right(by, case)) for case in of if any(case.right))
    shares = (case.share for case in of if any(case.right))
    return _AS_BEFORE * moved - sum(share * log(one) for share, one in zip(shares, likely, strict=True))


def _right(by: Likelihoods, case: Case) -> list[float]:
    """The shares of the entries, of those that are right."""
    return [share * right for share, right in zip(by.weights(case.listed), case.right, strict=True)]


def _entries(by: Likelihoods, of: Sequence[Case]) -> dict[str, Fitted]:
    """How often each entry was right, and how often that was expected from its rank and its rules."""
    right = Counter[str]()
    expected = Counter[str]()
    alike = replace(by, entries={})
    for case in of:
        if any(case.right):
            hits = _right(by, case)
            for one, hit, share in zip(case.listed, hits, alike.weights(case.listed), strict=True):
                right[one.id] += case.share * hit / sum(hits)
                expected[one.id] += case.share * share
    few = _CASES_OF_AN_ENTRY
    return {
        name: Fitted(
            round((right[name] + few) / (expected[name] + few), 3), round(right[name], 1), round(count, 1)
        )
        for name, count in expected.items()
    }


def _firsts(by: Likelihoods, of: Sequence[Case]) -> Iterable[Claim]:
    for case in of:
        weights = by.weights(case.listed)
        yield Claim(max(weights), case.right[weights.index(max(weights))], case.share)


def _misjudged(line: Sequence[float], firsts: Sequence[Claim]) -> float:
    """How unlikely it was what became of the firsts, with some more of which half were right."""
    offset, slope = line
    by = replace(BY_HAND, offset=offset, slope=max(slope, 0.0))
    chances = ((by.calibrated(one.claimed), one) for one in firsts)
    unlikely = sum(one.share * -log(chance if one.right else 1 - chance) for chance, one in chances)
    doubt = by.calibrated(1 / 2)
    return unlikely - _DOUBTED / 2 * log(doubt * (1 - doubt)) + (slope - 1) ** 2
