"""The opinion of score cards on the outcome of a run, beside the rule of a detector.

A detector names the claims that it `reads`. Where a card pages and the rule is clean, or only informs, the
card is the finding: under the detector's name, in the same incident. A card is read with all series beside
the outcome when a run is over, and at interims as if it were. At looks while a run goes on it is read of the
outcome alone, against a higher bar.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from sentinel.detectors.blocks import ROWS, by_count
from sentinel.detectors.declarations import History, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.interims import AT_ONCE
from sentinel.detectors.reading.cards import Card, card_of
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.looks import Look, looks
from sentinel.detectors.reading.roles import OF_AGENTS, PARTS, Role
from sentinel.detectors.reading.statements import COURSES, STANDINGS, RowArrays, opinion_of, statement_of
from sentinel.detectors.reading.suspects import IS_LOOK, IS_WHOLE, PLAN, Progress, suspects_of
from sentinel.detectors.schedules import planned_steps
from sentinel.detectors.schema import (
    ABOVE,
    BELOW,
    ENDED,
    EXCUSED,
    FINDINGS,
    GROWN,
    INDEX,
    LOOK,
    NEW,
    ONSET,
    OVER,
    SERIES,
    SEVERITY,
    SIGNAL,
    SKIPPED,
    STAGE,
    SUMS_UP,
    VARIANT,
    Course,
    Standing,
)
from sentinel.detectors.settings import Setting
from sentinel.detectors.severity import INFO
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import FIRST_INTERVALS, Floats, Ints

HISTORY = History(recent=ROWS, head=FIRST_INTERVALS + 1, earlier=1, coarse=True)
"""What a detector that reads cards looks back at, at least."""

SETTINGS = (Setting.EPOCHS,)
"""What the cards ask of the settings of a run: how long it is."""

LOSSES = Role.HELD_OUT_LOSS, Role.TRAINING_LOSS

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
    "card_grown": pl.Float64(),
    "card_points": pl.Float64(),
    "reading": pl.String(),
    "card": pl.String(),
}
"""What the cards say at a look."""


def variant_of(card: Card) -> Variant:
    """Return the variant of a detector that a card gives it."""
    return Variant("{reading}", card.catalogue)


def uses_of(claims: Collection[str]) -> tuple[Signal | Course | Standing, ...]:
    """Return what the cards of claims ask for of other signals."""
    cards = with_rivals([*claims])
    measurements = {name for card in cards for name in card.measurements}
    roles = {companion.role for name, companion in COMPANY.items() if name in measurements}
    courses = (use for use in COURSES if PARTS[use.signal].role in roles or use.signal in OF_AGENTS)
    standings = (use for name in STANDINGS if name in measurements for use in STANDINGS[name])
    is_of_loss = any(role in LOSSES for card in cards for role in card.roles)
    clocks = Signal.TOTAL_STEPS, Signal.EPOCH
    return (*courses, *standings, *(OF_AGENTS if is_of_loss else ()), *clocks)


def with_opinion(
    points: pl.DataFrame,
    findings: pl.LazyFrame,
    claims: Sequence[str],
    *,
    usual: pl.LazyFrame | None = None,
    bar: float = 1.0,
    every: int,
) -> pl.LazyFrame:
    """Return findings of a rule with those of cards where these weigh more and the rule knows no excuse.

    While a run goes on, the doubt of a rule that only informs weighs more than a card. Of what a rule and a
    card find at an interim, that counts which has to stand for less. ``usual`` are its findings with its
    usual parameters, unless ``findings`` are these: it is they that tell its doubt, or a card would page
    where a stricter rule finds nothing to doubt. The cards page from ``bar`` times their points.
    ``findings`` have their severities. The frame of ``points`` is the WINDOW frame that the rule judged, of
    which it judges each ``every``-th row.
    """
    points = points.with_columns(points[OVER].alias(ENDED))
    is_look = points[NEW] & (points[ENDED] | points[INDEX].is_in(looks(every)))
    is_concluded = points[ENDED] | points[STAGE].is_not_null()
    is_whole = points[SUMS_UP] if any_grows(claims) else is_concluded
    is_read = is_look | (points[NEW] & is_whole)
    if not is_read.any():
        return findings.with_columns(pl.lit(None, OF_CARD[name]).alias(name) for name in EVIDENCE)
    marked = points.with_columns(is_look.alias(IS_LOOK), is_whole.alias(IS_WHOLE))
    opinion = _opinions(marked, is_read, claims, bar)
    joined = findings.drop(LOOK).join(opinion.lazy(), on=[SERIES, INDEX], how="left", maintain_order="left")
    waits = pl.col(SUMS_UP) & ~pl.col(OVER) & (pl.col(GROWN) > pl.col("card_grown").fill_null(AT_ONCE))
    by_rule = pl.when(waits.fill_null(value=False)).then(0).otherwise(pl.col(SEVERITY).fill_null(0))
    knows_excuse = EXCUSED in findings.collect_schema().names()
    excused = pl.col(EXCUSED) if knows_excuse else pl.lit(value=False)
    doubt = pl.col(SEVERITY)
    if usual is not None:
        doubts = usual.select(SERIES, INDEX, usual_severity=SEVERITY)
        joined = joined.join(doubts, on=[SERIES, INDEX], how="left", maintain_order="left")
        doubt = pl.col("usual_severity")
    is_doubted = (doubt == INFO).fill_null(False) & ~pl.col(OVER)
    prevails = (pl.col("card_severity") > by_rule) & ~is_doubted & ~excused
    of_card = {
        SEVERITY: pl.col("card_severity"),
        VARIANT: pl.col("card_variant"),
        ONSET: pl.col("card_onset"),
        GROWN: pl.col("card_grown"),
        **{name: pl.lit(None, FINDINGS[name]) for name in (ABOVE, BELOW, SKIPPED)},
    }
    return joined.with_columns(prevails=prevails.fill_null(False)).with_columns(
        *(
            pl.when("prevails").then(value).otherwise(pl.col(name)).alias(name)
            for name, value in of_card.items()
        ),
        *(pl.when("prevails").then(pl.col(name)).alias(name) for name in EVIDENCE),
    )


def opinion_on(points: pl.DataFrame) -> float | None:
    """Return the share of healthy runs that look better to the forest than a run that is judged as a whole
    in the last row of its outcome; None if the series is none.

    ``points`` is the WINDOW frame of this series alone, with what its cards use.
    """
    placed = points.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    last = placed.tail(1)
    with np.errstate(all="ignore"):
        ((_, course),) = by_count(placed, last)
        return opinion_of(RowArrays(points), last.row(0, named=True), course[0])


def any_grows(claims: Collection[str]) -> bool:
    """Return whether one of the cards tells what stood while the log grew."""
    return any(isfinite(card_of(claim).grown) for claim in claims)


def with_rivals(claims: Sequence[str], bar: float = 1.0) -> list[Card]:
    """Return the cards of claims with their bars raised, and those to which they yield, which stay as they
    are: a claim that another one told of is not told because that one has become stricter.
    """
    cards = [card_of(claim).raised(bar) for claim in claims]
    rivals = dict.fromkeys(rival for card in cards for rival in card.yields_to)
    return cards + [card_of(rival) for rival in rivals]


def _opinions(frame: pl.DataFrame, is_read: pl.Series, claims: Sequence[str], bar: float) -> pl.DataFrame:
    """Return what the cards say at the looks and interims of a frame, in the rows that are read."""
    cards = with_rivals(claims, bar)
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64), **{PLAN: planned_steps()})
    least = min(card.over.fewest for card in cards)
    due = placed.filter(is_read & (pl.col(INDEX) + 1 >= least))
    signals = np.array(due[SIGNAL].to_list())
    all_progress = Progress.of_rows(due)
    points = RowArrays(frame)
    opinions: list[dict[str, Any]] = [{} for _ in range(len(due))]
    with np.errstate(all="ignore"):
        for due_rows, courses in _alike(placed, due):
            suspects = suspects_of(courses, signals[due_rows], all_progress.at(due_rows), cards)
            for index, series_suspects in suspects.items():
                due_row = int(due_rows[index])
                in_doubt = series_suspects.in_doubt
                is_doubtful = any(card.claim in claims for card in in_doubt)
                opinions[due_row] = {LOOK: int(Look.DOUBT if is_doubtful else Look.WELL)}
                if series_suspects.to_read:
                    last_row = due.row(due_row, named=True)
                    opinions[due_row] |= statement_of(points, last_row, courses[index], in_doubt, claims)
    columns = {
        name: pl.Series([opinion.get(name) for opinion in opinions], dtype=dtype)
        for name, dtype in OF_CARD.items()
    }
    look = pl.when(IS_LOOK).then(pl.col(LOOK).fill_null(Look.WELL))
    return due.select(SERIES, INDEX, IS_LOOK).with_columns(**columns).with_columns(look).drop(IS_LOOK)


def _alike(placed: pl.DataFrame, due: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
    """Yield the numbers of the due rows and their courses, all of as many units together."""
    groups: dict[int, list[tuple[Ints, Floats]]] = {}
    for due_rows, means in by_count(placed, due) if len(due) else ():
        courses = np.broadcast_to(means, (len(due_rows), means.shape[1]))
        groups.setdefault(means.shape[1], []).append((due_rows, courses))
    for group in groups.values():
        yield np.concatenate([due_rows for due_rows, _ in group]), np.concatenate([rows for _, rows in group])
