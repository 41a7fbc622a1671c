"""The opinion of score cards on the outcome of a run, beside the rule of a detector.

A detector names the claims that it `reads`. Where a card pages and the rule is clean, or only informs, the
card is the finding: under the detector's name, in the same incident. A card is read with all series beside
the outcome when a run is over, and at interims as if it were. At looks while a run goes on it is read of the
outcome alone, against a higher bar.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.blocks import ROWS, by_count
from sentinel.detectors.declarations import History, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.interims import AT_ONCE
from sentinel.detectors.reading.cards import Bar, Card, card_of
from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import BLOCKS, Bools, Curves, noise_of
from sentinel.detectors.reading.looks import Look, looks
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OF_AGENTS, PARTS, Part, Role, part_of
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
    STEP,
    SUMS_UP,
    VALUE,
    VARIANT,
    Course,
    Standing,
)
from sentinel.detectors.settings import Setting
from sentinel.detectors.severity import INFO, WARNING
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import FIRST_INTERVALS, Floats, Ints, first_of_mostly, was_resumed

_Row = Mapping[str, Any]
"""The values of a row by their columns."""

HISTORY = History(recent=ROWS, head=FIRST_INTERVALS + 1, earlier=1, coarse=True)
"""What a detector that reads cards looks back at, at least."""

COURSES = tuple(Course(signal) for signal in PARTS)

SETTINGS = (Setting.EPOCHS,)
"""What the cards ask of the settings of a run: how long it is."""

LOSSES = Role.HELD_OUT_LOSS, Role.TRAINING_LOSS

STANDINGS = {
    f"{role}_keeps_gain": tuple(Standing(signal) for signal, part in PARTS.items() if part.role is role)
    for role in (Role.METRIC, Role.HELD_OUT_LOSS)
}
"""What tells a measurement of companions while a run goes on: how they stand."""

IS_LOOK = "is_look"
"""The column that tells where cards are read at a look, or at the end."""

IS_WHOLE = "is_whole"
"""The column that tells where cards are read of the run as a whole."""

PLAN = "planned_steps"
"""The column with the steps that are planned at a look."""

MIN_PROGRESS = 1 / 3
"""Share of the plan before which a start is left in time."""

ENOUGH = 2
"""Times the evaluations that a card needs, that tell enough of a run which is over before its plan."""

MIN_SHARE_OF_STEPS = 0.3
"""Of a run, that an attempt of few points which goes on from a resume has to cover, or it is no course."""

FALLEN = 1 / 4
"""Of what a series lost of its best: from there on a point is bad."""

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

    While a run goes on, the doubt of a rule that only informs weighs more than a card. ``usual`` are its
    findings with its usual parameters, unless ``findings`` are these: it is they that tell its doubt, or a
    card would page where a stricter rule finds nothing to doubt. The cards page from ``bar`` times their
    points.
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
    by_rule = pl.col(SEVERITY).fill_null(0)
    excused = pl.col(EXCUSED) if EXCUSED in findings.collect_schema().names() else pl.lit(value=False)
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


def any_grows(claims: Collection[str]) -> bool:
    """Return whether one of the cards tells what stood while the log grew."""
    return any(isfinite(card_of(claim).grown) for claim in claims)


def with_rivals(claims: Sequence[str], bar: float = 1.0) -> list[Card]:
    """Return the cards of claims with their bars raised, and those to which they yield, which stay as they
    are: a claim that another one told of is not told because that one has become stricter.
    """
    cards = [card_of(claim).raised(bar) for claim in claims]
    return cards + [card_of(card.yields_to) for card in cards if card.yields_to]


class _Points(msgspec.Struct, frozen=True, dict=True):
    """The rows of a WINDOW frame as arrays, which are sliced in no time."""

    frame: pl.DataFrame

    @cached_property
    def series(self) -> Ints:
        return self.frame[SERIES].to_numpy()

    @cached_property
    def index(self) -> Ints:
        return self.frame[INDEX].to_numpy()

    @cached_property
    def value(self) -> Floats:
        return self.frame[VALUE].to_numpy()

    @cached_property
    def resumed(self) -> Mapping[int, bool]:
        """Whether the attempt of each series goes on from a resume."""
        first = self.frame.lazy().filter(pl.col(INDEX) <= FIRST_INTERVALS)
        goes_on = (pl.col(INDEX) < 0) | was_resumed().fill_null(value=False)
        return dict(first.group_by(SERIES).agg(goes_on.any()).collect(engine="in-memory").iter_rows())

    @cached_property
    def first_step(self) -> Mapping[int, int]:
        """The first step of each series."""
        is_first = self.index == 0
        return dict(zip(self.series[is_first].tolist(), self.step[is_first].tolist(), strict=True))

    @cached_property
    def step(self) -> Ints:
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


def _opinions(frame: pl.DataFrame, is_read: pl.Series, claims: Sequence[str], bar: float) -> pl.DataFrame:
    """Return what the cards say at the looks and interims of a frame, in the rows that are read."""
    cards = with_rivals(claims, bar)
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64), **{PLAN: planned_steps()})
    least = min(card.over.least_points for card in cards)
    due = placed.filter(is_read & (pl.col(INDEX) + 1 >= least))
    signals = np.array(due[SIGNAL].to_list())
    all_progress = _Progress.of_rows(due)
    points = _Points(frame)
    opinions: list[dict[str, Any]] = [{} for _ in range(len(due))]
    with np.errstate(all="ignore"):
        for due_rows, courses in _alike(placed, due):
            suspects = _suspects(courses, signals[due_rows], all_progress.at(due_rows), cards)
            for index, series_suspects in suspects.items():
                due_row = int(due_rows[index])
                in_doubt = series_suspects.in_doubt
                is_doubtful = any(card.claim in claims for card in in_doubt)
                opinions[due_row] = {LOOK: int(Look.DOUBT if is_doubtful else Look.WELL)}
                if series_suspects.to_read:
                    last_row = due.row(due_row, named=True)
                    opinions[due_row] |= _of_series(points, last_row, courses[index], in_doubt, claims)
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


class _Progress(msgspec.Struct, frozen=True):
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
    def of_rows(cls, rows: pl.DataFrame) -> "_Progress":
        """Return this of series that are at one row each."""
        plan_share = rows.select(pl.col(STEP) / pl.col(PLAN)).to_series().to_numpy()
        epochs = rows[Signal.EPOCH].cast(pl.Float64).fill_null(np.nan).to_numpy()
        has_ended = rows[ENDED].to_numpy()
        is_look = rows[IS_LOOK].to_numpy() & ~has_ended
        stage = rows[STAGE].fill_null(0.0).to_numpy()
        counts = rows[INDEX].to_numpy() + 1.0
        return cls(counts, has_ended, rows[IS_WHOLE].to_numpy(), stage, is_look, plan_share, epochs)

    def at(self, indices: Ints) -> "_Progress":
        """Return this of some of the series."""
        return _Progress(*(numbers[indices] for numbers in msgspec.structs.astuple(self)))

    def tells(self, card: Card) -> Bools:
        """Return of which series a card tells what it says of the run as a whole."""
        return self.has_ended | (self.as_whole & ((self.stage >= card.stage) | isfinite(card.grown)))


class _Suspects(msgspec.Struct, frozen=True):
    """Cards that may page of a series, whatever its noise and companions are.

    Those ``in_doubt`` would if the run ended here. Those ``to_read`` may at once.
    """

    in_doubt: list[Card] = msgspec.field(default_factory=list)
    to_read: list[Card] = msgspec.field(default_factory=list)


def _suspects(
    courses: Floats, signals: NDArray[np.str_], all_progress: _Progress, cards: Sequence[Card]
) -> dict[int, _Suspects]:
    """Return the suspects of series that have any, by their places."""
    suspects: defaultdict[int, _Suspects] = defaultdict(_Suspects)
    for signal in {*signals.tolist()}:
        part = PARTS.get(Signal(signal))
        of_role = [card for card in cards if part and part.role in card.roles]
        if part is None or not of_role:
            continue
        indices = np.flatnonzero(signals == signal)
        progress = all_progress.at(indices)
        epochs = _epochs(part, progress.epochs, progress.counts)
        outcome = _curves(courses[indices], np.nan, progress.counts, part)
        among = progress.has_ended | progress.is_look
        for card in of_role:
            among |= _may_page(card, card.over, outcome, progress.as_whole, progress.tells(card) & ~among)
        for card in of_role:
            may_page = _may_page(card, card.over, outcome, progress.as_whole, among)
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


def _epochs(part: Part, epochs: Floats, counts: Floats) -> Floats:
    """Return how many epochs series have seen. A held-out loss moves from its first evaluations on, so that
    these are counted.
    """
    return counts if part.role is Role.HELD_OUT_LOSS else epochs


def _may_page(card: Card, bar: Bar, outcome: Curves, as_whole: Bools, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some a card may reach a bar; what is not measured yet may be as bad
    as can be. Companions count where a run is judged as a whole.
    """
    return _may_reach(card, bar, outcome, as_whole, among & (outcome.points >= bar.least_points))


