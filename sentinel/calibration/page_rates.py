"""The rate at which healthy runs page.

Days of one run are seldom independent: an incident comes back, and one run is noisier than another. So many
days then tell no more than fewer independent ones would: their number divided by the design effect, with runs
as clusters. The exact interval of the effective number is that of Korn and Graubard, "Confidence intervals
for proportions with small expected number of positive counts estimated from survey data", Survey Methodology
24 (1998), 193-201.
"""

from collections.abc import Collection

import msgspec

_INTERVAL_TAIL = 0.025  # the probability on each side of an interval


class Rate(msgspec.Struct, frozen=True):
    """The number of some healthy runs, or of their days, that page, with the exact 95 % interval of Clopper
    and Pearson.

    ``unit`` is "run" or "run-day": a day (UTC) of a run on which it logged. A run-day pages or it does not,
    because pages of one day are seldom independent. ``design_effect`` is by how much fewer independent units
    would tell as much, at least 1.
    """

    pages: int
    units: int
    unit: str = "run"
    design_effect: float = 1.0

    @classmethod
    def of_days(cls, runs: Collection[tuple[int, int]], least: float = 1.0) -> "Rate":
        """Return the rate of run-days, from how many days of each run page and how many there are of it.

        ``least`` is a design effect that is known from more pages of such runs: few pages show none.
        """
        pages = sum(paged for paged, _ in runs)
        days = sum(days_of_run for _, days_of_run in runs)
        return cls(pages, days, "run-day", max(least, _design_effect(runs, pages, days)))

    @property
    def share(self) -> float:
        """The share of the units that page; 0 of none."""
        return self.pages / self.units if self.units else 0.0

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        from scipy.special import betaincinv  # scipy.stats has the same and takes a second to import

        paging, quiet = self._effective
        return float(betaincinv(paging, quiet + 1, _INTERVAL_TAIL)) if paging else 0.0

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.high_of(1)

    def high_of(self, rates: int) -> float:
        """Return the upper end of an interval so wide that those of so many rates hold together, whichever of
        them are looked at (Bonferroni).
        """
        from scipy.special import betaincinv

        paging, quiet = self._effective
        return float(betaincinv(paging + 1, quiet, 1 - _INTERVAL_TAIL / rates)) if quiet else 1.0

    @property
    def _effective(self) -> tuple[float, float]:
        """The numbers of independent units that page, and that do not, which would tell as much."""
        return self.pages / self.design_effect, (self.units - self.pages) / self.design_effect

    def __str__(self) -> str:
        counts = f"{self.pages} of {self.units:,} healthy {self.unit}s"
        return f"{counts} ({self.share:.1%}, at most {self.high:.1%})"


def _design_effect(runs: Collection[tuple[int, int]], pages: int, days: int) -> float:
    """Return the variance of the share of days that page, with runs as clusters, by that of independent days.

    Few runs tell little of the variance, so it grows as the quantile of Student's distribution does. It is no
    larger than if all pages of a run were one event, and no smaller than 1. Where no day pages, or every day
    does, nothing tells of dependence.
    """
    from scipy.special import stdtrit

    if not 0 < pages < days:
        return 1.0
    share = pages / days
    run_count = len(runs)
    as_events = sum(paged**2 for paged, _ in runs) / pages
    if run_count == 1:
        return as_events
    squares = sum((paged - share * days_of_run) ** 2 for paged, days_of_run in runs)
    variance = squares * run_count / (run_count - 1)
    quantiles = stdtrit([run_count - 1, days - 1], 1 - _INTERVAL_TAIL)
    corrected = variance / (pages * (1 - share)) * (quantiles[0] / quantiles[1]) ** 2
    return float(min(max(corrected, 1.0), as_events))
