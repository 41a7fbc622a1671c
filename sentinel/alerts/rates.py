"""How often healthy runs page."""

from dataclasses import dataclass

_TAIL = 0.025  # of the chance on each side of an interval


@dataclass(frozen=True)
class Rate:
    """How many of some healthy runs page, or of their days, with the exact 95 % interval of Clopper and
    Pearson.

    ``unit`` is "run" or "run-day": a day (UTC) of a run on which it logged. A run-day pages or it does not,
    because pages of one day are seldom independent.
    """

    pages: int
    units: int
    unit: str = "run"

    @property
    def share(self) -> float:
        """The share of the units that page; 0 of none."""
        return self.pages / self.units if self.units else 0.0

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        from scipy.special import betaincinv  # scipy.stats has the same and takes a second to import

        return float(betaincinv(self.pages, self.units - self.pages + 1, _TAIL)) if self.pages else 0.0

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.high_of(1)

    def high_of(self, rates: int) -> float:
        """The upper end of an interval so wide that those of so many rates hold together, whichever of them
        are looked at (Bonferroni).
        """
        from scipy.special import betaincinv

        left = self.units - self.pages
        return float(betaincinv(self.pages + 1, left, 1 - _TAIL / rates)) if left else 1.0

    def __str__(self) -> str:
        of = f"{self.pages} of {self.units:,} healthy {self.unit}s"
        return f"{of} ({self.share:.1%}, at most {self.high:.1%})"
