"""A claim about the outcome of a run as a score card: data that a person can read, and how it is added up.

Each line of a card has a measurement, marks, and the whole points that are reached at each mark; between two
marks the points grow evenly, and before the first one there are none. Points below zero speak against the
claim. What cannot be measured gives no points. Cards are read from ``cards.json``, which `make docs` writes
from the files of `card_files`: to parse and check so many would take longer than to read a short log.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from math import inf
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.detectors.reading.curves import Bools
from sentinel.detectors.reading.forest import MEASURED, OPINION
from sentinel.detectors.reading.roles import Role
from sentinel.detectors.stats import Floats

CARDS = Path(__file__).parent / "cards.json"
"""All cards, a card a line."""

MAX_LINES = 8
"""Of a card: what a person can hear at once."""

MIN_POINTS = 1.0
"""From which a card may page."""

MAX_TOLD = 1000
"""Larger numbers than this one say no more to a person."""

LEAST_TOLD = 1e-4
"""Smaller ones (or percents) are nothing to a person."""

MAX_POWER = 18.0
"""Of ten that a line tells at most."""

DIGITS = 6
"""Decimals of points, so that a sum of them reaches a whole number that it ought to reach."""


class Amount(float):
    """A number as a person reads it: from ``MAX_TOLD`` (or that percent) on, only that it is as large, and
    below ``LEAST_TOLD`` nothing.
    """

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        unit = "%" if spec.endswith("%") else ""
        size = abs(self) * (100 if unit else 1)
        if float(f"{size:.3g}") >= MAX_TOLD:
            return f"at {'most -' if self < 0 else 'least '}{MAX_TOLD}{unit}"
        return (0.0 if size < LEAST_TOLD else float(self)).__format__(spec)


def worded(says: str, value: float) -> str:
    """Return what a format string of a `Line` says of a measured value."""
    better, worse = ("better", "worse") if value >= 0 else ("worse", "better")
    times = 10.0 ** min(max(value, -MAX_POWER), MAX_POWER)
    return says.format(
        value=Amount(abs(value)),
        level=Amount(value),
        ratio=Amount(1 + value),
        times=Amount(times),
        count=round(times),
        better=better,
        worse=worse,
    )


class Line(msgspec.Struct, frozen=True, dict=True):
    """One line of a card. The ``points`` stand at the ``marks``.

    ``says`` is a format string over these fields of a measurement: its ``value`` without its sign, which the
    words ``better`` and ``worse`` tell (below zero each is the other one); its ``level``, with the sign; its
    ``ratio`` to what it is a share of, 1 more; ten to its power as ``times``, and that as a whole ``count``.
    """

    measurement: str
    says: str
    marks: tuple[float, ...]
    points: tuple[int, ...]

    @property
    def most(self) -> int:
        """The points that it gives at most; 0 if it takes some."""
        return max(0, *self.points)

    def text(self, value: float) -> str:
        """Return what the line says of a run."""
        return worded(self.says, value)

    def score(self, values: Floats) -> Floats:
        """Return the points for each value; none for NaN."""
        points: Floats = np.where(np.isnan(values), 0.0, np.interp(values, *self._curve).round(DIGITS))
        return points

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """The marks as they rise, and the points at them."""
        order = np.argsort(self.marks)
        return np.array(self.marks)[order], np.array(self.points, float)[order]


class Bar(msgspec.Struct, frozen=True):
    """What a card has to reach: on a series of ``least_points`` points at least that measures what it
    ``needs``, and of which no measurement as large as one of the ``excuses`` says that it is well, it pages
    from ``page_from`` points on. With ``progress`` it is for a run that has done that share of its plan, with
    ``least_epochs`` for one that has seen so many epochs or evaluations: a batch that changes nothing says
    little. What has to have stood ``stands_for`` a share of the rows would have paged before that part, too.
    On ``few`` points it takes more of the card: so many are enough for that.
    """

    least_points: int
    needs: Mapping[str, float]
    excuses: Mapping[str, float]
    page_from: float
    progress: float = 0.0
    least_epochs: int = 0
    stands_for: float = 0.0
    few: tuple[int, float] | None = None

    @property
    def fewest(self) -> int:
        """The points of a series on which it may be reached at all."""
        return self.few[0] if self.few else self.least_points

    def needed(self, counts: Floats) -> Floats:
        """Return the points of the card that it takes on series of so many points."""
        needed: Floats = np.where(counts < self.least_points, np.inf, self.page_from)
        if self.few:
            least, page_from = self.few
            needed = np.where((counts >= least) & (counts < self.least_points), page_from, needed)
        return needed

    @property
    def earlier_shares(self) -> tuple[float, ...]:
        """The shares of the rows after which the card would have paged, too: as long ago, and in between."""
        return (1 - self.stands_for, 1 - self.stands_for / 2) if self.stands_for else ()

    def is_for(self, progress: Floats, epochs: Floats) -> Bools:
        """Return whether it is for runs with such shares of their plans done and so many epochs seen; NaN
        where none is known.
        """
        is_late = (progress >= self.progress) | (self.progress == 0)
        return is_late & ((epochs >= self.least_epochs) | (self.least_epochs == 0))

    def raised(self, times: float) -> "Bar":
        """Return the bar where so many times the points are needed, one at least."""
        few = self.few and (self.few[0], times * self.few[1])
        return replace(self, page_from=max(MIN_POINTS, times * self.page_from), few=few)

    def allows(self, measured: Mapping[str, float]) -> bool:
        """Return whether a series measures what is needed, and nothing excuses it."""
        has_needs = all(measured[name] >= least for name, least in self.needs.items())
        return has_needs and not any(measured[name] >= least for name, least in self.excuses.items())


class Card(msgspec.Struct, frozen=True, eq=False, omit_defaults=True):
    """A claim: what it means, on series of which roles it is made, and its lines.

    The trouble ``begins`` at the start of the run, or at its best. It is told by the ``detector``, and
    ``catalogue`` has its likely causes, likeliest first. The bar of a run that is ``over`` is lower than
    those of one that is still ``running``, of which it is read again and again; it has to reach one of these,
    and without any it waits for the end. It says nothing where a claim that it ``yields_to`` pages.

    At interims a run that goes on is read as if it were over. What is read there is told from the ``stage``
    of the plan on, or, from the bar ``standing`` on if there is one, once it stood at all interims while the
    log grew to ``grown`` times its length.
    """

    claim: str
    meaning: str
    begins: str
    roles: tuple[Role, ...]
    detector: str
    catalogue: tuple[str, ...]
    over: Bar
    lines: tuple[Line, ...]
    running: tuple[Bar, ...] = ()
    yields_to: tuple[str, ...] = ()
    grown: float = inf
    stage: float = inf
    standing: Bar | None = None

    @property
    def at_interims(self) -> Bar:
        """The bar at interims that are no stages."""
        return self.standing or self.over

    @property
    def most(self) -> int:
        """The points that it gives at most."""
        return sum(line.most for line in self.lines)

    @property
    def measurements(self) -> frozenset[str]:
        """The names of all that it takes to read it."""
        bounds = {
            name
            for bar in (self.at_interims, self.over, *self.running)
            for name in (*bar.needs, *bar.excuses)
        }
        inputs = MEASURED if self.asks_forest else ()
        return frozenset({*(line.measurement for line in self.lines), *bounds, *inputs})

    @property
    def asks_forest(self) -> bool:
        """Whether it is the forest that makes the claim, of a run that is over."""
        return any(line.measurement == OPINION for line in self.lines)

    def raised(self, times: float) -> "Card":
        """Return the card with all bars raised. It pages nowhere where it did not before."""
        running = tuple(bar.raised(times) for bar in self.running)
        standing = self.standing and self.standing.raised(times)
        return replace(self, over=self.over.raised(times), running=running, standing=standing)

    def points(self, measured: Mapping[str, Floats]) -> Floats:
        """Return the points of each series by each line: lines x series."""
        points: Floats = np.array([line.score(measured[line.measurement]) for line in self.lines])
        return points

    def total(self, measured: Mapping[str, float]) -> float:
        """Return the points of one series by all lines."""
        return float(self.points({name: np.array([value]) for name, value in measured.items()}).sum())

    def text(
        self,
        measured: Mapping[str, float],
        *,
        most: int = MAX_LINES,
        running: Bar | None = None,
        count: float = inf,
    ) -> str:
        """Return how the points of one series came about, as a sentence that can be read aloud.

        It tells ``most`` lines, those with the most points; of a run that goes on, by one of its bars. The
        series has ``count`` points.
        """
        bar = running or self.over
        when = " while it runs" if running else ""
        needed = float(bar.needed(np.array(count)))
        few = " of so few rows" if needed > bar.page_from else ""
        lasts = f" if it did for {bar.stands_for:.0%} of the rows" if bar.stands_for else ""
        values = [measured[line.measurement] for line in self.lines]
        points = [
            float(line.score(np.array([value]))[0]) for line, value in zip(self.lines, values, strict=True)
        ]
        total = sum(points)
        heaviest = sorted(range(len(points)), key=lambda index: -abs(points[index]))[:most]
        line_texts = [
            f"{self.lines[index].text(values[index])} ({points[index]:+.0f})"
            for index in heaviest
            if round(points[index])
        ]
        sums = f"{total:.0f} of {self.most}, pages{when} from {needed:g}{few}{lasts}"
        return f"{self.meaning}: {', '.join(line_texts) or 'nothing speaks for it'}: {sums}"


@cache
def card_of(claim: str) -> Card:
    """Return the card of a claim. Raises KeyError if there is none."""
    return {card.claim: card for card in all_cards()}[claim]


@cache
def second_opinions() -> frozenset[str]:
    """Return the claims that the forest makes."""
    return frozenset(card.claim for card in all_cards() if card.asks_forest)


@cache
def all_cards() -> tuple[Card, ...]:
    """Return the cards of the project by their names' order."""
    return msgspec.json.decode(CARDS.read_bytes(), type=tuple[Card, ...])
