"""The opinion of score cards on the outcome of a run, beside the rule of a detector.

A detector names the claims that it `reads`. Where a card pages and the rule is clean, or only informs, the
card is the finding: under the detector's name, in the same incident. A card is read when a run is over, with
all series beside the outcome, and at looks while it goes on: then of the outcome alone, against a higher bar.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.blocks import ROWS, by_count
from sentinel.detectors.declarations import History, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reading.cards import Bar, Card, card_of
from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import Bools, Curves, noise_of
from sentinel.detectors.reading.looks import Look, looks
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OF_AGENTS, PARTS, Part, Role, part_of
from sentinel.detectors.schema import (
    ABOVE,
    BELOW,
    ENDED,
    EXCUSED,
    FINDINGS,
    INDEX,
    LOOK,
    NEW,
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
from sentinel.detectors.stats import FIRST_INTERVALS, Floats, Ints, was_resumed

HISTORY = History(recent=ROWS, head=FIRST_INTERVALS + 1, earlier=1, coarse=True)
"""What a detector that reads cards looks back at, at least."""

COURSES = tuple(Course(signal) for signal in PARTS)

LOSSES = Role.HELD_OUT_LOSS, Role.TRAINING_LOSS

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

OF_CARD: Mapping[str, pl.DataType] = {
    LOOK: FINDINGS[LOOK],
    "card_variant": pl.String(),
    "card_severity": FINDINGS[SEVERITY],
    "card_onset": FINDINGS[ONSET],
    "card_points": pl.Float64(),
    "reading": pl.String(),
    "card": pl.String(),
}
"""What the cards say at a look."""


def variant_of(card: Card) -> Variant:
    """Return the variant of a detector that a card gives it."""
    return Variant("{reading}", card.catalogue)


def uses_of(claims: Collection[str]) -> tuple[Signal | Course, ...]:
    """Return what the cards of claims ask for of other signals."""
    cards = _with_rivals([*claims])
    asked = {name for card in cards for name in card.measurements}
    roles = {companion.role for name, companion in COMPANY.items() if name in asked}
    courses = (use for use in COURSES if PARTS[use.signal].role in roles or use.signal in OF_AGENTS)
    is_of_loss = any(role in LOSSES for card in cards for role in card.roles)
    return (*courses, *(OF_AGENTS if is_of_loss else ()))


def with_opinion(
    points: pl.DataFrame, findings: pl.LazyFrame, claims: Sequence[str], *, every: int
) -> pl.LazyFrame:
    """Return findings of a rule with those of cards where these weigh more and the rule knows no excuse.

    While a run goes on, the doubt of a rule that only informs weighs more than a card.
    ``findings`` have their severities. The frame of ``points`` is the WINDOW frame that the rule judged, of
    which it judges each ``every``-th row.
    """
    is_look = points[NEW] & (points[ENDED] | points[INDEX].is_in(looks(every)))
    if not is_look.any():
        return findings.with_columns(pl.lit(None, OF_CARD[name]).alias(name) for name in EVIDENCE)
    opinion = _opinions(points, is_look, claims)
    joined = findings.drop(LOOK).join(opinion.lazy(), on=[SERIES, INDEX], how="left", maintain_order="left")
    by_rule = pl.col(SEVERITY).fill_null(0)
    excused = pl.col(EXCUSED) if EXCUSED in findings.collect_schema().names() else pl.lit(value=False)
    prevails = (pl.col("card_severity") > by_rule) & (pl.col(ENDED) | (by_rule == 0)) & ~excused
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


def _with_rivals(claims: Sequence[str]) -> list[Card]:
    """Return the cards of claims, and of those to which they yield."""
    cards = [card_of(claim) for claim in claims]
    return cards + [card_of(card.yields_to) for card in cards if card.yields_to]


def _opinions(frame: pl.DataFrame, is_look: pl.Series, claims: Sequence[str]) -> pl.DataFrame:
    """Return what the cards say at the looks of a frame."""
    cards = _with_rivals(claims)
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    least = min(card.over.least_points for card in cards)
    due = placed.filter(is_look & (pl.col(INDEX) + 1 >= least))
    while_running = due.drop(use.column for use in COURSES if use.column in due.columns)
    counts = due[INDEX].to_numpy() + 1.0
    signals = np.array(due[SIGNAL].to_list())
    has_ended = due[ENDED].to_numpy()
    found: list[dict[str, Any]] = [{} for _ in range(len(due))]
    with np.errstate(all="ignore"):
        for numbers, means in by_count(placed, due) if len(due) else ():
            courses = np.broadcast_to(means, (len(numbers), means.shape[1]))
            suspects = _suspects(courses, signals[numbers], counts[numbers], has_ended[numbers], cards)
            for place in suspects.tolist():
                number = int(numbers[place])
                last = (due if has_ended[number] else while_running).row(number, named=True)
                found[number] = _of_series(frame, last, courses[place], cards, claims)
    columns = {
        name: pl.Series([one.get(name) for one in found], dtype=kind) for name, kind in OF_CARD.items()
    }
    return due.select(SERIES, INDEX).with_columns(**columns).with_columns(pl.col(LOOK).fill_null(Look.WELL))


def _suspects(
    courses: Floats, signals: NDArray[np.str_], counts: Floats, has_ended: Bools, cards: Sequence[Card]
) -> Ints:
    """Return the places of series of which a card may page, whatever their noise and companions are."""
    is_suspect = np.zeros(len(courses), bool)
    for signal in {*signals.tolist()}:
        part = PARTS.get(Signal(signal))
        of_role = [card for card in cards if part and part.role in card.roles]
        if part is None or not of_role:
            continue
        places = np.flatnonzero(signals == signal)
        outcome = _curves(courses[places], np.nan, counts[places], part)
        for card in of_role:
            is_suspect[places] |= _may_page(card, outcome, has_ended[places])
    return np.flatnonzero(is_suspect)


def _may_page(card: Card, outcome: Curves, has_ended: Bools) -> Bools:
    """Return of which outcomes a card may page; what is not measured yet may be as bad as can be.

    Companions count once a run is over.
    """
    possible = outcome.points >= card.over.least_points
    for names, is_least in (card.over.needs, True), (card.over.excuses, False):
        for name, least in names.items():
            if name in MEASUREMENTS and possible.any():
                measured = MEASUREMENTS[name].measure(outcome)
                possible &= ~(measured < least) if is_least else ~(measured >= least)
    rows = np.flatnonzero(possible)
    if not len(rows):
        return possible
    some = outcome.take(rows)
    points = np.zeros(len(rows))
    for line in card.lines:
        if line.measurement in COMPANY:
            points += np.where(has_ended[rows], line.most, 0)
        else:
            measured = MEASUREMENTS[line.measurement].measure(some)
            points += np.where(np.isnan(measured), line.most, line.score(measured))
    possible[rows] = points >= card.over.page_from
    return possible


def _of_series(
    frame: pl.DataFrame,
    last: Mapping[str, Any],
    course: Floats,
    cards: Sequence[Card],
    claims: Collection[str],
) -> dict[str, Any]:
    """Return what the cards of claims say of one series, the worst alone; ``last`` is its last row."""
    logged = {
        signal: use.column for signal, use in ((use.signal, use) for use in COURSES) if last.get(use.column)
    }
    beside = {signal for signal in OF_AGENTS if last.get(signal) is not None}
    signals = frozenset({Signal(last[SIGNAL]), *logged, *beside})
    part = part_of(Signal(last[SIGNAL]), signals)
    count = last[INDEX] + 1
    of_role = [card for card in cards if part and part.role in card.roles]
    if part is None or not of_role:
        return {}
    first = frame[SERIES].search_sorted(last[SERIES])
    rows = frame.select(SERIES, INDEX, STEP, VALUE)[first : last["row"] + 1]
    if count < FEW_POINTS and _is_short_tail(rows, last):
        return {}
    values = rows[VALUE].to_numpy()[rows[INDEX].to_numpy() >= 0]
    outcome = _curves(course[None, :], noise_of(values[np.isfinite(values)]), np.array([float(count)]), part)
    companions: dict[str, list[Curves]] = {}
    for signal, name in logged.items():
        other = part_of(signal, signals)
        if other is not None and signal != last[SIGNAL]:
            curves = _curves(np.array(last[name])[None, :], 0.0, np.array([float(count)]), other)
            companions.setdefault(other.role, []).append(curves)
    measured = _measured(outcome, companions, {name for card in of_role for name in card.measurements})
    scores = {card: card.total(measured) for card in of_role}
    found = {card.claim: card for card in of_role if _reaches(card.over, count, measured, scores[card])}
    if any(card.begins == "start" for card in found.values()) and _may_yet_leave(rows, last):
        found = {claim: card for claim, card in found.items() if card.begins == "best"}
    of_claims = [card for card in found.values() if card.claim in claims and card.yields_to not in found]
    paging = [
        (scores[card] / bar.page_from, card)
        for card in of_claims
        for bar in [card.over if last[ENDED] else card.running]
        if bar is not None and _reaches(bar, count, measured, scores[card])
    ]
    if not paging:
        return {LOOK: int(Look.DOUBT if of_claims else Look.WELL)}
    _, card = max(paging, key=lambda pair: pair[0])
    begun = rows.filter(pl.col(INDEX) == 0)[STEP].first()
    sound = 1 - measured["since_best"] if card.begins == "best" else 0.0
    onset = None if begun is None else begun + round(sound * (last[STEP] - begun))
    return {
        LOOK: int(Look.PAGES),
        "card_variant": card.claim,
        "card_severity": int(WARNING),
        "card_onset": onset,
        "card_points": scores[card],
        "reading": card.text(measured, most=MAX_TOLD_LINES, is_running=not last[ENDED]),
        "card": card.text(measured, is_running=not last[ENDED]),
    }


def _reaches(bar: Bar, count: int, measured: Mapping[str, float], points: float) -> bool:
    return count >= bar.least_points and points >= bar.page_from and bar.allows(measured)


def _is_short_tail(rows: pl.DataFrame, last: Mapping[str, Any]) -> bool:
    """Return whether an attempt that goes on from a resume covers little of the run so far."""
    begun = rows.filter(pl.col(INDEX) == 0)[STEP].first()
    covers = last[STEP] if begun is None else last[STEP] - begun
    return bool(covers < MIN_SHARE_OF_STEPS * last[STEP]) and _goes_on(rows)


def _goes_on(rows: pl.DataFrame) -> bool:
    """Return whether an attempt goes on from a resume."""
    first = rows.head(FIRST_INTERVALS + 1)
    return first[INDEX][0] < 0 or bool(first.select(was_resumed().first()).item())


def _may_yet_leave(rows: pl.DataFrame, last: Mapping[str, Any]) -> bool:
    """Return whether a series that stands at its start says nothing.

    The first row of a resume is no untrained start, and a third of the plan comes first.
    """
    plan = last.get(Signal.TOTAL_STEPS) or 0.0
    return last[STEP] < MIN_PROGRESS * plan or _goes_on(rows)


def _curves(courses: Floats, noise: float, counts: Floats, part: Part) -> Curves:
    sign = 1.0 if part.higher_is_better else -1.0
    noises = np.full(len(courses), noise)
    return Curves(sign * courses, noises, counts, is_cost=not part.higher_is_better)


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
