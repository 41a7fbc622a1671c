"""Which runs are siblings: runs of one training program.

Siblings log the same tags with the same framework, and their settings are the same but for seeds, names,
places and at most `MAX_DIFFERENT` values. A run that states no setting, or logs nothing, has no siblings:
two scripts that both log a loss are not one program.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern

MAX_DIFFERENT = 2
"""Settings in which siblings may differ."""

SEED = lazy_pattern(r"(^|[._/-])([^\W_]*seed|random_state)$", re.IGNORECASE)

IDENTITY = lazy_pattern(
    r"^(name|id|notes|group|tags?|comment|project|entity|user|host|command|argv)$"
    r"|(^|[._/-])_?wandb([._/-]|$)"
    r"|(^|[._/-])(run|exp|experiment|job|project|trial|display|host)_?(name|id|dir)$"
    r"|(^|[._/-])(out|output|log|logs|logging|save|ckpt|checkpoint|work|result|results|cache|tmp)_?(dir|path|file)$"
    r"|(^|[._/-])(resume\w*|port|master_port|hostname|pid|date|datetime|timestamp|start_time|cwd|verbose)$",
    re.IGNORECASE,
)
"""Settings that tell runs apart and do not change what they compute."""

NOT_STATED = "not stated"
"""Stands for the value of a setting that a run does not state, which is a value of its own."""


def matters(name: str, value: object) -> bool:
    """Return whether a setting may change what a run computes. A time in seconds since the epoch does not."""
    is_time = isinstance(value, float | int) and 1e9 < value < 4e9
    return not is_time and not IDENTITY.search(name)


class Fingerprint(msgspec.Struct, frozen=True):
    """What a run shows of its training program."""

    framework: str | None
    tags: frozenset[str]
    settings: frozenset[tuple[str, str]]  # names and values, without what may differ freely

    @classmethod
    def from_settings(
        cls, framework: str | None, tags: Iterable[str], settings: Mapping[str, object]
    ) -> "Fingerprint":
        """Return the fingerprint of a run with these flat settings."""
        relevant = {
            name: str(value)
            for name, value in settings.items()
            if matters(name, value) and not SEED.search(name)
        }
        return cls(framework, frozenset(tags), frozenset(relevant.items()))

    @property
    def tells_enough(self) -> bool:
        """Whether a run can have siblings."""
        return bool(self.tags and self.settings)


def differences(fingerprint: Fingerprint, other: Fingerprint) -> dict[str, tuple[str, str]]:
    """Return the settings that differ, with the value of each, sorted by name."""
    ours = dict(fingerprint.settings)
    theirs = dict(other.settings)
    names = sorted({name for name, _ in fingerprint.settings ^ other.settings})
    return {name: (ours.get(name, NOT_STATED), theirs.get(name, NOT_STATED)) for name in names}


def names_that_differ(first: Fingerprint, *others: Fingerprint) -> set[str]:
    """Return the names of the settings in which some runs differ."""
    settings = [other.settings for other in others]
    return {name for name, _ in first.settings.union(*settings) - first.settings.intersection(*settings)}


def are_siblings(fingerprint: Fingerprint, other: Fingerprint) -> bool:
    """Return whether two runs are of one program, as far as both are known. Symmetric.

    A run that has just begun has not logged all of its tags, so those of one may be a part of the other's.
    """
    return (
        fingerprint.tells_enough
        and other.tells_enough
        and fingerprint.framework == other.framework
        and (fingerprint.tags <= other.tags or other.tags <= fingerprint.tags)
        and len({name for name, _ in fingerprint.settings ^ other.settings}) <= MAX_DIFFERENT
    )


def sibling_groups(runs: Sequence[Fingerprint]) -> list[list[int]]:
    """Return groups of two runs or more with equal tags, by their indices; each run is in one at most.

    The most frequent settings come first, and each group has the runs that differ from its first settings in
    few values. The order of the groups is that of their first runs.
    """
    by_fingerprint: dict[Fingerprint, list[int]] = {}
    for run, fingerprint in enumerate(runs):
        by_fingerprint.setdefault(fingerprint, []).append(run)
    frequency = Counter({fingerprint: len(members) for fingerprint, members in by_fingerprint.items()})
    groups: dict[Fingerprint, list[int]] = {}
    centres: dict[tuple[str | None, frozenset[str]], list[Fingerprint]] = {}
    for fingerprint, _ in frequency.most_common():  # of equal frequency, the one that was seen first
        candidates = centres.setdefault((fingerprint.framework, fingerprint.tags), [])
        centre = next((centre for centre in candidates if are_siblings(centre, fingerprint)), None)
        if centre is None:
            candidates.append(fingerprint)
        groups.setdefault(centre or fingerprint, []).extend(by_fingerprint[fingerprint])
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def differing(runs: Iterable[Fingerprint]) -> dict[str, list[str]]:
    """Return the settings in which some runs differ, each with its values, sorted by name."""
    settings = [dict(run.settings) for run in runs]
    names = sorted({name for run in settings for name in run})
    values = {name: sorted({run.get(name, NOT_STATED) for run in settings}) for name in names}
    return {name: different for name, different in values.items() if len(different) > 1}
