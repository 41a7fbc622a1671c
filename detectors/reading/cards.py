"""A claim about the outcome of a run as a score card: data that a person can read, and how it is added up.

A card lies in ``claims/`` as TOML. Each of its lines has a measurement, marks, and the whole points that are
reached at each mark; between two marks the points grow evenly, and before the first one there are none.
Points below zero speak against the claim. What cannot be measured gives no points.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import Bools
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OUTCOMES, Role
from sentinel.detectors.stats import Floats

FOLDER = Path(__file__).parent / "claims"

MAX_LINES = 8
"""Of a card: what a person can hear at once."""

MIN_POINTS = 1.0
"""From which a card may page."""

MAX_TOLD = 1000
"""Larger numbers than this one say no more to a person."""

MAX_POWER = 18.0
"""Of ten that a line tells at most."""

DIGITS = 6
"""Decimals of points, so that a sum of them reaches a whole number that it ought to reach."""

TEXTS = ("claim", "meaning", "begins", "detector")
BEGINS = ("start", "best")
LISTS = ("roles", "catalogue")
NUMBERS = ("least_points", "page_from")
BOUNDS = ("needs", "excuses")
PROGRESS = "progress"
STANDS_FOR = "stands_for"
SHARES = {PROGRESS: "plan", STANDS_FOR: "rows"}
LEAST_EPOCHS = "least_epochs"
INTERIMS = "interims"
GROWN = "grown"
STAGE = "stage"
OPTIONAL = {*BOUNDS, "yields_to", "running", "lines", INTERIMS}
LINE = {"measurement", "says", "marks", "points"}


class CardError(ValueError):
    """A card that cannot be used. Its text is one line that names the file and the line of the card."""


class Amount(float):
    """A number as a person reads it: from ``MAX_TOLD`` (or that percent) on, only that it is as large."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        unit = "%" if spec.endswith("%") else ""
        size = abs(self) * (100 if unit else 1)
        if float(f"{size:.3g}") >= MAX_TOLD:
            return f"at {'most -' if self < 0 else 'least '}{MAX_TOLD}{unit}"
        return super().__format__(spec)


class Line(msgspec.Struct, frozen=True):
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
        better, worse = ("better", "worse") if value >= 0 else ("worse", "better")
        times = 10.0 ** min(max(value, -MAX_POWER), MAX_POWER)
        return self.says.format(
            value=Amount(abs(value)),
            level=Amount(value),
            ratio=Amount(1 + value),
            times=Amount(times),
            count=round(times),
            better=better,
            worse=worse,
        )

    def score(self, values: Floats) -> Floats:
        """Return the points for each value; none for NaN."""
        rising = self.marks[0] < self.marks[-1]
        marks = np.array(self.marks if rising else self.marks[::-1])
        at = np.array(self.points if rising else self.points[::-1], float)
        points: Floats = np.where(np.isnan(values), 0.0, np.interp(values, marks, at).round(DIGITS))
        return points


class Bar(msgspec.Struct, frozen=True):
    """What a card has to reach: on a series of ``least_points`` points at least that measures what it
    ``needs``, and of which no measurement as large as one of the ``excuses`` says that it is well, it pages
    from ``page_from`` points on. With ``progress`` it is for a run that has done that share of its plan, with
    ``least_epochs`` for one that has seen so many epochs or evaluations: a batch that changes nothing says
    little. What has to have stood ``stands_for`` a share of the rows would have paged before that part, too.
    """

    least_points: int
    needs: Mapping[str, float]
    excuses: Mapping[str, float]
    page_from: float
    progress: float = 0.0
    least_epochs: int = 0
    stands_for: float = 0.0

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
        return replace(self, page_from=max(MIN_POINTS, times * self.page_from))

    def allows(self, measured: Mapping[str, float]) -> bool:
        """Return whether a series measures what is needed, and nothing excuses it."""
        has_needs = all(measured[name] >= least for name, least in self.needs.items())
        return has_needs and not any(measured[name] >= least for name, least in self.excuses.items())


