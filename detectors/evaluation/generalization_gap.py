"""The loss on held-out data rises while the training loss does not.

## What it catches
A held-out loss that has left its best level for good, while the training loss did not rise with it. Score
cards judge the curve as a whole, while the run goes on and at its end: they give points for what a person
sees in the plot, such as how many times its best the loss stands at, its trend, and what a task metric lost.
Error rates, FID and other distances are read like a loss. A second card tells of ten or more evaluations none
of which was better than the first, while the model went on training. Of a perplexity where no loss is logged
its logarithm is judged.

## Why it matters
From its best evaluation on, the model only memorises its training data. Every further step makes it worse
on data that it has not seen, and costs as much as the steps before.

## What to do
Keep the checkpoint of the best evaluation and stop there. Then train for fewer epochs, with more or more
varied data, or with regularisation: dropout, weight decay, a smaller model or adapter. If the gap opens
within the first epoch, look for a difference between the two data sets first.

## When it is wrong
The loss also rises where a classifier becomes too sure of itself while its accuracy holds. A rise by less
than a tenth beside such an accuracy is seldom worth a stop, and most of these wait as info until the run
looks ill as a whole. Evaluation data that grow harder in a run look the same as a model that memorises. Where
the training loss rises as well, it is a divergence, and `loss-divergence` says so.

## Source
Catalogue A-overfit, A-eval-loss. The points of the cards are measured on public logs.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, detector
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points
from sentinel.detectors.verdict import SkipReason, verdicts

LEAST = 3  # evaluations that a card needs


@detector(
    judges=(
        Signal.EVAL_LOSS,
        Signal.EVAL_ERROR_RATE,
        Signal.EVAL_DISTANCE,
        Signal.FRECHET_INCEPTION_DISTANCE,
    ),
    history=History(recent=1),
    maturity=Maturity.STABLE,
    hold=1,  # a card judges the whole curve
    cause=Cause.EVALUATION,
    needs_consent=True,
    variants={},
    reads=("memorises", "held-out-never-below-its-start", "second-opinion-held-out-loss-rose"),
)
def generalization_gap(points: pl.LazyFrame) -> pl.LazyFrame:
    return verdicts(points, found={}, judged={SkipReason.FEW_POINTS: has_points(LEAST)})
