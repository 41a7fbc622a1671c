"""What the log of a run is taken to say: which framework wrote it, and what its tags mean."""

from collections import Counter
from collections.abc import Iterable
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


def understood(streams: Iterable[Stream]) -> Understanding:
    """What some streams of one run say together."""
    frameworks: Counter[str] = Counter()
    signals: dict[str, dict[str, None]] = {}
    unmapped: dict[str, None] = {}
    for stream in streams:
        profile, meanings = stream.explained()
        if profile is not None:
            frameworks[profile.name] += 1
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
    framework = frameworks.most_common(1)[0][0] if frameworks else None
    return Understanding(framework, {s: list(tags) for s, tags in sorted(signals.items())}, list(unmapped))
