"""What the score cards say of one series: at a look, at an interim, or when its run is over."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from math import isfinite, isinf
from typing import Any

import msgspec
import numpy as np
import polars as pl

from sentinel.detectors.blocks import ROWS
from sentinel.detectors.interims import AT_ONCE
from sentinel.detectors.reading.cards import Bar, Card, worded
from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import BLOCKS, Bools, Curves, noise_of
from sentinel.detectors.reading.forest import OPINION, forest
from sentinel.detectors.reading.looks import Look
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OF_AGENTS, OUTCOMES, PARTS, Part, Role, part_of
from sentinel.detectors.reading.suspects import IS_LOOK, IS_WHOLE, PLAN, curves_of, epochs_of
from sentinel.detectors.schema import ENDED, INDEX, LOOK, SERIES, SIGNAL, STAGE, STEP, VALUE, Course, Standing
from sentinel.detectors.severity import WARNING
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import FIRST_INTERVALS, Floats, Ints, first_of_mostly, was_resumed

_Row = Mapping[str, Any]
"""The values of a row by their columns."""

COURSES = tuple(Course(signal) for signal in PARTS)

STANDINGS = {
    f"{role}_keeps_gain": tuple(Standing(signal) for signal, part in PARTS.items() if part.role is role)
    for role in (Role.METRIC, Role.HELD_OUT_LOSS, Role.TRAINING_LOSS)
}
"""What tells a measurement of companions while a run goes on: how they stand."""


MIN_PROGRESS = 1 / 3
"""Share of the plan before which a start is left in time."""

LEAST_BEHIND = 3
"""Points behind the best that tell at a stage of the plan that it will not come again."""

LASTING = 0.25
"""Share of the run for which an evaluation has been worse where rewards in training excuse nothing."""

ENOUGH = 2
"""Times the evaluations that a card needs, that tell enough of a run which is over before its plan."""

MIN_SHARE_OF_STEPS = 0.3
"""Of a run, that an attempt of few points which goes on from a resume has to cover, or it is no course."""

BARELY = 0.1
"""Of an attempt's steps: how many the one before it may have, if it began as good as anew."""

FALLEN = 1 / 4
"""Of what a series lost of its best: from there on a point is bad."""

FEW_POINTS = 25
"""Points below which such an attempt has few."""

MAX_TOLD_LINES = 3
"""Of a card, in a message; the evidence has all of them."""


class RowArrays(msgspec.Struct, frozen=True, dict=True):
    """The rows of a WINDOW frame as arrays, which are sliced in no time."""

    frame: pl.DataFrame

    @cached_property
    def series(self) -> Ints:
        """The number of the series of each row."""
        return self.frame[SERIES].to_numpy()

    @cached_property
    def index(self) -> Ints:
        """The index of each row in its series."""
        return self.frame[INDEX].to_numpy()

    @cached_property
    def value(self) -> Floats:
        """The judged value of each row."""
        return self.frame[VALUE].to_numpy()

    @cached_property
    def resumed(self) -> Mapping[int, bool]:
        """Whether the attempt of each series goes on from a resume, by its own rows."""
        first = self.frame.lazy().filter(pl.col(INDEX) <= FIRST_INTERVALS)
        goes_on = was_resumed().fill_null(value=False)
        return dict(first.group_by(SERIES).agg(goes_on.any()).collect(engine="in-memory").iter_rows())

    @cached_property
    def last_step_before(self) -> Mapping[int, int]:
        """The last step of the attempt before, of each series that may go on with it."""
        is_before = self.index < 0
        return dict(zip(self.series[is_before].tolist(), self.step[is_before].tolist(), strict=True))

    @cached_property
    def first_step(self) -> Mapping[int, int]:
        """The first step of each series."""
        is_first = self.index == 0
        return dict(zip(self.series[is_first].tolist(), self.step[is_first].tolist(), strict=True))

    @cached_property
    def step(self) -> Ints:
        """The step of each row."""
        return self.frame[STEP].to_numpy()

    def recent(self, series: int, row: int, first: int) -> slice:
        """Return the recent rows of a series up to a row, from one index on; each poll has them."""
        begin = max(int(np.searchsorted(self.series, series)), row + 1 - ROWS)
        index = self.index[begin : row + 1]
        is_recent = index >= max(first, self.index[row] + 1 - ROWS)
        return slice(begin + int(is_recent.argmax()), row + 1)

    def noise(self, series: int, row: int) -> float:
        """Return how points of a series scatter up to a row."""
        values = self._attempt(series, row)
        return noise_of(values[np.isfinite(values)])

    def repeats(self, series: int, row: int) -> float:
        """Return how often a log usually writes a value until the next one; the last one may rest."""
        values = self._attempt(series, row)
        changes = np.flatnonzero(np.diff(values) != 0)
        return float(np.median(np.diff(changes, prepend=-1))) if len(changes) else 1.0

    def _attempt(self, series: int, row: int) -> Floats:
        """Return the values of a series up to a row, of its attempt."""
        rows = slice(int(np.searchsorted(self.series, series)), row + 1)
        return self.value[rows][self.index[rows] >= 0]


