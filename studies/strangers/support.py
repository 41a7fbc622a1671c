"""What each variant stands on: the repositories in which it is right, and recall without a fold of them."""

from collections.abc import Collection, Mapping, Sequence

from sentinel.detectors.api import Detector, Maturity, Severity
from sentinel.detectors.discovery import all_detectors
from studies.strangers.judge import Outcome
from tests.tools.docs import table

FLOOR = 3
"""Repositories that have to support a variant that is more than the definition of its fault."""

HEAD = """**Fitted** is the recall with all variants. **Left out** judges each fold by only those variants
that are right in a repository of another fold: what nothing but the fold itself shows to be right does not
count there. Each of the faults is a repository of its own, and most have a variant of their own, so their gap
says little.

"""


def support(outcomes: Sequence[Outcome]) -> Mapping[str, set[str]]:
    """The repositories with runs on which a variant is right, by its name."""
    found: dict[str, set[str]] = {}
    for one in outcomes:
        for name in one.hits if one.label.healthy is False else ():
            found.setdefault(name, set()).add(one.label.repository)
    return found


def gap(outcomes: Sequence[Outcome]) -> str:
    """The section on recall with all variants, and with those that other folds support."""
    kinds = dict.fromkeys(one.label.kind for one in outcomes)
    rows = []
    for kind in kinds:
        there = [one for one in outcomes if one.label.kind == kind and one.label.healthy is False]
        wanted = sum(one.wanted for one in there)
        if wanted:
            fitted = sum(one.found for one in there) / wanted
            left_out = sum(_found(one, _supported(outcomes, one.label.fold)) for one in there) / wanted
            rows.append([kind, f"{fitted:.3f}", f"{left_out:.3f}", f"{fitted - left_out:.3f}"])
    return HEAD + table(["Logs", "Fitted", "Left out", "Gap"], rows)


def weak(outcomes: Sequence[Outcome]) -> str:
    """The variants that sinks hear of and that fewer repositories support, with their number."""
    found = support(outcomes)
    rows: list[tuple[list[str], list[str]]] = [([], []) for _ in range(FLOOR)]
    for name, one in all_detectors().items():
        if isinstance(one, Detector) and one.maturity is Maturity.STABLE:
            loud = [of for of, v in one.variants.items() if max(v.severities) > Severity.INFO]
            for full in (f"{name}: {variant}" for variant in loud):
                if (number := len(found.get(full, ()))) < FLOOR:
                    rows[number][len(loud) > 1].append(f"`{full}`")
    head = ["Repositories", "The only variant of its detector", "One of several"]
    return table(head, [[str(number), *map(", ".join, names)] for number, names in enumerate(rows)])


def judged_healthy(outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    """By detector, on how many healthy runs it judged something."""
    healthy = [one for one in outcomes if one.label.healthy and one.read]
    names = [name for name, one in all_detectors().items() if isinstance(one, Detector)]
    return {name: sum(name not in one.silent for one in healthy) for name in names}


def _supported(outcomes: Sequence[Outcome], fold: int) -> frozenset[str]:
    return frozenset(support([one for one in outcomes if one.label.fold != fold]))


def _found(one: Outcome, supported: Collection[str]) -> int:
    heard = one.said if one.label.info_is_enough else one.loud
    rang = {said.detector for said in heard if said.name in supported}
    return sum(not rang.isdisjoint(group) for group in one.label.expect)
