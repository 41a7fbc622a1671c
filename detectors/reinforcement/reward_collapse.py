"""The reward falls back far below its best and stays there.

## What it catches
A level of the reward, over the last eighth of the run, that lies far below the best level of any earlier
eighth: by several times the scatter, by a fifth of its size, for the whole of that eighth, and so far that
three quarters of what the run had gained are lost. A run that had gained nothing is judged where it falls
clearly below its own start: at once if it trains a language model, which begins with a policy that can
do something, and otherwise when it is over and has been there for half of its length. What is no language
model is judged from the 100th point on, because exploration may ruin the reward at first; from the 1000th
if each point is a single episode. A run that is over is judged from 40 points on.

## Why it matters
A policy collects its own data, so a policy that has become bad collects bad data and seldom comes back.
The best checkpoint lies before the fall.

## What to do
Keep the best checkpoint and go back to it. Look at what moved first: a KL or clip fraction that rose
means too large updates, so lower the learning rate and the number of passes; an entropy that ran out
means a lack of exploration; completions that all hit the cap or shrink to nothing mean a reward that is
being gamed, or a model that no longer stops. In off-policy learning a critic loss that grows for ever
says that the targets diverge.

## When it is wrong
A curriculum that moves to a harder stage, a change of the reward and self-play against a better opponent
lower the reward by design. What a resumed run had gained before is not known, so such a run is judged only
where it falls below the start of its attempt. Rewards of single episodes scatter widely, so what counts are
means over blocks of the run, and a fall is told late in a very long log.

## Source
Catalogue R1, with the guards of its symptom. A healthy policy-gradient run may lose two thirds of its gain
for a tenth of the run and recover; a healthy DQN on CartPole lies below its start for two thirds of it. Five
times the scatter and twelve standard errors are measured on simulated returns with a long memory, whose
blocks are not independent. The blocks around the fall are left out of the scatter.
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import polars as pl

from detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from detectors.blocks import ROWS, rolling, with_blocks
from detectors.evidence import Measure, Unit, logged
from detectors.schema import ENDED, INDEX, SERIES, SIGNAL, VALUE
from detectors.signals import Signal
from detectors.stats import Floats, Ints, row_quantile, was_resumed
from detectors.verdict import HeldBack, verdicts

LEAST = 20  # points
SHORT = 40  # points of a run that may be judged when it is over
EXPLORES = 100  # points in which exploration may cost reward, while the run goes on
EPISODES = 1000  # the same for a log of single episodes,
SINGLE = 0.18  # whose reward moves by more than this share of its size from one point to the next
MEASURES = ("best", "now", "start", "scatter", "error", "held")

FELL = "the reward fell from {best:.4g} to {now:.4g}"
CAUSES = ("R1", "R2", "A-entropy-collapse")


@detector(
    judges=(Signal.REWARD, Signal.EVAL_REWARD),
    uses=(Signal.COMPLETION_LENGTH, Signal.KL, Signal.ENTROPY, Signal.CLIPPED_COMPLETION_RATIO),
    history=History(recent=ROWS, head=SHORT, coarse=True),
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.REWARD,
    evidence={
        "best": Measure("best level", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
        "scatter": Measure("scatter of the points", Unit.SAME),
        "error": Measure("standard error of a level", Unit.SAME),
        "held": Measure("share of the run that it has been low", Unit.SHARE),
        "lost": Measure("share of the gain that is lost", Unit.SHARE),
        **logged(Signal.KL, Signal.ENTROPY, Signal.CLIPPED_COMPLETION_RATIO),
    },
    variants={
        "lost": Variant(FELL + ": {lost:.0%} of what the run had gained is gone", CAUSES, (CRITICAL,)),
        "worse": Variant(FELL + " and is worse than at the start, {start:.4g}", CAUSES, (CRITICAL,)),
    },
)
def reward_collapse(
    points: pl.LazyFrame,
    *,
    most_lost: Annotated[float, "share of the gain whose loss is a collapse"] = 0.75,
    scatters: Annotated[float, "times the scatter of a block that a fall must exceed"] = 5.0,
    sure: Annotated[float, "standard errors by which the fall must be certain"] = 12.0,
    least_fall: Annotated[float, "share of the best or first level that a fall must exceed"] = 0.2,
    patience: Annotated[float, "share of a run that is over below its start that is too long"] = 0.5,
) -> pl.LazyFrame:
    """See the module's page."""
    best, now, start, scatter, lost = (pl.col(n) for n in ("best", "now", "start", "scatter", "lost"))
    fall, gain = best - now, best - start
    moves = (pl.col(VALUE) - pl.col(VALUE).shift(1)).abs().filter(pl.col(INDEX) < SHORT)
    measured = points.with_columns(moves=moves.mean().over(SERIES), resumed=was_resumed())
    measured = with_blocks(measured, MEASURES, _levels, every=1, at_least=LEAST)
    language = pl.col(Signal.COMPLETION_LENGTH).is_not_null() | pl.col(Signal.ENTROPY).is_not_null()
    size = pl.max_horizontal(best.abs(), start.abs())
    fell = (fall > scatters * scatter) & (fall > sure * pl.col("error")) & (fall > least_fall * size)
    gained = (gain > scatters * scatter) & ~pl.col("resumed").fill_null(False)
    worse = now < start - scatters * scatter
    is_mean = (pl.col(SIGNAL) == Signal.EVAL_REWARD) | (pl.col("moves") < SINGLE * size)
    least = pl.when(~is_mean).then(EPISODES).when(ENDED).then(SHORT).otherwise(EXPLORES)
    explored = pl.col(INDEX) >= least - 1
    return verdicts(
        measured.with_columns(lost=fall / gain),
        judged={HeldBack.FEW_POINTS: pl.col(INDEX) >= LEAST - 1},
        found={
            "lost": fell & gained & (lost > most_lost) & (language | explored),
            "worse": fell & worse & (language | (pl.col(ENDED) & explored & (pl.col("held") > patience))),
        },
    )


