"""Tells what a stream had logged up to one of its points. The answer is the same whenever one asks."""

from collections.abc import Mapping

import msgspec
import numpy as np

from sentinel.frames.plan import Plans, meant


class KnownOfStream(msgspec.Struct, frozen=True):
    """Stays right while the stream goes on, because ``begun`` and ``plans`` only add later positions."""

    framework: str | None
    begun: Mapping[str, int]  # signal -> position of its first point
    plans: Plans

    def logs(self, signal: str, position: int) -> bool:
        """Whether the signal had a point up to this position, in any attempt."""
        return signal in self.begun and self.begun[signal] <= position

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:
        """The value of a setting at this position; None if it is not known."""
        value = float(self.plans.column(name, np.array([position]), np.array([step]))[0])
        return None if np.isnan(value) else meant(name, value)
