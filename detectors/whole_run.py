"""What a run has come to: its beginning beside its end, of a run that is over, or of the run so far.

What rests on the rows up to the last one of a series is null in every row but that one, in which the column
``sums_up`` holds. A detector needs a head and recent rows of ``most`` rows for them.
"""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import ENDED, INDEX, SERIES, SIGNAL, STEP, SUMS_UP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import FINE, PRECISION, seen_grain, seen_max, seen_min, start_value

ACCURACIES = Signal.ACCURACY, Signal.EVAL_ACCURACY
"""Accuracies beside a loss."""

CONTEXT = Signal.EPOCH, Signal.LEARNING_RATE, *ACCURACIES
"""What a rule has to list in ``uses`` for `with_whole` and `never_fell`."""

BEGINNING_ROWS = 5
"""Rows of an accuracy that are its beginning, at most; as many rows of a loss suffice beside one."""

MIN_EQUAL_ROWS = 4
"""Rows of a loss that suffice if all are equal."""

MIN_ROWS_ALONE = 10
"""Rows of a loss that suffice without an accuracy."""

MIN_ROWS_FOR_THIRDS = 20
"""Rows of a loss that suffice for `thirds.with_fall`."""

MANY = 40
"""Rows from which on a log is more than a trial of some batches."""

EPOCHS = 10
"""Epochs from which on it is, too."""

MIN_EPOCHS_WITH_ACCURACY = 3
"""Epochs that suffice beside an accuracy."""

MIN_ACCURACY_GAIN = 0.05
"""Gain of an accuracy from which on a run learns."""

GOOD_ACCURACY = 0.7
"""Accuracy that needs no gain."""

MAX_QUIET_RANGE = 0.05
"""Fraction of a loss; one that moves by less may be judged alone."""

MAX_RISE = 0.5
"""Fraction of a loss; one that rose by more has diverged."""

WHOLE = {
    "begins": Measure("in the first third", Unit.SAME),
    "ends": Measure("in the last third", Unit.SAME),
    "rows": Measure("judged over", Unit.POINTS),
}


def beginning(column: str, most: int) -> pl.Expr:
    """Return the mean of the first values in a third of the rows, of ``most`` at most; null in other rows.

    Nothing of another signal stands beside the first row.
    """
    is_value = (pl.col(INDEX) >= 0) & pl.col(column).is_not_null()
    rows = pl.col(column).filter(is_value & (is_value.cum_sum() <= _third(most)))
    return pl.when(SUMS_UP).then(rows.mean().over(SERIES))


def ending(column: str, most: int) -> pl.Expr:
    """Return the mean of the last third of the rows, of ``most`` at most; null in other rows."""
    index = pl.col(INDEX)
    rows = pl.col(column).filter((index >= 0) & (index > index.max() - _third(most)))
    return pl.when(SUMS_UP).then(rows.mean().over(SERIES))


def with_ends_apart(points: pl.LazyFrame, *, most: int) -> pl.LazyFrame:
    """Return a frame with ``low``, the lowest value in the last third of the rows, and ``high``, the highest
    in the first one, of ``most`` rows at most; null before the end.
    """
    index = pl.col(INDEX)
    third = _third(most)
    columns = {
        "low": pl.col(VALUE).filter(index > index.max() - third).min(),
        "high": pl.col(VALUE).filter((index >= 0) & (index < third)).max(),
    }
    return points.with_columns(
        pl.when(ENDED).then(end.over(SERIES)).alias(name) for name, end in columns.items()
    )


def rests_since(value: pl.Expr, most: int) -> pl.Expr:
    """Return the step at which a value became what it is, in the last ``most`` rows; null if earlier."""
    return pl.when(value != value.shift(1).over(SERIES)).then(STEP).forward_fill(most).over(SERIES)


