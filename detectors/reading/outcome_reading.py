"""A run that is over is read as a careful person reads it: by score cards about its outcome.

## What it catches
A claim about the outcome of a run that is over: the loss, the metric or the reward never left its start, the
metric or the reward got worse and stayed so, held-out data got worse while training went on, the loss left
its level for good, or evaluations leap up and down, which is only noted. Each claim is a card with 8 lines
at most. A line measures something that a person reads off the plot and gives points for it; the message
tells the heaviest lines. The card says from how many points on it pages.

## Why it matters
A rule is a chain of conditions that must all hold, and one that fails by a hair hides a run that is plainly
sick. Points add up what speaks for trouble and what speaks against it.

## What to do
Look at the plot of the series that the message is about, and at the lines with the most points. The
catalogue entries are those of the detectors that the claim stands for.

## When it is wrong
A card knows the curves alone: no setting excuses anything. A plateau that is meant, a curriculum that moves
on and a resumed run are read as any other. It is a preview, and off unless
`[detectors.outcome-reading]` says `enabled = true`, because it repeats what rules say of the same trouble.

## Source
Two people judged 614 runs from their logs, and wrote down how. The cards are fitted to labelled logs of
repositories, `python -m studies.cards fit`, and a person read each of them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.blocks import ROWS, by_count
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reading.cards import Card, all_cards
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import Curves, noise_of
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OUTCOMES, PARTS, part_of
from sentinel.detectors.schema import ENDED, INDEX, SERIES, SIGNAL, STEP, VALUE, Course
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, start_value
from sentinel.detectors.verdict import SkipReason, verdicts

LEAST = 4  # points of an outcome
NEVER = 10**9  # rows between two turns: a run is read at its end

COURSES = tuple(Course(signal) for signal in PARTS)
SHORT = 3  # lines of a card that a message tells
READ = {
    "claim": pl.String(),
    "sound": pl.Float64(),  # part of the run before the trouble
    "points": pl.Float64(),
    "reading": pl.String(),
    "card": pl.String(),
}


@detector(
    judges=tuple(signal for signal, part in PARTS.items() if part.role in OUTCOMES),
    uses=COURSES,
    history=History(recent=ROWS, head=1, coarse=True),
    every=NEVER,
    at_end=True,
    maturity=Maturity.PREVIEW,
    hold=1,
    enabled=False,  # until cards stand in for rules: it repeats what these say of the same trouble
    cause=Cause.EVALUATION,
    evidence={
        "points": Measure("points of the card", Unit.NONE),
        "reading": Measure("heaviest lines", Unit.TEXT),
        "card": Measure("card", Unit.TEXT),
    },
    variants={
        card.claim: Variant("{reading}", card.catalogue, (INFO,) if card.is_note else (WARNING,))
        for card in all_cards()
    },
)
def outcome_reading(points: pl.LazyFrame) -> pl.LazyFrame:
    over = points.filter(pl.col(ENDED).any().over(SERIES))
    read = over.map_batches(_read, schema={**points.collect_schema(), **READ})
    unfinished = points.filter(~pl.col(ENDED))
    begun = start_value(STEP)
    onset = begun + (pl.col("sound") * (pl.col(STEP) - begun)).round().cast(pl.Int64)
    return verdicts(
        pl.concat([read, unfinished], how="diagonal"),
        judged={
            SkipReason.NOT_OVER: pl.col(ENDED),
            SkipReason.FEW_POINTS: pl.col("points").is_not_null(),
        },
        found={card.claim: pl.col("claim") == card.claim for card in all_cards()},
        onset=onset,
    )


def _read(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the last rows of series that are over, with the claim of which most speaks for it."""
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    due = placed.filter(pl.col(ENDED))
    verdict: list[dict[str, Any]] = [dict.fromkeys(READ)] * len(due)
    enough = (due[INDEX] + 1 >= LEAST).arg_true()
    rows = due[enough]
    with np.errstate(all="ignore"):
        for numbers, means in by_count(placed, rows) if len(rows) else ():
            for number, course in zip(numbers.tolist(), means, strict=True):
                verdict[enough[number]] = _of_series(frame, rows.row(number, named=True), course)
    read = pl.DataFrame(verdict, schema=READ, orient="row")
    return due.select(frame.columns).hstack(read)


def _of_series(frame: pl.DataFrame, last: Mapping[str, Any], course: Floats) -> dict[str, Any]:
    """Return what the cards say of one series; ``last`` is its last row."""
    logged = [use for use in COURSES if last[use.column]]
    signals = frozenset({Signal(last[SIGNAL]), *(use.signal for use in logged)})
    part = part_of(Signal(last[SIGNAL]), signals)
    if part is None:
        return dict.fromkeys(READ)
    rows = frame.filter(pl.col(SERIES) == last[SERIES])[VALUE].drop_nulls().to_numpy()
    noise = np.array([noise_of(rows)])
    count = np.array([float(last[INDEX] + 1)])
    sign = 1.0 if part.higher_is_better else -1.0
    outcome = Curves(sign * course[None, :], noise, count, is_cost=not part.higher_is_better)
    cards = [card for card in all_cards() if part.role in card.roles]
    measured = {name: one.measure(outcome) for name, one in MEASUREMENTS.items()}
    measured |= dict.fromkeys(COMPANY, np.array([np.nan]))
    for use in logged:
        companion = part_of(use.signal, signals)
        if companion is not None and use.signal != last[SIGNAL]:
            sign = 1.0 if companion.higher_is_better else -1.0
            units = sign * np.array(last[use.column])[None, :]
            other = Curves(units, noise, count, is_cost=not companion.higher_is_better)
            for name, one in COMPANY.items():
                if one.role == companion.role:
                    measured[name] = np.fmax(measured[name], one.measure(outcome, other))
    scores = {card: float(card.points(measured).sum()) for card in cards}
    best = max(
        scores,
        key=lambda card: (scores[card] >= card.found_from, scores[card] / card.page_from),
        default=None,
    )
    if best is None:
        return dict.fromkeys(READ)
    return _told(best, scores[best], {name: float(value[0]) for name, value in measured.items()})


def _told(card: Card, points: float, measured: Mapping[str, float]) -> dict[str, Any]:
    """Return what one card says."""
    found = points >= card.found_from
    sound = 1 - measured["since_best"] if card.begins == "best" else 0.0
    return {
        "claim": card.claim if found else None,
        "sound": sound,
        "points": points,
        "reading": card.text(measured, most=SHORT) if found else None,
        "card": card.text(measured) if found else None,
    }
