"""Finds what a tag means, by the user's own mapping, the profile of a framework, or a careful fallback.

A profile is one file ``profiles/<name>.toml``:

    title     the framework, for people
    source    the code that makes these names
    extends   another profile, whose rows and prefixes count as well, unless this one has its own
    prefixes  what a logger may put before every tag; the default is [""], which is nothing
    formats   log formats that only this framework writes
    marks     lists of tags; a log that has all tags of a list may be of this framework
    ignore    tags that are known and are no signal
    summary   tags that are logged once, when the training is over
    shows     what every run of the framework has, in the words of ``sentinel/catalogue/needs.toml``
    [words]   signal = "signal" or "ignore": replaces a signal that the fallback finds
    [signals] tag = "signal" or tag = { signal = "...", factor = 0.01 }; first listed, first tried

Tags may contain ``*`` (see ``Patterns``). If several profiles have a mark in the log, the one that names most
of its tags counts, and on a tie the one that extends more profiles. A profile without marks exists only to be
extended.

`make docs` writes all of them into ``profiles.json``, a profile a line, by which logs are read: to parse so
many files would take longer than to read a short log.

The statistics of a histogram, such as ``fc/weight#std``, mean what their ending says, unless the histogram is
one of rewards and the like. Any other tag that its profile does not name is the user's own: the fallback
reads it word by word. What it does not understand may get a signal by its role in the run; see `roles.gaps`.
"""

import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.signals import Signal, tag_pattern
from sentinel.series.generic_names import fallback
from sentinel.series.patterns import Meaning, Patterns, bare, is_logged

__all__ = [
    "IGNORE",
    "Meaning",
    "Naming",
    "Origin",
    "Profile",
    "fallback",
    "is_of_histogram",
    "profiles",
    "recognise",
]

IGNORE = "ignore"
"""The word in the configuration for a tag that is no signal."""

PROFILES = Path(__file__).parent / "profiles.json"
"""What the files of all profiles say, by their names."""

_MAX_MEANINGS = 1 << 14  # that a Naming remembers, since runs of one project log the same tags

_OF_RETURNS = lazy_pattern("reward|return|episode|advantage|action", re.IGNORECASE)
"""Histograms of what an agent gets and does, whose shape says nothing of its network."""

_OF_HISTOGRAMS = {
    "mean": None,
    "std": Meaning(Signal.HISTOGRAM_STD),
    "zero_share": Meaning(Signal.HISTOGRAM_ZERO_SHARE),
    "kurtosis": Meaning(Signal.HISTOGRAM_KURTOSIS),
}
"""The statistics of a histogram. They follow its tag after a ``#``."""


class Origin(Enum):
    """Who says what a tag means."""

    USER = "user"
    PROFILE = "profile"


