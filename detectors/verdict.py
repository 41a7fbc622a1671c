"""How a rule ends: named conditions over measured columns become one verdict a row."""

from collections.abc import Mapping

import polars as pl

from detectors.api import Severity
from detectors.held_back import HeldBack as HeldBack
from detectors.schema import HELD_BACK, ONSET, SEVERITY, VARIANT
from detectors.stats import first_true


def verdicts(
    measured: pl.LazyFrame,
    *,
    found: Mapping[str, pl.Expr],
    severities: Mapping[Severity, pl.Expr] | None = None,
    otherwise: Severity = Severity.WARNING,
    judged: Mapping[HeldBack, pl.Expr] | None = None,
    lasts: pl.Expr | None = None,
    onset: pl.Expr | None = None,
) -> pl.LazyFrame:
    """FINDINGS for a WINDOW frame to which a rule has added its measurements.

    A condition is a Boolean expression over the frame's columns; where it is null it does not hold.

    found: a condition for each variant. The first that holds is the row's variant; where none holds, the
        row is clean.
    severities: a condition for each severity of a found row; the first that holds counts, else
        ``otherwise``.
    judged: conditions that a row must meet to be judged, by default none. A row that fails one gets no
        verdict and is held back for the reason of the first condition that it fails.
    lasts: a lower threshold. A row at which it holds without being found gets no verdict, so that an
        incident ends only below this threshold, and nothing begins there.
    onset: the step at which the trouble of a found row began, null where that is not known.
    """
    failed = {reason: ~condition.fill_null(False) for reason, condition in (judged or {}).items()}
    row = measured.with_columns(
        first_true(found).alias(VARIANT), first_true(failed).cast(pl.String).alias(HELD_BACK)
    )
    is_found = pl.col(VARIANT).is_not_null()
    decided = pl.col(HELD_BACK).is_null()
    if lasts is not None:
        decided = decided & (is_found | ~lasts.fill_null(False))
    severity = pl.when(is_found).then(first_true(severities or {}, otherwise=otherwise))
    began = pl.lit(None) if onset is None else pl.when(is_found).then(onset)
    return row.with_columns(
        pl.when(decided).then(severity.fill_null(Severity.CLEAN)).alias(SEVERITY), began.alias(ONSET)
    )
