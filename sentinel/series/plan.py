"""The settings of a run, under the names of `sentinel.detectors.settings`, the points from which they count,
and what else a stream says up to one of its points.

``settings.toml``, beside this file, holds the frameworks' names of each setting. Every setting is a number. A
setting that is a text is the index of the text in ``CHOICES``.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.settings import CHOICES, Setting
from sentinel.series.buckets import Floats, Steps
from sentinel.series.naming import profiles

_SETTINGS_FILE = Path(__file__).with_name("settings.toml")
_MAX_NAME_PARTS = 2  # parts of a dotted key that make a name
_OTHER = "other"  # the choice for a text that no other choice has
_OFF = ("false", "none", "null", "no", "off", "0", "")  # texts of a switch that is off
_BEHAVIORS = "behaviors"  # the table of ML-Agents that has one of each behavior
_VERSION = lazy_pattern(r"(\d{1,4})\.(\d{1,3})(?!\d)")


class _Name(msgspec.Struct, frozen=True):
    """One name of a setting. If names of different ranks are there, the lowest rank counts."""

    setting: Setting
    rank: int
    tables: frozenset[str]  # the tables in which it may stand
    text: str | None  # the text that it means if it is true; None for a name with a value


def planned(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the values in flat settings, by `Setting`.

    A setting is left out if two names give it different values, or if its value means that it is not known,
    such as -1 or "auto".
    """
    by_rank: dict[Setting, dict[int, set[float]]] = {}
    for key, stated in settings.items():
        parts = tuple(key.casefold().replace("/", ".").split("."))
        parts = parts[2:] if parts[0] == _BEHAVIORS else parts
        for name in _possible_names(parts):
            if (value := _setting_number(name, stated)) is not None:
                by_rank.setdefault(name.setting, {}).setdefault(name.rank, set()).add(value)
    best = {setting: ranks[min(ranks)] for setting, ranks in by_rank.items()}
    return {setting.value: values.pop() for setting, values in best.items() if len(values) == 1}


def meant(name: str, value: float) -> float | str | bool:
    """Return the meaning of a setting's value: a text, whether a switch is on, or the number itself."""
    setting = Setting(name)
    if setting in CHOICES:
        return CHOICES[setting][int(value)]
    return bool(value) if _setting_rows()[setting].get("switch") else value


def _possible_names(parts: tuple[str, ...]) -> list[_Name]:
    """Return the names of settings that a key may be."""
    names = _setting_names()
    lengths = range(1, min(len(parts), _MAX_NAME_PARTS) + 1)
    candidates = ((name, parts[:-n]) for n in lengths for name in names.get(parts[-n:], ()))
    return [name for name, tables in candidates if name.tables.issuperset(tables)]


def _setting_number(name: _Name, stated: Any) -> float | None:
    """Return the number for a stated value; None if the value says nothing of the setting."""
    choices = CHOICES.get(name.setting)
    if name.text is not None:
        is_true = stated is True or str(stated).casefold() == "true"
        return float((choices or ()).index(name.text)) if is_true else None
    if choices is not None:
        text = _setting_text(name.setting, stated)
        return None if text is None else float(choices.index(text))
    row = _setting_rows()[name.setting]
    if row.get("switch"):
        return float(str(stated).casefold() not in _OFF)
    if row.get("version"):
        version = _VERSION.match(str(stated))
        return int(version[1]) + int(version[2]) / 1000 if version else None
    try:
        number = math.nan if isinstance(stated, bool) else float(stated)
    except (TypeError, ValueError, OverflowError):
        return None
    is_enough = number >= row["least"] if "least" in row else number > 0
    return number if is_enough and number < row.get("below", math.inf) else None


def _setting_text(setting: Setting, stated: Any) -> str | None:
    """Return the text of the setting that the stated text means; None if it means none."""
    if isinstance(stated, bool) or not isinstance(stated, (str, int)):
        return None
    row = _setting_rows()[setting]
    last_part = str(stated) if row.get("whole") else str(stated).rpartition(".")[2]
    plain = re.sub("[^a-z0-9]", "", last_part.casefold())
    for text, words in row["words"].items():
        if any(word in plain for word in words):
            return str(text)
    return _OTHER if _OTHER in CHOICES[setting] and isinstance(stated, str) and plain else None


@cache
def _setting_rows() -> dict[str, Any]:
    return tomllib.loads(_SETTINGS_FILE.read_text(encoding="utf-8"))


