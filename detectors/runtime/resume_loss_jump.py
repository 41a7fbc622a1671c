"""The loss comes back from a resume far above where it had been at that step.

## What it catches
After a restart that goes on with the steps, a loss whose first five points lie above those of the attempt
before at the same step, by half of what that attempt had gained, by 30 %, and by ten times their scatter. A
fifth of the gain and a tenth of the loss are a note, and a warning once they stay lost for twenty more
points. And a held-out metric or a reward whose first five points after a restart lie below the last five
before it, by five times their scatter and by a twentieth of itself and of what had been gained, as long as
it is lost. From a fifth of the gain on it is a warning; of a reward, whose first rows are means of a few
short episodes, only once it stays lost for twenty more points, or where nearly all is gone.

## Why it matters
A resume that goes on with the weights goes on with the loss. A loss near its old start means that the weights
were not restored, or only some of them. One in between means that the optimizer lost its moments and threw
the weights back, or that the data are other ones.

## What to do
Evaluate the checkpoint that was loaded, and compare the result with what was logged when it was saved. Look
for missing and unexpected keys of `load_state_dict`, and restore optimizer, scheduler and scaler with it.

## When it is wrong
A second stage of training on harder data that counts its steps on looks the same. A training that is begun
anew counts its steps from the start, so it is none.

## Source
Catalogue R4 and O8. The bounds are on the safe side of healthy resumes, which come back within the noise.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.runtime.restarts import EARLIER_ROWS, TAIL_ROWS, earlier_value, goes_on, with_restart
from sentinel.detectors.schema import INDEX, SERIES, STEP, VALUE, First
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import MAD, has_points, is_of, recent_median, start_median
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

FIRST_POINTS = 5  # points after a restart whose median counts
MIN_EARLIER_POINTS = 8  # points of the attempt before that suffice
MIN_SCATTERS = 5  # from one point to the next, by which a level must differ
PART = 0.2  # share of the gain of a loss that is worth a note, and a message once it stays lost
SMALL_RISE = 0.1  # share of the loss before by which it must then have risen
STAYS = 20  # last points of those after a restart in which it must still be lost
SMALL_LOSS = 0.05  # share of the gain, and of the metric, that is worth a note
LARGE_LOSS = 0.2  # share of the gain that is worth a message
WHOLE_LOSS = 0.9  # share of the gain that no few episodes explain
OUTCOMES = (
    *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.MEAN_AVERAGE_PRECISION),
    *(Signal.MEAN_INTERSECTION_OVER_UNION, Signal.REWARD, Signal.EVAL_REWARD),
)


@detector(
    judges=(Signal.LOSS, *OUTCOMES),
    uses=(First(Signal.LOSS), *ELSE),
    history=History(head=FIRST_POINTS, recent=STAYS, earlier=EARLIER_ROWS),
    maturity=Maturity.STABLE,
    cause=Cause.RESUME,
    inhibits=(Cause.LOSS_SHAPE, Cause.DIVERGENCE),
    evidence={
        "level": Measure("after the restart", Unit.SAME),
        "earlier": Measure("before, at that step", Unit.SAME),
        "before": Measure("at the end of the attempt before", Unit.SAME),
        "share_lost": Measure("gain that is lost", Unit.SHARE),
        "begun": Measure("at the first start", Unit.SAME),
        "first_step": Measure("first step after the restart", Unit.STEP),
    },
    variants={
        "jump": Variant(
            "after a restart at step {first_step} the loss is {level:.4g}; it had been {earlier:.4g} there, "
            "and {begun:.4g} at the first start",
            ("R4", "O8"),
        ),
        "partly": Variant(
            "after a restart at step {first_step} the loss is {level:.4g}; it had been {earlier:.4g} there",
            ("R4", "O8"),
            (INFO, WARNING),
        ),
        "outcome": Variant(
            "after a restart at step {first_step} the metric is {level:.4g}; it had been {before:.4g} at the "
            "end of the attempt before",
            ("R4", "O8"),
            (INFO, WARNING),
        ),
    },
)
def resume_loss_jump(
    points: pl.LazyFrame,
    *,
    lost: Annotated[float, "share of the gain of the attempt before that is lost"] = 0.5,
    least_rise: Annotated[float, "share of the loss before by which it must have risen"] = 0.3,
    scatters: Annotated[float, "multiple of the scatter before by which it must have risen"] = 10.0,
) -> pl.LazyFrame:
    value, level, earlier, begun = (pl.col(column) for column in (VALUE, "level", "earlier", "begun"))
    is_earlier_row = (pl.col(INDEX) < 0) & (pl.col(STEP) <= pl.col("first_step"))
    measured = (
        with_restart(points)
        .with_columns(
            begun=earlier_value(First(Signal.LOSS).column),
            level=start_median(VALUE, FIRST_POINTS),
            rows=is_earlier_row.sum().over(SERIES),
            earlier=_median_of(value, is_earlier_row),
        )
        .with_columns(scatter=MAD * _median_of((value - earlier).abs(), is_earlier_row))
        .with_columns(**_outcome_before())
        .with_columns(
            share_lost=_share_lost(level), share_lost_now=_share_lost(recent_median(VALUE, FIRST_POINTS))
        )
    )
    is_loss = is_of(Signal.LOSS)
    gained = pl.col("before") - pl.col("outcome_begun") > MIN_SCATTERS * pl.col("step_scatter")
    fell = pl.col("before") - level > pl.max_horizontal(
        MIN_SCATTERS * pl.col("step_scatter"), SMALL_LOSS * pl.col("before").abs()
    )
    least_lost = pl.min_horizontal("share_lost", "share_lost_now")
    lost_outcome = ~is_loss & gained & fell & (least_lost > SMALL_LOSS)
    rise = level - earlier
    lost_gain = rise > lost * (begun - earlier)
    partly = (rise > PART * (begun - earlier)) & (rise > SMALL_RISE * earlier)
    partly = partly & (rise > MIN_SCATTERS * pl.col("step_scatter"))
    now = recent_median(VALUE, STAYS)
    is_late = pl.col(INDEX) >= FIRST_POINTS + STAYS
    stays = is_late & (now - earlier > PART * (begun - earlier))
    is_sure = ~is_of(Signal.REWARD) | is_late | (pl.col("share_lost") > WHOLE_LOSS)
    return verdicts(
        measured,
        judged={
            SkipReason.NOT_SUPERVISED: ~is_loss | is_supervised(),
            SkipReason.NO_RESTART: pl.col("last_step").is_not_null(),
            SkipReason.FEW_POINTS: has_points(FIRST_POINTS) & (pl.col("rows") >= MIN_EARLIER_POINTS),
            SkipReason.NOT_COMPARABLE: goes_on(),
            SkipReason.RANGE: ~is_loss | (earlier > 0) & (begun > earlier),
        },
        found={
            "jump": is_loss
            & lost_gain
            & (rise > least_rise * earlier)
            & (rise > scatters * pl.col("scatter")),
            "partly": is_loss & partly,
            "outcome": lost_outcome,
        },
        severities={WARNING: pl.when(is_loss).then(stays).otherwise(is_sure & (least_lost > LARGE_LOSS))},
        onset=pl.col("first_step"),
    )


def _share_lost(level: pl.Expr) -> pl.Expr:
    """Return the share of what an outcome had gained before the restart that is lost at a level."""
    return (pl.col("before") - level) / (pl.col("before") - pl.col("outcome_begun"))


def _median_of(values: pl.Expr, rows: pl.Expr) -> pl.Expr:
    """Return the median of the last rows of the attempt before, up to the step of the restart."""
    return values.filter(rows).tail(TAIL_ROWS).median().over(SERIES)


def _outcome_before() -> dict[str, pl.Expr]:
    """Return where an outcome stood when the attempt before ended, where it began, and how it scatters."""
    earlier = pl.col(INDEX) < 0
    tail = pl.col(VALUE).filter(earlier).tail(TAIL_ROWS)
    return {
        "before": tail.tail(FIRST_POINTS).median().over(SERIES),
        "outcome_begun": pl.col(VALUE).filter(earlier).head(1).first().over(SERIES),
        "step_scatter": MAD * (tail.diff() - tail.diff().median()).abs().median().over(SERIES),
    }