def _may_have_stood(card: Card, bar: Bar, outcome: Curves, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some of runs that go on a card may have reached a bar for long
    enough.
    """
    for share in bar.earlier_shares:
        among = _may_reach(card, bar, outcome.until(share), np.zeros_like(among), among)
    return among


def _may_reach(card: Card, bar: Bar, outcome: Curves, as_whole: Bools, among: Bools) -> Bools:
    """Return of which outcomes ``among`` some a card may have the points of a bar, however few points there
    are.
    """
    possible = among.copy()
    for names, is_least in (bar.needs, True), (bar.excuses, False):
        for name, least in names.items():
            if name in MEASUREMENTS and possible.any():
                measured = MEASUREMENTS[name].of(outcome)
                possible &= ~(measured < least) if is_least else ~(measured >= least)
    if not possible.any():
        return possible
    points = np.zeros(len(possible))
    for line in card.lines:
        if line.measurement in COMPANY:
            points += np.where(as_whole, line.most, 0)
        else:
            measured = MEASUREMENTS[line.measurement].of(outcome)
            points += np.where(np.isnan(measured), line.most, line.score(measured))
    return possible & (points >= bar.page_from)


def _of_series(
    points: _Points, last_row: _Row, course: Floats, cards: Sequence[Card], claims: Collection[str]
) -> dict[str, Any]:
    """Return what the cards of claims say of one series, the worst alone; ``last_row`` is its last row.

    The ``cards`` are of its role, unless what it is depends on others.
    """
    courses = {use.signal: use.column for use in COURSES if last_row.get(use.column)}
    agent_signals = {signal for signal in OF_AGENTS if last_row.get(signal) is not None}
    signals = frozenset({Signal(last_row[SIGNAL]), *courses, *agent_signals})
    part = part_of(Signal(last_row[SIGNAL]), signals)
    if part is None or part.role not in cards[0].roles or _is_short_tail(points, last_row):
        return {}
    counts = np.array([last_row[INDEX] + 1.0])
    outcome = _curves(course[None, :], points.noise(last_row[SERIES], last_row["row"]), counts, part)
    companions: dict[str, list[Curves]] = {}
    for signal, name in courses.items():
        companion_part = part_of(signal, signals)
        if companion_part is not None and signal != last_row[SIGNAL]:
            curves = _curves(np.array(last_row[name])[None, :], 0.0, counts, companion_part)
            companions.setdefault(companion_part.role, []).append(curves)
    names = {name for card in cards for name in card.measurements}
    of_series = _OfSeries(points, last_row, part, outcome, claims)
    opinion: dict[str, Any] = {}
    if last_row[IS_LOOK] and not last_row[ENDED]:
        opinion = of_series.while_running(cards, _measured(outcome, {}, names) | _standings(last_row))
    if last_row[IS_WHOLE] and opinion.get(LOOK) != int(Look.PAGES):
        opinion |= of_series.as_whole(cards, _measured(outcome, companions, names))
    return opinion


class _OfSeries(msgspec.Struct, frozen=True, dict=True):
    """One series, as it is in its last row, and the claims that may be made of it."""

    points: _Points
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
        epochs = _epochs(self.part, np.array([np.nan if epoch is None else epoch]), np.array([self._count]))
        paging = [
            (card.total(measured) / bar.page_from, card, bar)
            for card in self._of_claims(cards, measured)
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
        """Return what the cards say of the run as a whole: that is over, or judged as if it were."""
        has_ended = self.last_row[ENDED]
        beyond = self._of_claims(cards, measured)
        if not has_ended:
            beyond = [card for card in beyond if isfinite(self._grown(card))]
        if not beyond:
            return {LOOK: int(Look.WELL)} if has_ended else {}
        card = max(beyond, key=lambda card: card.total(measured) / card.over.page_from)
        if has_ended:
            return self._told(card, measured, None) | {LOOK: int(Look.PAGES)}
        return self._told(card, measured, None) | {"card_grown": self._grown(card)}

    def _grown(self, card: Card) -> float:
        """Return to how many times its length the log has to have grown for what a card says here."""
        stage = self.last_row[STAGE]
        return AT_ONCE if stage is not None and stage >= card.stage else card.grown

    def _of_claims(self, cards: Sequence[Card], measured: Mapping[str, float]) -> list[Card]:
        """Return the cards of the claims that would page if the run ended here."""
        beyond = {
            card.claim: card
            for card in cards
            if _reaches(card, card.over, self._count, measured)
            and not (
                card.begins == "start" and _may_yet_leave(self.points, self.last_row, card, self.part.role)
            )
        }
        return [
            card for claim, card in beyond.items() if claim in self.claims and card.yields_to not in beyond
        ]

    def _told(self, card: Card, measured: Mapping[str, float], running: Bar | None) -> dict[str, Any]:
        """Return the finding of a card, by one of its bars for runs that go on."""
        if card.begins == "best":
            onset = _fallen_since(self.points, self.last_row, self.outcome, self.part)
        else:
            onset = self.points.first_step.get(self.last_row[SERIES])
        return {
            "card_variant": card.claim,
            "card_severity": int(WARNING),
            "card_onset": onset,
            "card_points": card.total(measured),
            "reading": card.text(measured, most=MAX_TOLD_LINES, running=running),
            "card": card.text(measured, running=running),
        }


def _fallen_since(points: _Points, last_row: _Row, outcome: Curves, part: Part) -> int | None:
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


def _unit_since(points: _Points, last_row: _Row, is_bad: Bools, best_share: float) -> int | None:
    """Return about which step the units of a course began to be mostly bad, after its sound part."""
    first_step = points.first_step.get(last_row[SERIES])
    best = int(best_share * len(is_bad))
    first = first_of_mostly(is_bad[best:])
    if first_step is None or first is None:
        return first_step
    share = (best + first) / len(is_bad)
    return first_step + round(share * float(last_row[STEP] - first_step))


def _reaches(card: Card, bar: Bar, count: float, measured: Mapping[str, float]) -> bool:
    return count >= bar.least_points and bar.allows(measured) and card.total(measured) >= bar.page_from


def _has_stood(card: Card, bar: Bar, outcome: Curves) -> bool:
    """Return whether a card has reached a bar for as long as the bar asks, by the outcome alone."""
    earlier = (_measured(outcome.until(share), {}, card.measurements) for share in bar.earlier_shares)
    return all(bar.allows(measured) and card.total(measured) >= bar.page_from for measured in earlier)


def _is_short_tail(points: _Points, last_row: _Row) -> bool:
    """Return whether an attempt of few points that goes on from a resume covers little of the run so far."""
    covers = last_row[STEP] - points.first_step.get(last_row[SERIES], 0)
    is_short = last_row[INDEX] + 1 < FEW_POINTS and bool(covers < MIN_SHARE_OF_STEPS * last_row[STEP])
    return is_short and points.resumed[last_row[SERIES]]


def _standings(last_row: _Row) -> dict[str, float]:
    """Return what is known of the companions of a run that goes on."""
    companion_values = {name: [last_row.get(use.column) for use in uses] for name, uses in STANDINGS.items()}
    return {
        name: largest({n: value for n, value in enumerate(values) if value is not None})
        for name, values in companion_values.items()
    }


def _may_yet_leave(points: _Points, last_row: _Row, card: Card, role: Role) -> bool:
    """Return whether a series that stands at its start says nothing.

    The first row of a resume is no untrained start, and a third of the plan comes first. Early stopping ends
    a run before, and then twice the evaluations that a card needs tell enough.
    """
    was_evaluated = role is Role.METRIC and last_row[INDEX] + 1 >= ENOUGH * card.over.least_points
    plan = 0.0 if last_row[ENDED] and was_evaluated else last_row[PLAN] or 0.0
    return last_row[STEP] < MIN_PROGRESS * plan or points.resumed[last_row[SERIES]]


def _curves(courses: Floats, noise: float, counts: Floats, part: Part) -> Curves:
    sign = 1.0 if part.higher_is_better else -1.0
    noises = np.full(len(courses), noise)
    return Curves(sign * courses, noises, counts, is_cost=not part.higher_is_better)


def _measured(
    outcome: Curves, companions: Mapping[str, Sequence[Curves]], names: Collection[str]
) -> dict[str, float]:
    """Return the named measurements of one outcome, and where it was at its best."""
    measured = {
        name: float(MEASUREMENTS[name].of(outcome)[0])
        for name in {*names, "since_best"}
        if name in MEASUREMENTS
    }
    for name in names - measured.keys():
        companion = COMPANY[name]
        values = [float(companion.measure(outcome, other)[0]) for other in companions.get(companion.role, ())]
        measured[name] = largest(dict(enumerate(values)))
    return measured
