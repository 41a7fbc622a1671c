"""The loss of a generative model falls while its samples get worse.

## What it catches
A Fréchet inception distance (FID) whose last three values all lie 10 % above its best level, and above it
by eight times its scatter, while the training loss has fallen by 5 % since then. The best level is the
lowest median of three evaluations in a row.

## Why it matters
The loss of a diffusion model is the error of one step at a random noise level. It says little of what a
sampler makes of many steps, so a checkpoint that is chosen by its loss may be the worse one.

## What to do
Keep the checkpoint of the best FID. Sample from the averaged weights (EMA), with the schedule and the
scaling that the training uses. Look at samples of a fixed seed at both checkpoints.

## When it is wrong
A FID over another number of samples, or other prompts, is another number. Below 10,000 samples it scatters
and is biased upwards. The detector is a preview because in simulated runs of many thousand evaluations it
rings where the FID scatters by 2 % or more.

## Source
Catalogue DF1, DF2: a FID that is worse by 10 % at three evaluations while the loss improved by 5 %. Eight
times the scatter is measured on simulated evaluations whose noise has a memory and heavy tails.
"""

from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, VALUE, Mean
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, has_points, last_values, recent_noise, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 60  # evaluations in which the best one is looked for
LAST = 3  # evaluations that must all be worse


@detector(
    judges=(Signal.FRECHET_INCEPTION_DISTANCE,),
    uses=(Mean(Signal.LOSS),),
    history=History(recent=REACH + 2),
    hold=1,  # a verdict rests on three evaluations already
    cause=Cause.EVALUATION,
    evidence={
        "best": Measure("best level so far", Unit.SAME),
        "level": Measure("best of the last three", Unit.SAME),
        "scatter": Measure("scatter of the evaluations", Unit.SAME),
        "loss_then": Measure("training loss at the best", Unit.NONE),
        "loss_mean": Measure("training loss now", Unit.NONE),
    },
    variants={
        "diverges": Variant(
            "FID rose from {best:.4g} to {level:.4g}; the loss fell from {loss_then:.4g} to {loss_mean:.4g}",
            ("DF1", "DF2", "DF4", "DF6"),
            (INFO,),
        )
    },
)
def quality_loss_divergence(
    points: pl.LazyFrame,
    *,
    least_rise: Annotated[float, "share by which the FID must be worse than its best"] = 0.1,
    scatters: Annotated[float, "multiple of the scatter by which the FID must be worse than its best"] = 8.0,
    least_fall: Annotated[float, "share by which the loss must have fallen since"] = 0.05,
) -> pl.LazyFrame:
    names = ("best", "level", "loss_then")
    scattered = points.with_columns(scatter=recent_noise(VALUE, REACH, at_least=1))
    measured = with_arrays(scattered, names, _compare, every=1, at_least=2 * LAST).fill_nan(None)
    rise = pl.col("level") - pl.col("best")
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(2 * LAST),
            SkipReason.NOT_COMPARABLE: pl.col("loss_mean").is_not_null() & pl.col("loss_then").is_not_null(),
        },
        found={
            "diverges": (rise > least_rise * pl.col("best"))
            & (rise > scatters * pl.col("scatter"))
            & (pl.col("loss_mean") < (1 - least_fall) * pl.col("loss_then"))
        },
        lasts=rise > least_rise / 2 * pl.col("best"),
        above=(1 + least_rise / 2) * pl.col("best"),
    )


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the best value so far, the best of the last ones, and the training loss beside the former."""
    row = due["row"].to_numpy()
    count = due[INDEX].to_numpy() + 1
    loss = frame["loss_mean"].fill_null(np.nan).to_numpy()
    is_present = np.arange(REACH) < count[:, None]
    values = np.where(is_present, last_values(frame[VALUE].to_numpy(), row, REACH), np.nan)
    levels = np.median([values[:, i : REACH - LAST + 1 + i] for i in range(LAST)], axis=0)
    at = np.nanargmin(levels, axis=1)
    return {
        "best": np.nanmin(levels, axis=1),
        "level": values[:, :LAST].min(axis=1),
        "loss_then": loss[row - at],
    }
