"""What the log of a run is taken to say: which framework wrote it, and what its tags mean."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sentinel.frames.derived import derived
from sentinel.frames.stream import Stream

_UNMAPPED_SHOWN = 200


@dataclass(frozen=True)
class Understanding:
    """What a run's log is taken to say: framework, tags by signal, tags that mean nothing."""

    framework: str | None
    signals: dict[str, list[str]]
    unmapped: list[str]


def framework(streams: Iterable[Stream]) -> str | None:
    """The framework that wrote most of some streams of one run; None if it is not known."""
    found = Counter(profile.name for stream in streams if (profile := stream.explained()[0]) is not None)
    return found.most_common(1)[0][0] if found else None


def understood(streams: Collection[Stream]) -> Understanding:
    """What some streams of one run say together."""
    signals: dict[str, dict[str, None]] = {}
    unmapped: dict[str, None] = {}
    for stream in streams:
        _, meanings = stream.explained()
        own: dict[str, list[str]] = {}
        for tag, meaning in meanings.items():
            if meaning is not None:
                own.setdefault(meaning.signal.value, []).append(tag)
            elif len(unmapped) < _UNMAPPED_SHOWN:
                unmapped[tag] = None
            for asked in stream.own(tag):
                own.setdefault(asked.signal.value, []).append(tag)
        for signal, tag in derived(own):
            own.setdefault(signal.value, []).append(tag)
        for name, tags in own.items():
            signals.setdefault(name, {}).update(dict.fromkeys(tags))
    return Understanding(
        framework(streams), {s: list(tags) for s, tags in sorted(signals.items())}, list(unmapped)
    )
