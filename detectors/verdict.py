"""How a rule ends: named conditions over measured columns become one verdict a row."""

from collections.abc import Mapping

import polars as pl

from detectors.api import Severity
from detectors.schema import ONSET, SEVERITY, VARIANT
from detectors.stats import first_true


def verdicts(
    measured: pl.LazyFrame,
    *,
    found: Mapping[str, pl.Expr],
    severities: Mapping[Severity, pl.Expr] | None = None,
    otherwise: Severity = Severity.WARNING,
    judged: pl.Expr | None = None,
    lasts: pl.Expr | None = None,
    onset: pl.Expr | None = None,
) -> pl.LazyFrame:
    """FINDINGS for a WINDOW frame to which a rule has added its measurements.

    A condition is a Boolean expression over the frame's columns; where it is null it does not hold.

    found: a condition for each variant. The first that holds is the row's variant; where none holds, the
        row is clean.
    severities: a condition for each severity of a found row; the first that holds counts, else
        ``otherwise``.
    judged: holds for the rows that can be judged, by default for all. The others get no verdict.
    lasts: a lower threshold. A row at which it holds without being found gets no verdict, so that an
        incident ends only below this threshold, and nothing begins there.
    onset: the step at which the trouble of a found row began, null where that is not known.
    """
    row = measured.with_columns(first_true(found).alias(VARIANT))
    is_found = pl.col(VARIANT).is_not_null()
    counts = pl.lit(True) if judged is None else judged
    if lasts is not None:
        counts = counts & (is_found | ~lasts.fill_null(False))
    severity = pl.when(is_found).then(first_true(severities or {}, otherwise=otherwise))
    began = pl.lit(None) if onset is None else pl.when(is_found).then(onset)
    return row.with_columns(severity.fill_null(Severity.CLEAN).alias(SEVERITY), began.alias(ONSET)).filter(
        counts
    )