def statement_of(
    points: RowArrays, last_row: _Row, course: Floats, cards: Sequence[Card], claims: Collection[str]
) -> dict[str, Any]:
    """Return what the cards of claims say of one series, the worst alone; ``last_row`` is its last row.

    The ``cards`` are of its role, unless what it is depends on others.
    """
    shape = _shape(points, last_row, course)
    if shape is None or shape.part.role not in cards[0].roles:
        return {}
    outcome = shape.outcome
    names = {name for card in cards for name in card.measurements}
    of_series = _Statement(points, last_row, shape.part, outcome, claims)
    opinion: dict[str, Any] = {}
    if last_row[IS_LOOK] and not last_row[ENDED]:
        opinion = of_series.while_running(cards, _measured(outcome, {}, names) | _standings(last_row))
    if last_row[IS_WHOLE] and opinion.get(LOOK) != int(Look.PAGES):
        measured = _measured(outcome, shape.companions, names)
        if OPINION in names:
            measured[OPINION] = forest().opinion(measured, shape.part.role)
        opinion |= of_series.as_whole(cards, measured)
    return opinion


def opinion_of(points: RowArrays, last_row: _Row, course: Floats) -> float | None:
    """Return the share of healthy runs that look better to the forest than a series does up to its last row;
    None if it is no outcome.
    """
    shape = _shape(points, last_row, course)
    if shape is None or shape.part.role not in OUTCOMES:
        return None
    measured = _measured(shape.outcome, shape.companions, forest().says.keys())
    return forest().opinion(measured, shape.part.role)


class _Shape(msgspec.Struct, frozen=True):
    """The curve of a series and those beside it, by their roles."""

    part: Part
    outcome: Curves
    companions: Mapping[str, Sequence[Curves]]


def _shape(points: RowArrays, last_row: _Row, course: Floats) -> _Shape | None:
    """Return the curves of a run up to the last row of a series; None if this has no role, or no course."""
    courses = {use.signal: use.column for use in COURSES if last_row.get(use.column)}
    agent_signals = {signal for signal in OF_AGENTS if last_row.get(signal) is not None}
    signals = frozenset({Signal(last_row[SIGNAL]), *courses, *agent_signals})
    part = part_of(Signal(last_row[SIGNAL]), signals)
    if part is None or _is_short_tail(points, last_row):
        return None
    counts = np.array([last_row[INDEX] + 1.0])
    outcome = curves_of(course[None, :], points.noise(last_row[SERIES], last_row["row"]), counts, part)
    companions: dict[str, list[Curves]] = {}
    silent = _silent_beside(Signal(last_row[SIGNAL]), outcome)
    for signal, name in courses.items():
        companion_part = part_of(signal, signals)
        if companion_part is not None and signal not in silent:
            curves = curves_of(np.array(last_row[name])[None, :], 0.0, counts, companion_part)
            companions.setdefault(companion_part.role, []).append(curves)
    return _Shape(part, outcome, companions)


def _silent_beside(signal: Signal, outcome: Curves) -> tuple[Signal, ...]:
    """Return whose courses say nothing of an outcome: its own, and where an evaluation has been worse for
    long, that of the rewards in training, which it outranks.
    """
    if signal is Signal.EVAL_REWARD and MEASUREMENTS["low_for"].of(outcome)[0] >= LASTING:
        return signal, Signal.REWARD
    return (signal,)


