"""How a rule ends: named conditions over measured columns become one verdict a row."""

from collections.abc import Mapping

import polars as pl

from sentinel.detectors.api import Severity
from sentinel.detectors.schema import ABOVE, BELOW, ONSET, SEVERITY, SKIPPED, VARIANT
from sentinel.detectors.severity import SEVERITY_COLUMNS
from sentinel.detectors.skip_reason import SkipReason as SkipReason
from sentinel.detectors.stats import first_true


def verdicts(
    measured: pl.LazyFrame,
    *,
    found: Mapping[str, pl.Expr],
    severities: Mapping[Severity, pl.Expr] | None = None,
    judged: Mapping[SkipReason, pl.Expr] | None = None,
    lasts: pl.Expr | None = None,
    onset: pl.Expr | None = None,
    above: pl.Expr | None = None,
    below: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Return FINDINGS for a WINDOW frame to which a rule has added its measurements.

    A condition is a Boolean expression over the frame's columns; where it is null it does not hold.

    found: a condition for each variant. The first that holds is the row's variant; where none holds, the
        row is clean.
    severities: conditions under which a found row has another severity than the usual one of its variant. A
        condition counts for the variants that declare its severity, and the worst that holds counts.
    judged: conditions that a row must meet to be judged, by default none. A row that fails one gets no
        verdict and is held back for the reason of the first condition that it fails.
    lasts: a lower threshold. A row at which it holds without being found gets no verdict, so that an
        incident ends only below this threshold, and nothing begins there.
    onset: the step at which the trouble of a found row began, null where that is not known.
    above, below: the value beyond which points belong to the trouble of a found row. Where no onset is given,
        the trouble began with the first of the points that lie mostly beyond it, up to this row.
    """
    failed = {reason: ~condition.fill_null(False) for reason, condition in (judged or {}).items()}
    row = measured.with_columns(first_true(failed).cast(pl.String).alias(SKIPPED))
    decided = pl.col(SKIPPED).is_null()
    row = row.with_columns(pl.when(decided).then(first_true(found)).alias(VARIANT))
    is_found = pl.col(VARIANT).is_not_null()
    clean = decided if lasts is None else decided & ~lasts.fill_null(False)
    of_found = {ONSET: onset, ABOVE: above, BELOW: below}
    return row.with_columns(
        pl.when(clean & ~is_found).then(Severity.CLEAN).alias(SEVERITY),
        *(pl.when(is_found).then(value).alias(name) for name, value in of_found.items()),
        *(condition.alias(SEVERITY_COLUMNS[severity]) for severity, condition in (severities or {}).items()),
    )
