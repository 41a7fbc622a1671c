"""The tables: what strangers' logs show of each detector and variant."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean

from studies.strangers.calibration import calibration
from studies.strangers.judge import Outcome
from studies.strangers.labels import FOLDS
from studies.strangers.likelihoods import cases
from studies.strangers.misses import misses
from studies.strangers.support import FLOOR, gap, judged_healthy, weak
from tests.tools.docs import table

LENGTHS = (10, 20, 50, 100, 1_000, 10_000)

HEAD = """# Detectors on strangers' logs

`make strangers` writes this page from a folder of labelled logs, which is no part of this project. Each
directory of logs has a label that says which detectors have to ring, or that the run is healthy.

- **Recall** is the share of the expected alerts that came: incidents of severity warning or critical of a
  stable detector. **By repository** is the mean over repositories, some of which hold many runs that are
  alike. **With info** counts incidents that only a report shows, too.
- **Flagged** is the share of healthy runs with an alert that the label does not allow.
- A **fold** holds whole repositories. What is fitted to some folds has to work on the others.
- **Length** is the number of points of the metric that has most of them.

"""

WEAK = """Of stable detectors, and only what sinks hear of. Many are the definition of their fault, such as a
loss scale that falls to its floor, and need no repository to be right. The others may be fitted to what few
people did, above all where a detector has several. A variant has a condition of its own: rules that differed
in their sentence alone are one.