class _Statement(msgspec.Struct, frozen=True, dict=True):
    """One series, as it is in its last row, and the claims that may be made of it."""

    points: RowArrays
    last_row: _Row
    part: Part
    outcome: Curves
    claims: Collection[str]

    @cached_property
    def _count(self) -> float:
        """The points so far, of which those that a log repeats until the next one count once."""
        count = float(self.last_row[INDEX] + 1)
        return count / self.points.repeats(self.last_row[SERIES], self.last_row["row"])

    def while_running(self, cards: Sequence[Card], measured: Mapping[str, float]) -> dict[str, Any]:
        """Return what the cards say at a look of a run that goes on."""
        plan_share = np.array([self.last_row[STEP] / (self.last_row[PLAN] or np.nan)])
        epoch = self.last_row.get(Signal.EPOCH)
        epochs = epochs_of(self.part, np.array([np.nan if epoch is None else epoch]), np.array([self._count]))
        paging = [
            (card.total(measured) / bar.page_from, card, bar)
            for card in self._of_claims(self._reaching(cards, measured))
            for bar in card.running
            if bar.is_for(plan_share, epochs).all()
            and _reaches(card, bar, self._count, measured)
            and _has_stood(card, bar, self.outcome)
        ]
        if not paging:
            return {}
        _, card, bar = max(paging, key=lambda candidate: candidate[0])
        return self._told(card, measured, bar) | {LOOK: int(Look.PAGES)}

    def as_whole(self, cards: Sequence[Card], measured: Mapping[str, float]) -> dict[str, Any]:
        """Return what the cards say of the run as a whole: that is over, or judged as if it were.

        While it goes on, a card yields to one that waits for the end, and to one that has reached its own bar
        at interims.
        """
        has_ended = self.last_row[ENDED]
        reaching = self._reaching(cards, measured)
        if not has_ended:
            reaching = [card for card in reaching if isinf(card.grown) or self._may_stand(card, measured)]
        beyond = self._of_claims(reaching)
        if not has_ended:
            beyond = [card for card in beyond if self._may_stand(card, measured)]
        if not beyond:
            return {LOOK: int(Look.WELL)} if has_ended else {}
        card = max(
            beyond, key=lambda card: (not card.asks_forest, card.total(measured) / card.over.page_from)
        )
        if has_ended:
            return self._told(card, measured, None) | {LOOK: int(Look.PAGES)}
        grown = self._grown(card)
        standing = None if grown == AT_ONCE else card.standing
        return self._told(card, measured, standing) | {"card_grown": grown}

    def _may_stand(self, card: Card, measured: Mapping[str, float]) -> bool:
        """Return whether what a card says of a run that goes on is told here, or may be later."""
        if self._grown(card) == AT_ONCE:
            return True
        return isfinite(card.grown) and _reaches(card, card.at_interims, self._count, measured)

    def _grown(self, card: Card) -> float:
        """Return to how many times its length the log has to have grown for what a card says here."""
        stage = self.last_row[STAGE]
        is_stage = stage is not None and stage >= card.stage
        return AT_ONCE if is_stage and not self._may_be_one_bad_point(card) else card.grown

    def _may_be_one_bad_point(self, card: Card) -> bool:
        """Return whether what a card says began at a best behind which too few points lie."""
        behind = MEASUREMENTS["since_best"].of(self.outcome)[0] * self._count
        return card.begins == "best" and bool(behind < LEAST_BEHIND)

    def _reaching(self, cards: Sequence[Card], measured: Mapping[str, float]) -> list[Card]:
        """Return the cards that would page if the run ended here, also those of other claims."""
        return [
            card
            for card in cards
            if _reaches(card, card.over, self._count, measured)
            and not (
                card.begins == "start" and _may_yet_leave(self.points, self.last_row, card, self.part.role)
            )
        ]

    def _of_claims(self, reaching: Sequence[Card]) -> list[Card]:
        """Return the cards of the claims among those that page, without those that yield to another one."""
        names = {card.claim for card in reaching}
        return [card for card in reaching if card.claim in self.claims and names.isdisjoint(card.yields_to)]

    def _told(self, card: Card, measured: Mapping[str, float], running: Bar | None) -> dict[str, Any]:
        """Return the finding of a card, by one of its bars for runs that go on."""
        if card.begins == "best":
            onset = _fallen_since(self.points, self.last_row, self.outcome, self.part)
        else:
            onset = self.points.first_step.get(self.last_row[SERIES])
        why = weightiest(measured, self.part.role) if card.asks_forest else ""
        return {
            "card_variant": card.claim,
            "card_severity": int(WARNING),
            "card_onset": onset,
            "card_points": card.total(measured),
            "reading": card.text(measured, most=MAX_TOLD_LINES, running=running, count=self._count) + why,
            "card": card.text(measured, running=running, count=self._count) + why,
        }


def weightiest(measured: Mapping[str, float], role: Role) -> str:
    """Return the measurements that weigh most with the forest, in words."""
    says = forest().says
    weights = dict(zip(says, forest().weights(measured, role), strict=False))  # the roles come last
    known = [name for name in says if not np.isnan(measured[name]) and weights[name] > 0]
    heaviest = sorted(known, key=lambda name: -weights[name])[:MAX_TOLD_LINES]
    return "; what weighs most: " + ", ".join(worded(says[name], measured[name]) for name in heaviest)