def _levels(means: Floats) -> Mapping[str, Floats]:
    """Levels over eighths of the run; how the blocks scatter about them; for how long it has been low."""
    count = means.shape[1]
    width = max(5, count // 8)
    levels = rolling(means, width)
    now, best = levels[:, -1], levels[:, :-width].max(axis=1)
    low = means < ((best + now) / 2)[:, None]
    held = np.cumprod(low[:, ::-1], axis=1).sum(axis=1)
    fell = held >= width
    scatter = _scatter(means, levels, count - held)
    return {
        "best": best,
        "now": np.where(fell, now, best),
        "start": np.median(means[:, :width], axis=1),
        "scatter": scatter,
        "error": scatter * np.sqrt(2 / width),
        "held": held / count,
    }


def _scatter(means: Floats, levels: Floats, fell_at: Ints) -> Floats:
    """Standard deviation of the blocks about their level, and of their changes; the fall itself is none."""
    width = means.shape[1] - levels.shape[1] + 1
    about = means[:, width // 2 :][:, : levels.shape[1]] - levels
    begin = np.arange(levels.shape[1])
    astride = (begin < fell_at[:, None]) & (fell_at[:, None] < begin + width)
    changes = np.diff(means, axis=1)
    near = np.abs(np.arange(changes.shape[1]) + 1 - fell_at[:, None]) <= width // 2
    found: Floats = np.maximum(
        _spread(np.where(astride, np.nan, about)) / np.sqrt(1 - 1 / width),
        _spread(np.where(near, np.nan, changes)) / np.sqrt(2),
    )
    return found


def _spread(values: Floats) -> Floats:
    """Standard deviation of each row without NaN, from its 5 % and 95 % quantiles."""
    return (row_quantile(values, 0.95) - row_quantile(values, 0.05)) / (2 * 1.645)
