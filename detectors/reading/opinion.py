"""The opinion of score cards on the outcome of a run, beside the rule of a detector.

A detector names the claims that it `reads`. Where a card pages and the rule is clean, or only informs, the
card is the finding: under the detector's name, in the same incident.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from sentinel.detectors.blocks import ROWS, by_count
from sentinel.detectors.declarations import History, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reading.cards import Card, card_of
from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import Curves, noise_of
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import PARTS, part_of
from sentinel.detectors.schema import (
    ABOVE,
    BELOW,
    ENDED,
    EXCUSED,
    FINDINGS,
    INDEX,
    ONSET,
    SERIES,
    SEVERITY,
    SIGNAL,
    SKIPPED,
    STEP,
    VALUE,
    VARIANT,
    Course,
)
from sentinel.detectors.severity import WARNING
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import FIRST_INTERVALS, Floats, was_resumed

HISTORY = History(recent=ROWS, head=FIRST_INTERVALS + 1, earlier=1, coarse=True)
"""What a detector that reads cards looks back at, at least."""

COURSES = tuple(Course(signal) for signal in PARTS)

MIN_PROGRESS = 1 / 3
"""Share of the plan before which a start is left in time."""

MIN_SHARE_OF_STEPS = 0.3
"""Of a run, that an attempt of few points which goes on from a resume has to cover, or it is no course."""

FEW_POINTS = 25
"""Points below which such an attempt has few."""

MAX_TOLD_LINES = 3
"""Of a card, in a message; the evidence has all of them."""

EVIDENCE: Mapping[str, Measure] = {
    "card_points": Measure("points of the card", Unit.NONE),
    "reading": Measure("heaviest lines of the card", Unit.TEXT),
    "card": Measure("card", Unit.TEXT),
}
"""What a card shows beside its finding."""

OPINION: Mapping[str, pl.DataType] = {
    SERIES: FINDINGS[SERIES],
    INDEX: FINDINGS[INDEX],
    "card_variant": pl.String(),
    "card_severity": FINDINGS[SEVERITY],
    "card_onset": FINDINGS[ONSET],
    "card_points": pl.Float64(),
    "reading": pl.String(),
    "card": pl.String(),
}


def variant_of(card: Card) -> Variant:
    """Return the variant of a detector that a card gives it."""
    return Variant("{reading}", card.catalogue)


def courses_of(claims: Collection[str]) -> tuple[Course, ...]:
    """Return the courses of other signals that the cards of claims ask for."""
    asked = {one for card in _with_rivals([*claims]) for one in card.measurements}
    roles = {companion.role for name, companion in COMPANY.items() if name in asked}
    # What a signal is may depend on those beside it.
    beside = {Signal.REWARD, Signal.EVAL_REWARD, Signal.POLICY_LOSS}
    return tuple(use for use in COURSES if PARTS[use.signal].role in roles or use.signal in beside)


def with_opinion(points: pl.DataFrame, findings: pl.LazyFrame, claims: Sequence[str]) -> pl.LazyFrame:
    """Return findings of a rule with those of cards where these weigh more and the rule knows no excuse.

    ``findings`` have their severities. The frame of ``points`` is the WINDOW frame that the rule judged.
    """
    opinion = _opinions(points, claims)
    joined = findings.join(opinion.lazy(), on=[SERIES, INDEX], how="left", maintain_order="left")
    excused = pl.col(EXCUSED) if EXCUSED in findings.collect_schema().names() else pl.lit(value=False)
    prevails = pl.col(ENDED) & ~excused & (pl.col("card_severity") > pl.col(SEVERITY).fill_null(0))
    of_card = {
        SEVERITY: pl.col("card_severity"),
        VARIANT: pl.col("card_variant"),
        ONSET: pl.col("card_onset"),
        **{name: pl.lit(None, FINDINGS[name]) for name in (ABOVE, BELOW, SKIPPED)},
    }
    return joined.with_columns(prevails=prevails.fill_null(False)).with_columns(
        *(
            pl.when("prevails").then(value).otherwise(pl.col(name)).alias(name)
            for name, value in of_card.items()
        ),
        *(pl.when("prevails").then(pl.col(name)).alias(name) for name in EVIDENCE),
    )


def without_opinion(findings: pl.LazyFrame) -> pl.LazyFrame:
    """Return findings of a rule as they are, where no card is asked."""
    return findings.with_columns(pl.lit(None, OPINION[name]).alias(name) for name in EVIDENCE)


def _with_rivals(claims: Sequence[str]) -> list[Card]:
    """Return the cards of claims, and of those to which they yield."""
    cards = [card_of(claim) for claim in claims]
    return cards + [card_of(card.yields_to) for card in cards if card.yields_to]


def _opinions(frame: pl.DataFrame, claims: Sequence[str]) -> pl.DataFrame:
    """Return what the cards find in the series of a frame that are over."""
    cards = _with_rivals(claims)
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    least = min(card.least_points for card in cards)
    due = placed.filter(pl.col(ENDED) & (pl.col(INDEX) + 1 >= least))
    found = []
    with np.errstate(all="ignore"):
        for numbers, means in by_count(placed, due) if len(due) else ():
            for number, course in zip(numbers.tolist(), means, strict=True):
                found += _of_series(frame, due.row(number, named=True), course, cards, claims)
    return pl.DataFrame(found, schema=OPINION, orient="row")


def _of_series(
    frame: pl.DataFrame,
    last: Mapping[str, Any],
    course: Floats,
    cards: Sequence[Card],
    claims: Collection[str],
) -> list[dict[str, Any]]:
    """Return what the cards of claims find in one series, the worst alone; ``last`` is its last row."""
    beside = {Signal(name.removesuffix("_course")): name for name in last if name.endswith("_course")}
    logged = {signal: name for signal, name in beside.items() if last[name]}
    signals = frozenset({Signal(last[SIGNAL]), *logged})
    part = part_of(Signal(last[SIGNAL]), signals)
    count = last[INDEX] + 1
    of_role = [card for card in cards if part and part.role in card.roles and count >= card.least_points]
    if part is None or not of_role:
        return []
    rows = frame.filter(pl.col(SERIES) == last[SERIES])
    if count < FEW_POINTS and _is_short_tail(rows, last):
        return []
    asked = [card for card in of_role if card.begins == "best" or not _may_yet_leave(rows, last)]
    values = rows.filter(pl.col(INDEX) >= 0)[VALUE].drop_nulls().to_numpy()
    outcome = _curves(course, noise_of(values), count, part.higher_is_better)
    companions: dict[str, list[Curves]] = {}
    for signal, name in logged.items():
        other = part_of(signal, signals)
        if other is not None and signal != last[SIGNAL]:
            curves = _curves(np.array(last[name]), 0.0, count, other.higher_is_better)
            companions.setdefault(other.role, []).append(curves)
    measured = _measured(outcome, companions, {name for card in asked for name in card.measurements})
    scores = {card: card.total(measured) for card in asked if card.is_read(measured)}
    found = {card.claim: card for card, points in scores.items() if points >= card.page_from}
    told = [card for card in found.values() if card.claim in claims and card.yields_to not in found]
    if not told:
        return []
    card = max(told, key=lambda card: scores[card] / card.page_from)
    begun = rows.filter(pl.col(INDEX) == 0)[STEP].first()
    sound = 1 - measured["since_best"] if card.begins == "best" else 0.0
    onset = None if begun is None else begun + round(sound * (last[STEP] - begun))
    return [
        {
            SERIES: last[SERIES],
            INDEX: last[INDEX],
            "card_variant": card.claim,
            "card_severity": int(WARNING),
            "card_onset": onset,
            "card_points": scores[card],
            "reading": card.text(measured, most=MAX_TOLD_LINES),
            "card": card.text(measured),
        }
    ]


def _is_short_tail(rows: pl.DataFrame, last: Mapping[str, Any]) -> bool:
    """Return whether an attempt that goes on from a resume covers little of the run so far."""
    begun = rows.filter(pl.col(INDEX) == 0)[STEP].first()
    covers = last[STEP] if begun is None else last[STEP] - begun
    return _goes_on(rows) and bool(covers < MIN_SHARE_OF_STEPS * last[STEP])


def _goes_on(rows: pl.DataFrame) -> bool:
    """Return whether an attempt goes on from a resume."""
    return bool(rows.select((pl.col(INDEX).min() < 0) | was_resumed().first()).item())


def _may_yet_leave(rows: pl.DataFrame, last: Mapping[str, Any]) -> bool:
    """Return whether a series that stands at its start says nothing.

    The first row of a resume is no untrained start, and a third of the plan comes first.
    """
    plan = last.get(Signal.TOTAL_STEPS) or 0.0
    return _goes_on(rows) or last[STEP] < MIN_PROGRESS * plan


def _curves(course: Floats, noise: float, count: int, higher_is_better: bool) -> Curves:
    sign = 1.0 if higher_is_better else -1.0
    return Curves(
        sign * course[None, :], np.array([noise]), np.array([float(count)]), is_cost=not higher_is_better
    )


def _measured(
    outcome: Curves, companions: Mapping[str, Sequence[Curves]], names: Collection[str]
) -> dict[str, float]:
    """Return the named measurements of one outcome, and where it was at its best."""
    measured = {
        name: float(MEASUREMENTS[name].measure(outcome)[0])
        for name in {*names, "since_best"}
        if name in MEASUREMENTS
    }
    for name in names - measured.keys():
        companion = COMPANY[name]
        values = [float(companion.measure(outcome, other)[0]) for other in companions.get(companion.role, ())]
        measured[name] = largest(dict(enumerate(values)))
    return measured
