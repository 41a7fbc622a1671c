"""The files of cards: one TOML file a claim in ``claims/``, which people write and fits change.

`make docs` checks them and writes all of them into ``cards.json``, by which runs are judged.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sentinel.detectors.reading.cards import MAX_LINES, Bar, Card, Line
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.forest import OPINION
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OUTCOMES, Role

FOLDER = Path(__file__).parent / "claims"

TEXTS = ("claim", "meaning", "begins", "detector")
BEGINS = ("start", "best")
LISTS = ("roles", "catalogue")
NUMBERS = ("least_points", "page_from")
BOUNDS = ("needs", "excuses")
PROGRESS = "progress"
STANDS_FOR = "stands_for"
SHARES = {PROGRESS: "plan", STANDS_FOR: "rows"}
LEAST_EPOCHS = "least_epochs"
FEW = "few"
INTERIMS = "interims"
GROWN = "grown"
STAGE = "stage"
OPTIONAL = {*BOUNDS, "yields_to", "running", "lines", FEW, INTERIMS}
LINE = {"measurement", "says", "marks", "points"}


class CardError(ValueError):
    """A card that cannot be used. Its text is one line that names the file and the line of the card."""


def cards_of_files() -> tuple[Card, ...]:
    """Return the cards of all files by their names' order. Raises CardError for the first wrong one."""
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
    if FEW in content:
        over = replace(over, few=_few(f"{file}: {FEW}", content[FEW], over))
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
        yields_to=tuple(content.get("yields_to", ())),
        **_interims(f"{file}: {INTERIMS}", content.get(INTERIMS, {}), over),
        lines=tuple(_line(f"{file}: line {n}", line) for n, line in enumerate(content["lines"], 1)),
    )


def _few(where: str, content: Any, over: Bar) -> tuple[int, float]:
    """Return on how many points less than at the bar ``over`` a card pages, too, and from which points on."""
    if not isinstance(content, dict) or content.keys() != {*NUMBERS}:
        raise CardError(f"{where} has {' and '.join(NUMBERS)}")
    least_points = content["least_points"]
    page_from = content["page_from"]
    if not 0 < least_points < over.least_points or not page_from > over.page_from:
        raise CardError(f"{where} must have fewer points than {over.least_points}, and page from more")
    return int(least_points), float(page_from)


def _interims(where: str, content: Any, over: Bar) -> dict[str, Any]:
    """Return when a card tells what it says at interims, and from which bar on, if not that at the end."""
    if not isinstance(content, dict):
        raise CardError(f"{where} must be a table")
    times = {key: content[key] for key in (GROWN, STAGE) if key in content}
    if not all(isinstance(value, int | float) and value > 0 for value in times.values()):
        raise CardError(f"{where} must have a number above 0 for {GROWN} and {STAGE}")
    bar = {key: value for key, value in content.items() if key not in times}
    stricter = {"standing": _standing(where, bar, over)} if bar else {}
    return {name: float(value) for name, value in times.items()} | stricter


def _standing(where: str, content: Mapping[str, Any], over: Bar) -> Bar:
    """Return the bar at interims. On few points it takes what it takes at the end, if it does so on more."""
    bar = _bar(where, {"least_points": over.least_points, **content}, over, (*SHARES, *BOUNDS))
    takes_as_much = (bar.least_points, bar.page_from) == (over.least_points, over.page_from)
    return replace(bar, few=over.few) if takes_as_much else bar


def _kind(kinds: Any) -> str:
    return {str: "text", list: "list"}.get(kinds, "number")


def _bar(where: str, content: Any, below: Bar | None = None, stricter_by: Iterable[str] = SHARES) -> Bar:
    """Return a bar; what it needs and what excuses it are asked beside those of the bar ``below``. It pages
    from more points than that one, or from as many if it is stricter by something.
    """
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
    is_stricter = any(content.get(key) for key in stricter_by)
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
    if name not in MEASUREMENTS and name not in COMPANY and name != OPINION:
        raise CardError(f"{where}: there is no such measurement")


def _is_steady(points: Sequence[int]) -> bool:
    return list(points) in (sorted(points), sorted(points, reverse=True))