def _third(most: int) -> pl.Expr:
    return ((pl.col(INDEX).max() + 1) // 3).clip(1, most)


def with_whole(points: pl.LazyFrame, *, most: int) -> pl.LazyFrame:
    """Return a frame of losses with the columns of ``WHOLE``, ``range``, the share by which the loss ever
    moved, ``is_fine``, whether its digits tell that it never did, and ``poor``: whether no accuracy is good
    or gained anything, null where none is logged; one on held-out data decides where there is one.
    """
    rows = pl.col(INDEX) + 1
    lasts = {name: ending(name, most) for name in ACCURACIES}
    gains = {name: last - beginning(name, BEGINNING_ROWS) for name, last in lasts.items()}
    poor = [(lasts[name] < GOOD_ACCURACY) & (gains[name] < MIN_ACCURACY_GAIN) for name in reversed(lasts)]
    first = beginning(VALUE, most)
    begins = (
        pl.when(rows < MIN_ROWS_FOR_THIRDS)
        .then(pl.max_horizontal(first, start_value(VALUE)))
        .otherwise(first)
    )
    lowest = seen_min(VALUE, most, most)
    highest = seen_max(VALUE, most, most)
    return points.with_columns(
        rows=rows,
        begins=pl.when(SUMS_UP).then(begins),
        ends=ending(VALUE, most),
        fell_by=1 - ending(VALUE, most) / begins,
        range=(highest - lowest) / pl.max_horizontal(highest.abs(), lowest.abs()),
        is_fine=seen_grain(VALUE, most, most) < FINE * pl.col(VALUE).abs(),
        poor=pl.coalesce(poor),
    )


def is_training(steps: int, epochs: pl.Expr | int) -> pl.Expr:
    """Return whether a loss was trained for long enough to have fallen, and not tried on a few batches."""
    long = [pl.col("rows") >= MANY, pl.col("trained") >= steps, pl.col(Signal.EPOCH) >= epochs]
    return pl.any_horizontal(long).fill_null(False)


def was_stopped_late() -> pl.Expr:
    """Return whether a run is over after ten epochs or more, counted from 0 or from 1. It did its part,
    whatever its plan: who stops early plans far more than it takes.
    """
    return (pl.col(ENDED) & (pl.col(Signal.EPOCH) + 1 >= EPOCHS)).fill_null(False)


def counts_epochs() -> pl.Expr:
    """Return whether rows without an epoch and a learning rate, beside a poor accuracy, are epochs: whoever
    logs single batches logs the rate, too. Reads the columns of `with_whole`.
    """
    return pl.col("poor") & pl.col(Signal.EPOCH).is_null() & pl.col(Signal.LEARNING_RATE).is_null()


def never_fell(steps: int, least_fall: float) -> pl.Expr:
    """Return whether a loss ends no lower than it began, by what few rows can tell.

    Reads the columns of `with_whole` and `thirds.with_fall`. A loss on held-out data must be the same
    throughout, and so must that of a resumed run, for longer, as must one of few digits.
    """
    rows = pl.col("rows")
    poor = pl.col("poor")
    alone = (rows >= MIN_ROWS_ALONE) & (pl.col("range") < MAX_QUIET_RANGE)
    enough = pl.when(poor.is_null()).then(alone).otherwise(poor & (rows >= BEGINNING_ROWS))
    no_lower = pl.col("fell_by").is_between(-MAX_RISE, least_fall)
    trained = counts_epochs() | is_training(
        steps, pl.when(poor.is_null()).then(EPOCHS).otherwise(MIN_EPOCHS_WITH_ACCURACY)
    )
    resumed = pl.col("resumed").fill_null(False)
    least_rows = pl.when(resumed | ~pl.col("is_fine")).then(MIN_ROWS_ALONE).otherwise(MIN_EQUAL_ROWS)
    is_enough = (rows >= least_rows) & (pl.col("range") < PRECISION)
    few = ~resumed & enough & no_lower & trained & (pl.col(SIGNAL) == Signal.LOSS)
    fell = pl.col("fell").fill_null(False)
    return (pl.col(SUMS_UP) & (pl.col("begins") > 0) & (is_enough | few) & ~fell).fill_null(False)
