"""Finds the series by which a reader judges a run, among all its streams."""

from collections.abc import Iterable

from sentinel.series.naming import Origin
from sentinel.series.roles.assignment import role_of_signal, roles_of
from sentinel.series.roles.company import Key, Series
from sentinel.series.roles.outcome import Outcome, outcome_of
from sentinel.series.roles.role import Role, Source
from sentinel.series.stream import Stream

_MAX_OUTCOME_SERIES = 512  # of a run; those of further streams are left out


def outcome(streams: Iterable[Stream]) -> Outcome | None:
    """Return the outcome of a run with these streams; None if it has none."""
    series: list[Series] = []
    stated: dict[Key, Role] = {}
    for stream in sorted(streams, key=lambda stream: stream.name):
        if len(series) >= _MAX_OUTCOME_SERIES:
            break
        profile, meanings = stream.explained()
        sources = {
            Origin.USER: (Source.USER, "[signals] names it"),
            Origin.PROFILE: (Source.PROFILE, f"the profile {profile.name if profile else ''} names it"),
        }
        for history in sorted(stream.series(), key=lambda history: history.tag):
            series.append(history)
            meaning = meanings.get(history.tag)
            origin = stream.origin(profile, history.tag)
            if meaning is not None and origin is not None:
                role = role_of_signal(meaning.signal, *sources[origin])
                if role is not None:
                    stated[history.key] = role
    return outcome_of(series, roles_of(series, stated))