@cache
def _setting_names() -> dict[tuple[str, ...], list[_Name]]:
    names: dict[tuple[str, ...], list[_Name]] = {}
    for setting in Setting:
        row = _setting_rows()[setting]
        tables = frozenset([*_setting_rows()["tables"], *row.get("tables", ())])
        spellings = [
            *((name, 0, text) for name, text in row.get("flags", {}).items()),
            *((name, 1, None) for name in row["names"]),
            *((name, 2, None) for name in row.get("instead", ())),
        ]
        for name, rank, text in spellings:
            names.setdefault(tuple(name.split(".")), []).append(_Name(setting, rank, tables, text))
    return names


class Plans(msgspec.Struct, array_like=True):
    """The settings of one stream: ``first`` counts from its beginning, others from a later position."""

    first: dict[str, float] = msgspec.field(default_factory=dict)
    later: list[tuple[int, dict[str, float]]] = msgspec.field(default_factory=list)

    def add(self, position: int, settings: Mapping[str, Any]) -> None:
        """Add settings that count from this position on."""
        new_settings = planned(settings)
        if self.now | new_settings != self.now:
            self.later = [later for later in self.later if later[0] < position] + [(position, new_settings)]

    @property
    def now(self) -> dict[str, float]:
        """The settings that count at the end of the stream."""
        return self._all_settings()[-1]

    def _all_settings(self) -> list[dict[str, float]]:
        """Return all settings from the beginning, and from each of the later positions."""
        return list(accumulate((self.first, *(later_settings for _, later_settings in self.later)), or_))

    def state(self, setting: str) -> bool:
        """Return whether a setting is known at any position."""
        return setting in self.first or any(setting in later_settings for _, later_settings in self.later)

    def column(self, setting: str, position: NDArray[np.int64], step: Steps) -> Floats:
        """Return the value of a setting at each row; NaN if it is not known.

        If the rows are past a planned number of steps, this number counts something else, and is not known.
        """
        values = np.array([plan.get(setting, np.nan) for plan in self._all_settings()])
        column = values[np.searchsorted([first for first, _ in self.later], position, side="right")]
        return np.where(step > column, np.nan, column) if setting == Setting.TOTAL_STEPS else column

    def value(self, setting: str, position: int, step: int) -> float | None:
        """Return the value of a setting at one row; see `column`."""
        value = self.first.get(setting)
        for first_position, later_settings in self.later:
            if first_position <= position:
                value = later_settings.get(setting, value)
        is_past = setting == Setting.TOTAL_STEPS and value is not None and step > value
        return None if is_past else value


_LAST_POSITION = np.iinfo(np.int64).max  # a position after all others


class KnownOfStream(msgspec.Struct, frozen=True):
    """What a stream says of its run, for rules about one of its points.

    Stays right while the stream goes on, because all that is added has later positions.
    """

    framework: str | None
    first_positions: Mapping[str, int]  # signal -> position of its first point
    plans: Plans

    def shows(self, word: str) -> bool:
        """Return whether the framework's profile says that its runs have it."""
        return self.framework is not None and word in profiles()[self.framework].shows

    def logs(self, signal: str, position: int) -> bool:
        """Return whether the signal had a point up to this position, in any attempt."""
        return signal in self.first_positions and self.first_positions[signal] <= position

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:
        """Return the value of a setting at this position; None if it is not known."""
        value = self.plans.value(name, position, step)
        return None if value is None else meant(name, value)


class KnownOfRun(msgspec.Struct, frozen=True):
    """What the streams of a run say so far, for a finding on the run as a whole.

    Such a finding has no place among their points, so the positions that rules ask for do not count.
    """

    streams: tuple[KnownOfStream, ...]

    @property
    def framework(self) -> str | None:
        """The framework of the first stream that has one."""
        return next((stream.framework for stream in self.streams if stream.framework), None)

    def shows(self, word: str) -> bool:
        """Return whether the profile of a stream says that its runs have it."""
        return any(stream.shows(word) for stream in self.streams)

    def logs(self, signal: str, position: int) -> bool:  # noqa: ARG002 - as rules ask
        """Return whether the signal had a point in any stream."""
        return any(signal in stream.first_positions for stream in self.streams)

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:  # noqa: ARG002
        """Return the last value of a setting in the first stream that knows it."""
        values = (stream.setting(name, _LAST_POSITION, 0) for stream in self.streams)
        return next((value for value in values if value is not None), None)
