"""Tells what a stream had logged up to one of its points. The answer is the same whenever one asks."""

from collections.abc import Mapping

import msgspec
import numpy as np

from sentinel.frames.naming import profiles
from sentinel.frames.plan import Plans, meant

_END = np.iinfo(np.int64).max  # a position after all others


class KnownOfStream(msgspec.Struct, frozen=True):
    """Stays right while the stream goes on, because ``begun`` and ``plans`` only add later positions."""

    framework: str | None
    begun: Mapping[str, int]  # signal -> position of its first point
    plans: Plans

    def shows(self, word: str) -> bool:
        """Whether the framework's profile says that its runs have it."""
        return self.framework is not None and word in profiles()[self.framework].shows

    def logs(self, signal: str, position: int) -> bool:
        """Whether the signal had a point up to this position, in any attempt."""
        return signal in self.begun and self.begun[signal] <= position

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:
        """The value of a setting at this position; None if it is not known."""
        value = float(self.plans.column(name, np.array([position]), np.array([step]))[0])
        return None if np.isnan(value) else meant(name, value)


class KnownOfRun(msgspec.Struct, frozen=True):
    """All that the streams of a run have told so far, for a finding on the run as a whole.

    Such a finding has no place among their points, so the positions that rules ask for do not count.
    """

    streams: tuple[KnownOfStream, ...]

    @property
    def framework(self) -> str | None:
        """Of the first stream that is of one."""
        return next((one.framework for one in self.streams if one.framework), None)

    def shows(self, word: str) -> bool:
        """Whether the profile of a stream says that its runs have it."""
        return any(one.shows(word) for one in self.streams)

    def logs(self, signal: str, position: int) -> bool:  # noqa: ARG002 - as rules ask
        """Whether the signal had a point in any stream."""
        return any(signal in one.begun for one in self.streams)

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:  # noqa: ARG002
        """The last value of a setting in the first stream that knows it."""
        told = (one.setting(name, _END, 0) for one in self.streams)
        return next((value for value in told if value is not None), None)
