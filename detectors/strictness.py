"""How a detector is made stricter, so that it pages less and never more.

`sentinel calibrate` does so where healthy runs of an archive page too often. Each factor moves all of a
detector's thresholds that are named at once. So what pages with a larger factor pages with a smaller one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

FACTORS = 1.2, 1.5, 2.0, 3.0
"""By which a calibration makes a detector stricter: round numbers.

Half of the cards that page have less than 1.5 times the points of their bar, so the first step is small.
"""


class Strictness(msgspec.Struct, frozen=True):
    """The parameters that a factor moves. It multiplies ``larger`` and divides ``smaller`` ones. ``full`` are
    shares that must be nearly all: it divides what they leave.
    """

    larger: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()
    full: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.larger + self.smaller + self.full

    def with_larger(self, name: str) -> "Strictness":
        """Return the same that moves one more parameter, which it multiplies."""
        return replace(self, larger=(*self.larger, name))

    def of(self, factor: float, usual: Mapping[str, Any]) -> dict[str, Any]:
        """Return what these parameters are with a factor of at least 1, from what they usually are."""
        return {
            **{name: usual[name] * factor for name in self.larger},
            **{name: usual[name] / factor for name in self.smaller},
            **{name: 1 - (1 - usual[name]) / factor for name in self.full},
        }