class Card(msgspec.Struct, frozen=True, eq=False):
    """A claim: what it means, on series of which roles it is made, and its lines.

    The trouble ``begins`` at the start of the run, or at its best. It is told by the ``detector``, and
    ``catalogue`` has its likely causes, likeliest first. The bar of a run that is ``over`` is lower than
    those of one that is still ``running``, of which it is read again and again; it has to reach one of these,
    and without any it waits for the end. It says nothing where the claim that it ``yields_to`` pages.

    At interims a run that goes on is read as if it were over. What is read there is told from the ``stage``
    of the plan on, or once it stood at all interims while the log grew to ``grown`` times its length.
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
    yields_to: str = ""
    grown: float = inf
    stage: float = inf

    @property
    def most(self) -> int:
        """The points that it gives at most."""
        return sum(line.most for line in self.lines)

    @property
    def measurements(self) -> frozenset[str]:
        """The names of all that it takes to read it."""
        bounds = {name for bar in (self.over, *self.running) for name in (*bar.needs, *bar.excuses)}
        return frozenset({line.measurement for line in self.lines} | bounds)

    def raised(self, times: float) -> "Card":
        """Return the card with all bars raised. It pages nowhere where it did not before."""
        running = tuple(bar.raised(times) for bar in self.running)
        return replace(self, over=self.over.raised(times), running=running)

    def points(self, measured: Mapping[str, Floats]) -> Floats:
        """Return the points of each series by each line: lines x series."""
        points: Floats = np.array([line.score(measured[line.measurement]) for line in self.lines])
        return points

    def total(self, measured: Mapping[str, float]) -> float:
        """Return the points of one series by all lines."""
        return float(self.points({name: np.array([value]) for name, value in measured.items()}).sum())

    def text(
        self, measured: Mapping[str, float], *, most: int = MAX_LINES, running: Bar | None = None
    ) -> str:
        """Return how the points of one series came about, as a sentence that can be read aloud.

        It tells ``most`` lines, those with the most points; of a run that goes on, by one of its bars.
        """
        bar = running or self.over
        when = " while it runs" if running else ""
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
        sums = f"{total:.0f} of {self.most}, pages{when} from {bar.page_from:g}{lasts}"
        return f"{self.meaning}: {', '.join(line_texts) or 'nothing speaks for it'}: {sums}"


@cache
def card_of(claim: str) -> Card:
    """Return the card of a claim. Raises KeyError if there is none."""
    return {card.claim: card for card in all_cards()}[claim]


@cache
def all_cards() -> tuple[Card, ...]:
    """Return the cards of the project by their names' order. Raises CardError for the first wrong one."""
    return tuple(card_in(file.name, file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.toml")))


def card_in(file: str, text: str) -> Card:
    """Return the card in a text; ``file`` is its name in a complaint. Raises CardError for a wrong one."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{file}: {error}") from None
    unknown = content.keys() - {*TEXTS, *LISTS, *NUMBERS, *OPTIONAL}
    if unknown:
        raise CardError(f"{file}: unknown key {min(unknown)}")
    for keys, kinds in ((TEXTS, str), (LISTS, list), (NUMBERS, (int, float)), (("lines",), list)):
        for key in keys:
            if not isinstance(content.get(key), kinds):
                raise CardError(f"{file}: {key} is missing, or no {_kind(kinds)}")
    if content["begins"] not in BEGINS:
        raise CardError(f"{file}: begins must be one of {', '.join(BEGINS)}")
    roles = content["roles"]
    if not roles or not {*roles} <= {role.value for role in OUTCOMES}:
        raise CardError(f"{file}: roles must be some of {', '.join(OUTCOMES)}")
    if not 0 < len(content["lines"]) <= MAX_LINES:
        raise CardError(f"{file}: a card has 1 to {MAX_LINES} lines, and not {len(content['lines'])}")
    over = _bar(file, {key: content[key] for key in (*NUMBERS, *BOUNDS) if key in content})
    return Card(
        claim=content["claim"],
        meaning=content["meaning"],
        begins=content["begins"],
        roles=tuple(Role(role) for role in roles),
        detector=content["detector"],
        catalogue=tuple(content["catalogue"]),
        over=over,
        running=tuple(
            _bar(f"{file}: running {n}", bar, over) for n, bar in enumerate(content.get("running", ()), 1)
        ),
        yields_to=content.get("yields_to", ""),
        **_interims(file, content.get(INTERIMS, {})),
        lines=tuple(_line(f"{file}: line {n}", line) for n, line in enumerate(content["lines"], 1)),
    )


def _interims(file: str, content: Any) -> dict[str, float]:
    """Return when a card tells what it says at interims."""
    if not isinstance(content, dict) or not content.keys() <= {GROWN, STAGE}:
        raise CardError(f"{file}: {INTERIMS} has {GROWN}, {STAGE} and nothing else")
    if not all(isinstance(value, int | float) and value > 0 for value in content.values()):
        raise CardError(f"{file}: {INTERIMS} must have a number above 0 for each")
    return {name: float(value) for name, value in content.items()}


def _kind(kinds: Any) -> str:
    return {str: "text", list: "list"}.get(kinds, "number")


def _bar(where: str, content: Any, below: Bar | None = None) -> Bar:
    """Return a bar; what it needs and what excuses it are asked beside those of the bar ``below``."""
    keys = (*NUMBERS, *BOUNDS, *SHARES, LEAST_EPOCHS)
    if not isinstance(content, dict) or not content.keys() <= {*keys}:
        raise CardError(f"{where} has {', '.join(keys)} and nothing else")
    for key in NUMBERS:
        if not isinstance(content.get(key), int | float):
            raise CardError(f"{where}: {key} is missing, or no number")
    if not isinstance(content.get(LEAST_EPOCHS, 0), int):
        raise CardError(f"{where}: {LEAST_EPOCHS} must be a whole number")
    for key, whole in SHARES.items():
        share = content.get(key, 0)
        if not isinstance(share, int | float) or not 0 <= share < 1:
            raise CardError(f"{where}: {key} must be a share of the {whole}")
    is_stricter = any(content.get(key) for key in SHARES)
    least = below.page_from if below else 0
    if content["page_from"] < least or (content["page_from"] == least and not is_stricter):
        raise CardError(f"{where}: page_from must lie above {least:g}")
    bounds = {key: _bounds(f"{where}: {key}", content.get(key, {})) for key in BOUNDS}
    return Bar(
        least_points=int(content["least_points"]),
        needs={**(below.needs if below else {}), **bounds["needs"]},
        excuses={**(below.excuses if below else {}), **bounds["excuses"]},
        page_from=float(content["page_from"]),
        progress=float(content.get(PROGRESS, 0)),
        least_epochs=content.get(LEAST_EPOCHS, 0),
        stands_for=float(content.get(STANDS_FOR, 0)),
    )


def _line(where: str, content: Mapping[str, Any]) -> Line:
    """Return one line of a card; ``where`` names it in a complaint."""
    if content.keys() != LINE:
        raise CardError(f"{where}: has {sorted(content)}, and needs {sorted(LINE)}")
    name = content["measurement"]
    where = f"{where} ({name})"
    _require_measurement(where, name)
    marks = content["marks"]
    points = content["points"]
    if len(marks) != len(points) or len(marks) < 2:
        raise CardError(f"{where}: needs as many points as marks, two at least")
    if marks not in (sorted(set(marks)), sorted(set(marks), reverse=True)):
        raise CardError(f"{where}: marks must rise all the time, or fall all the time")
    if not all(isinstance(point, int) for point in points) or points[0] != 0:
        raise CardError(f"{where}: points must be whole and begin with 0")
    if not _is_steady(points):
        raise CardError(f"{where}: points must only grow, or only shrink")
    line = Line(name, content["says"], tuple(map(float, marks)), tuple(points))
    try:
        line.text(0.5)
    except (LookupError, ValueError) as error:
        raise CardError(f"{where}: says cannot be filled in: {error!r}") from None
    return line


def _bounds(where: str, content: Any) -> dict[str, float]:
    if not isinstance(content, dict) or not all(isinstance(least, int | float) for least in content.values()):
        raise CardError(f"{where} must have a number for each measurement")
    for name in content:
        _require_measurement(f"{where} ({name})", name)
    return {name: float(least) for name, least in content.items()}


def _require_measurement(where: str, name: str) -> None:
    if name not in MEASUREMENTS and name not in COMPANY:
        raise CardError(f"{where}: there is no such measurement")


def _is_steady(points: Sequence[int]) -> bool:
    return list(points) in (sorted(points), sorted(points, reverse=True))