"""

Outcomes = Sequence[Outcome]


def page(outcomes: Outcomes) -> str:
    """The tables that name no log."""
    return HEAD + "\n\n".join(
        [
            "## Summary\n\n" + _summary(outcomes),
            "## By fold\n\nRecall / flagged.\n\n" + _folds(outcomes),
            "## Healthy runs flagged, by length\n\n" + _lengths(outcomes),
            "## Missed\n\n" + misses(outcomes),
            "## Causes\n\n" + calibration(cases(outcomes)),
            "## Fitted and left out\n\n" + gap(outcomes),
            f"## Variants that fewer than {FLOOR} repositories support\n\n" + WEAK + weak(outcomes),
            "## Healthy runs judged\n\nOn how many of them a detector judged at least one row.\n\n"
            + _judged(outcomes),
            "## By detector and variant\n\nAlerts that are right, in how many repositories, on how many "
            "runs nothing else is right, alerts on healthy runs and in how many repositories. For each fold: "
            "right / on healthy runs.\n\n" + _variants(outcomes),
        ]
    )


def details(outcomes: Outcomes, left_out: int | None = None) -> str:
    """Everything, with each repository, each miss and each false alarm, but without the fold left out."""
    shown = [one for one in outcomes if one.label.fold != left_out]
    parts = [
        page(outcomes),
        "## By repository\n\n" + _repositories(shown),
        "## Missed, by name\n\n" + "\n".join(_missed(shown)),
        "## False alarms\n\n" + "\n".join(_wrong(_healthy(shown))),
        "## Rang for a reason that the label does not know\n\n" + "\n".join(_wrong(_problems(shown))),
        "## Not read\n\n" + "\n".join(f"- {one.label.path}" for one in shown if _is_unread(one)),
    ]
    return "\n\n".join(parts) + "\n"


def by_repository(outcomes: Outcomes) -> float | None:
    """The mean recall of the repositories."""
    groups = _groups(_problems(outcomes), lambda one: one.label.repository)
    return mean(_recall(group) or 0.0 for group in groups.values()) if groups else None


def _groups(outcomes: Outcomes, key: Callable[[Outcome], str]) -> Mapping[str, Outcomes]:
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(key(one), []).append(one)
    return groups


def _problems(outcomes: Outcomes) -> Outcomes:
    return [one for one in outcomes if one.label.healthy is False]


def _healthy(outcomes: Outcomes) -> Outcomes:
    return [one for one in outcomes if one.label.healthy]


def _is_unread(one: Outcome) -> bool:
    return not one.read and not one.label.may_be_unread


def _recall(outcomes: Outcomes, found: Callable[[Outcome], int] = lambda one: one.found) -> float | None:
    problems = _problems(outcomes)
    return sum(map(found, problems)) / sum(one.wanted for one in problems) if problems else None


def _flagged(outcomes: Outcomes) -> float | None:
    healthy = _healthy(outcomes)
    return sum(bool(one.wrong) for one in healthy) / len(healthy) if healthy else None


def _number(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def _summary(outcomes: Outcomes) -> str:
    head = ["Logs", "Faulty", "Healthy", "Recall", "By repository", "With info", "Flagged", "Not read"]
    rows = [
        [
            kind,
            str(len(_problems(of))),
            str(len(_healthy(of))),
            _number(_recall(of)),
            _number(by_repository(of)),
            _number(_recall(of, lambda one: one.found_with_info)),
            _number(_flagged(of)),
            str(sum(map(_is_unread, of))),
        ]
        for kind, of in _groups(outcomes, lambda one: one.label.kind).items()
    ]
    return table(head, rows)


def _folds(outcomes: Outcomes) -> str:
    rows = []
    for kind, of in _groups(outcomes, lambda one: one.label.kind).items():
        folds = [[one for one in of if one.label.fold == fold] for fold in range(FOLDS)]
        rows.append([kind, *(f"{_number(_recall(fold))} / {_number(_flagged(fold))}" for fold in folds)])
    return table(["Logs", *(f"Fold {fold}" for fold in range(FOLDS))], rows)


def _lengths(outcomes: Outcomes) -> str:
    rows = []
    for kind, of in _groups(outcomes, lambda one: one.label.kind).items():
        cells = []
        for above, up_to in zip((-1, *LENGTHS), (*LENGTHS, float("inf")), strict=True):
            there = [one for one in _healthy(of) if above < one.length <= up_to]
            cells.append(f"{sum(bool(one.wrong) for one in there)} of {len(there)}")
        rows.append([kind, *cells])
    return table(["Logs", *(f"up to {length:,}" for length in LENGTHS), "more"], rows)


def _judged(outcomes: Outcomes) -> str:
    return table(
        ["Detector", "Healthy runs"],
        [[f"`{name}`", str(runs)] for name, runs in judged_healthy(outcomes).items()],
    )


def _variants(outcomes: Outcomes) -> str:
    right: dict[str, list[Outcome]] = {}
    false: dict[str, list[Outcome]] = {}
    for one in outcomes:
        for name in one.hits if one.label.healthy is False else ():
            right.setdefault(name, []).append(one)
        for name in dict.fromkeys(said.name for said in one.wrong) if one.label.healthy else ():
            false.setdefault(name, []).append(one)
    rows = []
    for name in sorted({*right, *false}):
        found = right.get(name, [])
        rang = false.get(name, [])
        rows.append(
            [
                f"`{name}`",
                str(len(found)),
                str(len(_groups(found, lambda one: one.label.repository))),
                str(sum(len(one.hits) == 1 for one in found)),
                str(len(rang)),
                str(len(_groups(rang, lambda one: one.label.repository))),
                *(f"{_in_fold(found, fold)} / {_in_fold(rang, fold)}" for fold in range(FOLDS)),
            ]
        )
    head = ["Variant", "Right", "Repositories", "Alone", "Healthy", "Repositories"]
    return table([*head, *(f"Fold {fold}" for fold in range(FOLDS))], rows)


def _in_fold(outcomes: Outcomes, fold: int) -> int:
    return sum(one.label.fold == fold for one in outcomes)


def _repositories(outcomes: Outcomes) -> str:
    rows = []
    for name, of in _groups(outcomes, lambda one: f"{one.label.kind}: {one.label.repository}").items():
        problems = _problems(of)
        healthy = _healthy(of)
        if problems or healthy:
            hits = sorted({hit for one in problems for hit in one.hits})
            wrong = sorted({said.name for one in healthy for said in one.wrong})
            rows.append(
                [
                    name,
                    str(of[0].label.fold),
                    f"{sum(one.found for one in problems)} of {sum(one.wanted for one in problems)}",
                    f"{sum(bool(one.wrong) for one in healthy)} of {len(healthy)}",
                    ", ".join(f"`{hit}`" for hit in hits),
                    ", ".join(f"`{name}`" for name in wrong),
                ]
            )
    return table(["Repository", "Fold", "Found", "Flagged", "By", "Wrongly by"], rows)


def _missed(outcomes: Outcomes) -> Iterable[str]:
    for one in _problems(outcomes):
        if one.found < one.wanted:
            expected = sorted(frozenset().union(*one.label.expect))
            said = ", ".join(f"`{said.name}`{'' if said.loud else ' (info)'}" for said in one.said)
            why = "; ".join(f"`{name}` {one.silent[name]}" for name in expected if name in one.silent)
            yield (
                f"- **{one.label.path}** (fold {one.label.fold}, {one.length:,} points"
                f"{'' if one.read else ', not read'}): wanted {', '.join(expected)}. "
                f"Said: {said or 'nothing'}. Judged nothing: {why or 'none of them'}. _{one.label.notes}_"
            )


def _wrong(outcomes: Outcomes) -> Iterable[str]:
    for one in outcomes:
        for said in one.wrong:
            yield f"- **{one.label.path}** ({one.length:,} points): `{said.name}`: {said.summary}"