def _fallen_since(points: RowArrays, last_row: _Row, outcome: Curves, part: Part) -> int | None:
    """Return the step since which most of a series has lain below its best by a part of what it lost.

    It is exact among the recent rows; before these it is where a unit of the course begins.
    """
    low = float(outcome.best[0] - FALLEN * outcome.lost[0])
    best_share = float(outcome.best_at[0]) / BLOCKS
    best = int(best_share * (last_row[INDEX] + 1))
    rows = points.recent(last_row[SERIES], last_row["row"], best)
    values = points.value[rows]
    first = first_of_mostly((values if part.higher_is_better else -values) < low)
    if first is not None and (first > 0 or points.index[rows.start] == best):
        return int(points.step[rows.start + first])
    return _unit_since(points, last_row, outcome.units[0] < low, best_share)


def _unit_since(points: RowArrays, last_row: _Row, is_bad: Bools, best_share: float) -> int | None:
    """Return about which step the units of a course began to be mostly bad, after its sound part."""
    first_step = points.first_step.get(last_row[SERIES])
    best = int(best_share * len(is_bad))
    first = first_of_mostly(is_bad[best:])
    if first_step is None or first is None:
        return first_step
    share = (best + first) / len(is_bad)
    return first_step + round(share * float(last_row[STEP] - first_step))


def _reaches(card: Card, bar: Bar, count: float, measured: Mapping[str, float]) -> bool:
    return bar.allows(measured) and card.total(measured) >= float(bar.needed(np.array(count)))


def _has_stood(card: Card, bar: Bar, outcome: Curves) -> bool:
    """Return whether a card has reached a bar for as long as the bar asks, by the outcome alone."""
    earlier = (_measured(outcome.until(share), {}, card.measurements) for share in bar.earlier_shares)
    return all(bar.allows(measured) and card.total(measured) >= bar.page_from for measured in earlier)


def _is_short_tail(points: RowArrays, last_row: _Row) -> bool:
    """Return whether an attempt of few points that goes on from a resume covers little of the run so far."""
    covers = last_row[STEP] - points.first_step.get(last_row[SERIES], 0)
    is_short = last_row[INDEX] + 1 < FEW_POINTS and bool(covers < MIN_SHARE_OF_STEPS * last_row[STEP])
    return is_short and _began_trained(points, last_row)


def _began_trained(points: RowArrays, last_row: _Row) -> bool:
    """Return whether an attempt goes on from a resume. A far shorter attempt before it, whose end it does not
    go on from, has taught it next to nothing.
    """
    series = last_row[SERIES]
    trained = last_row[STEP] - points.first_step.get(series, 0)
    return points.resumed[series] or bool(points.last_step_before.get(series, 0) > BARELY * trained)


def _standings(last_row: _Row) -> dict[str, float]:
    """Return what is known of the companions of a run that goes on."""
    companion_values = {name: [last_row.get(use.column) for use in uses] for name, uses in STANDINGS.items()}
    return {
        name: largest({n: value for n, value in enumerate(values) if value is not None})
        for name, values in companion_values.items()
    }


def _may_yet_leave(points: RowArrays, last_row: _Row, card: Card, role: Role) -> bool:
    """Return whether a series that stands at its start says nothing.

    The first row of a resume is no untrained start, but the forest asks for none. A third of the plan comes
    first. Early stopping ends a run before, and then twice the evaluations that a card needs tell enough.
    """
    was_evaluated = role is Role.METRIC and last_row[INDEX] + 1 >= ENOUGH * card.over.least_points
    plan = 0.0 if last_row[ENDED] and was_evaluated else last_row[PLAN] or 0.0
    is_no_start = _began_trained(points, last_row) and not card.asks_forest
    return last_row[STEP] < MIN_PROGRESS * plan or is_no_start


def _measured(
    outcome: Curves, companions: Mapping[str, Sequence[Curves]], names: Collection[str]
) -> dict[str, float]:
    """Return the named measurements of one outcome, and where it was at its best."""
    measured = {
        name: float(MEASUREMENTS[name].of(outcome)[0])
        for name in {*names, "since_best"}
        if name in MEASUREMENTS
    }
    for name in {*names} - measured.keys() - {OPINION}:
        companion = COMPANY[name]
        values = [float(companion.measure(outcome, other)[0]) for other in companions.get(companion.role, ())]
        measured[name] = largest(dict(enumerate(values)))
    return measured
