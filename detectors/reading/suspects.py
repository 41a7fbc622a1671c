"""Which score cards may page of which series: those that are worth being read, whatever the rest shows.

Noise and companions cost time to measure, and nearly always a card is ruled out by the outcome alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.reading.cards import Bar, Card
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import Bools, Curves
from sentinel.detectors.reading.forest import OPINION
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import PARTS, Part, Role
from sentinel.detectors.schema import ENDED, INDEX, STAGE, STEP
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, Ints

IS_LOOK = "is_look"
"""The column that tells where cards are read at a look, or at the end."""

IS_WHOLE = "is_whole"
"""The column that tells where cards are read of the run as a whole."""

PLAN = "planned_steps"
"""The column with the steps that are planned at a look."""


class Progress(msgspec.Struct, frozen=True):
    """How far each series is: its points, whether it is over, or judged as if it were, by which stage of its
    plan, whether this is a look of one that goes on, the share of its plan, and its epochs.
    """

    counts: Floats
    has_ended: Bools
    as_whole: Bools
    stage: Floats
    is_look: Bools
    plan_share: Floats
    epochs: Floats

    @classmethod
    def of_rows(cls, rows: pl.DataFrame) -> "Progress":
        """Return this of series that are at one row each."""
        plan_share = rows.select(pl.col(STEP) / pl.col(PLAN)).to_series().to_numpy()
        epochs = rows[Signal.EPOCH].cast(pl.Float64).fill_null(np.nan).to_numpy()
        has_ended = rows[ENDED].to_numpy()
        is_look = rows[IS_LOOK].to_numpy() & ~has_ended
        stage = rows[STAGE].fill_null(0.0).to_numpy()
        counts = rows[INDEX].to_numpy() + 1.0
        return cls(counts, has_ended, rows[IS_WHOLE].to_numpy(), stage, is_look, plan_share, epochs)

    def at(self, indices: Ints) -> "Progress":
        """Return this of some of the series."""
        return Progress(*(numbers[indices] for numbers in msgspec.structs.astuple(self)))

    def tells(self, card: Card) -> Bools:
        """Return of which series a card tells what it says of the run as a whole."""
        return self.has_ended | (self.as_whole & ((self.stage >= card.stage) | isfinite(card.grown)))


class Suspects(msgspec.Struct, frozen=True):
    """Cards that may page of a series, whatever its noise and companions are.

    Those ``in_doubt`` would if the run ended here. Those ``to_read`` may at once.
    """

    in_doubt: list[Card] = msgspec.field(default_factory=list)
    to_read: list[Card] = msgspec.field(default_factory=list)


def suspects_of(
    courses: Floats, signals: NDArray[np.str_], all_progress: Progress, cards: Sequence[Card]
) -> dict[int, Suspects]:
    """Return the suspects of series that have any, by their places."""
    suspects: defaultdict[int, Suspects] = defaultdict(Suspects)
    for signal in {*signals.tolist()}:
        part = PARTS.get(Signal(signal))
        of_role = [card for card in cards if part and part.role in card.roles]
        if part is None or not of_role:
            continue
        indices = np.flatnonzero(signals == signal)
        progress = all_progress.at(indices)
        epochs = epochs_of(part, progress.epochs, progress.counts)
        outcome = curves_of(courses[indices], np.nan, progress.counts, part)
        among = progress.has_ended | progress.is_look
        # A cost that never was anything but 0 is not too high, and may be rounded.
        is_told = (not outcome.is_cost) | (outcome.units != 0).any(axis=1)
        for card in of_role:
            if card.asks_forest:
                continue
            among |= _may_page(card, card.over, outcome, progress.as_whole, progress.tells(card) & ~among)
        for card in of_role:
            may_page = is_told & _may_page(card, card.over, outcome, progress.as_whole, among)
            if card.asks_forest:
                may_page &= progress.has_ended
            if not may_page.any():
                continue
            is_read = may_page & progress.tells(card)
            for bar in card.running:
                is_due = may_page & progress.is_look & bar.is_for(progress.plan_share, epochs)
                if not is_due.any():
                    continue
                reaches = _may_page(card, bar, outcome, np.zeros_like(is_due), is_due)
                is_read |= _may_have_stood(card, bar, outcome, reaches)
            for index in indices[may_page].tolist():
                suspects[index].in_doubt.append(card)
            for index in indices[is_read].tolist():
                suspects[index].to_read.append(card)
    return suspects


def epochs_of(part: Part, epochs: Floats, counts: Floats) -> Floats:
    """Return how many epochs series have seen. A held-out loss moves from its first evaluations on, so that
    these are counted.
    """
    return counts if part.role is Role.HELD_OUT_LOSS else epochs


def _may_page(card: Card, bar: Bar, outcome: Curves, as_whole: Bools, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some a card may reach a bar; what is not measured yet may be as bad
    as can be. Companions count where a run is judged as a whole.
    """
    return _may_reach(card, bar, bar.needed(outcome.points), outcome, as_whole, among)


def _may_have_stood(card: Card, bar: Bar, outcome: Curves, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some of runs that go on a card may have reached a bar for long
    enough.
    """
    for share in bar.earlier_shares:
        earlier = outcome.until(share)
        needed = np.full(len(among), bar.page_from)
        among = _may_reach(card, bar, needed, earlier, np.zeros_like(among), among)
    return among


def _may_reach(card: Card, bar: Bar, needed: Floats, outcome: Curves, as_whole: Bools, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some a card may have the points that are needed at a bar."""
    possible = among & (needed < np.inf)
    for names, is_least in (bar.needs, True), (bar.excuses, False):
        for name, least in names.items():
            if name in MEASUREMENTS and possible.any():
                measured = MEASUREMENTS[name].of(outcome)
                possible &= ~(measured < least) if is_least else ~(measured >= least)
    if not possible.any():
        return possible
    points = np.zeros(len(possible))
    for line in card.lines:
        if line.measurement in COMPANY or line.measurement == OPINION:
            points += np.where(as_whole, line.most, 0)
        else:
            measured = MEASUREMENTS[line.measurement].of(outcome)
            points += np.where(np.isnan(measured), line.most, line.score(measured))
    return possible & (points >= needed)


def curves_of(courses: Floats, noise: float, counts: Floats, part: Part) -> Curves:
    sign = 1.0 if part.higher_is_better else -1.0
    noises = np.full(len(courses), noise)
    return Curves(sign * courses, noises, counts, is_cost=not part.higher_is_better)