class Profile(msgspec.Struct, frozen=True, dict=True):
    """How one framework names its metrics. ``lineage`` has its own table and those that it extends."""

    name: str
    title: str
    source: str
    prefixes: Sequence[str]
    marks: Collection[Collection[str]]
    formats: Collection[str]
    summary: Collection[str]
    shows: Collection[str]
    lineage: Sequence[Mapping[str, Any]]

    @cached_property
    def names(self) -> Patterns:
        """The meanings by tag. Raises ValueError for a signal that does not exist."""
        rows: dict[str, Meaning | None] = {}
        for table in self.lineage:
            for tag, meaning in table.get("signals", {}).items():
                rows.setdefault(tag, _stored_meaning(meaning))
            for tag in table.get("ignore", ()):
                rows.setdefault(tag, None)
        return Patterns(rows, self.prefixes)

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The signals, or "ignore", that replace those which the fallback finds."""
        return ChainMap(*(table.get("words", {}) for table in self.lineage))

    def meaning(self, tag: str) -> Meaning | None:
        """Return the meaning of ``tag``; None if the tag is no signal or not known to the profile."""
        pattern = self.names.find(tag)
        return None if pattern is None else self.names.rows[pattern]


@cache
def profiles() -> Mapping[str, Profile]:
    """Return all profiles by name."""
    tables = msgspec.json.decode(PROFILES.read_bytes())
    return {name: _profile(name, tables) for name in tables}


@cache
def summaries() -> tuple[str, ...]:
    """Return the tags that some framework logs once, when the training is over; without prefixes."""
    return tuple(tag for profile in profiles().values() for tag in profile.summary)


def _profile(name: str, tables: Mapping[str, Mapping[str, Any]]) -> Profile:
    table = tables[name]
    lineage = [table]
    while "extends" in lineage[-1]:
        lineage.append(tables[lineage[-1]["extends"]])
    return Profile(
        name=name,
        title=table["title"],
        source=table["source"],
        prefixes=next((above["prefixes"] for above in lineage if "prefixes" in above), [""]),
        marks=table.get("marks", ()),
        formats=table.get("formats", ()),
        summary=table.get("summary", ()),
        shows=table.get("shows", ()),
        lineage=lineage,
    )


def _stored_meaning(value: str | Mapping[str, Any]) -> Meaning:
    if isinstance(value, str):
        return Meaning(Signal(value))
    return Meaning(Signal(value["signal"]), float(value["factor"]))


def recognise(tags: Collection[str], format: str) -> Profile | None:  # noqa: A002 - the source's own word
    """Return the framework that wrote a log with these tags in this format.

    The tags of the first few steps are enough. None if no profile has a mark among them.
    """
    return _recognise(frozenset(tags), format)


@lru_cache(maxsize=256)  # runs of one project log the same tags
def _recognise(tags: frozenset[str], format_: str) -> Profile | None:
    stripped: dict[tuple[str, ...], frozenset[str]] = {}

    def has_mark(profile: Profile) -> bool:
        prefixes = tuple(profile.prefixes)
        if prefixes not in stripped:
            stripped[prefixes] = frozenset(name for tag in tags for name in bare(tag, prefixes))
        logged = stripped[prefixes]
        return format_ in profile.formats or any(
            all(is_logged(pattern, logged) for pattern in mark) for mark in profile.marks
        )

    def fit(profile: Profile) -> tuple[int, int]:
        return sum(profile.names.find(tag) is not None for tag in tags), len(profile.lineage)

    return max(filter(has_mark, profiles().values()), key=fit, default=None)


def is_of_histogram(tag: str) -> bool:
    """Return whether the ending of a tag says that it is a statistic of a histogram."""
    return "#" in tag and tag.rpartition("#")[2] in _OF_HISTOGRAMS


class Naming:
    """Tags to meanings for one configuration.

    ``overrides`` maps the user's tags (or patterns) to names of signals or to "ignore". ``requested`` are the
    signals that somebody asks for; among them are those of the user's rules.
    Raises ValueError for a name that is no signal, with the nearest one.
    """

    def __init__(self, overrides: Mapping[str, str], requested: Iterable[Signal] = ()) -> None:
        patterns = {signal: pattern for signal in requested if (pattern := tag_pattern(signal))}
        self._rule_patterns = {signal: Patterns({pattern: None}) for signal, pattern in patterns.items()}
        self._overrides = Patterns({tag: _override(tag, name) for tag, name in overrides.items()})
        self._meanings: dict[tuple[str, str], Meaning | None] = {}  # by profile and tag

    def meaning(self, profile: Profile | None, tag: str) -> Meaning | None:
        """Return the meaning of ``tag`` in a run of ``profile``; None if the tag is no signal."""
        key = profile.name if profile else "", tag
        if key not in self._meanings:
            if len(self._meanings) >= _MAX_MEANINGS:
                self._meanings.clear()
            self._meanings[key] = self._stored_meaning(profile, tag)
        return self._meanings[key]

    def ignores(self, tag: str) -> bool:
        """Return whether the user says that ``tag`` is no signal."""
        pattern = self._overrides.find(tag)
        return pattern is not None and self._overrides.rows[pattern] is None

    def origin(self, profile: Profile | None, tag: str) -> Origin | None:
        """Return who says what ``tag`` means, or that it means nothing; None if only its words say it."""
        if self._overrides.find(tag) is not None:
            return Origin.USER
        return Origin.PROFILE if profile is not None and profile.names.find(tag) is not None else None

    def rule_meanings(self, tag: str) -> list[Meaning]:
        """Return the meanings of ``tag`` for the user's rules, in addition to its usual meaning."""
        rules = self._rule_patterns.items()
        return [Meaning(signal) for signal, names in rules if names.find(tag) is not None]

    def _stored_meaning(self, profile: Profile | None, tag: str) -> Meaning | None:
        if is_of_histogram(tag) and tag not in self._overrides.rows:
            return None if _OF_RETURNS.search(tag) else _OF_HISTOGRAMS[tag.rpartition("#")[2]]
        for names in (self._overrides, profile.names if profile else None):
            pattern = names.find(tag) if names else None
            if names and pattern is not None:
                return names.rows[pattern]
        meaning = fallback(tag)
        if meaning is None or profile is None or meaning.signal not in profile.words:
            return meaning
        signal = profile.words[meaning.signal]
        return None if signal == IGNORE else replace(meaning, signal=Signal(signal))


def _override(tag: str, name: str) -> Meaning | None:
    if name == IGNORE:
        return None
    if name not in set(Signal):
        import difflib  # slow to import, and only a mistake needs it

        close_names = difflib.get_close_matches(name, [*map(str, Signal), IGNORE], n=1)
        hint = f"; did you mean {close_names[0]!r}?" if close_names else "; use a signal's name or 'ignore'"
        raise ValueError(f"[signals] {tag!r}: there is no signal {name!r}{hint}")
    return Meaning(Signal(name))
