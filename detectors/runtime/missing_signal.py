"""The run does not log a number that its own settings make worth watching.

## What it catches
A training that 100 steps after its first point has not logged

- the gradient norm, although it clips gradients;
- the learning rate, although it follows a schedule;
- the loss scale, although it trains in float16;
- the KL to the reference policy, although it pays for that.

Everything that a run lacks is one finding, with the line that would log it in the framework at hand.

## Why it matters
What is not logged is not judged. A schedule that ends early, a scaler that skips each step and a policy that
runs away show in these numbers long before they show in the loss.

## What to do
Add the line to the training and restart it at the next occasion. Replays and listings say which detectors
judge nothing for lack of a signal.

## When it is wrong
The number is logged under a name that sentinel does not know: map it below `[signals]`. A number that is
logged for the first time after 100 steps is counted as missing. So is one in another stream of the run.

## Source
Catalogue G8, O23, O24, A-kl, A-logging. The lines that log a signal stand in detectors/logging_snippets.py.
"""

from collections.abc import Iterator

import msgspec

from sentinel.detectors.api import INFO, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.logging_snippets import line_for
from sentinel.detectors.run_checks import Inventory, RunFinding, RunView, run_check
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal

TRAINING_SIGNALS = frozenset({Signal.LOSS, Signal.POLICY_LOSS, Signal.PREFERENCE_LOSS, Signal.REWARD})
"""Signals of which a training logs one."""


class ExpectedSignal(msgspec.Struct, frozen=True):
    """A signal, those that do in its place, and the catalogue entry about it."""

    signal: Signal
    others: tuple[Signal, ...]
    entry: str


WATCHED = (
    ExpectedSignal(Signal.GRAD_NORM, (Signal.LAYER_GRAD_NORM,), "G8"),
    ExpectedSignal(Signal.LEARNING_RATE, (), "O23"),
    ExpectedSignal(Signal.LOSS_SCALE, (Signal.SKIPPED_STEPS,), "O24"),
    ExpectedSignal(Signal.KL, (Signal.KL_PER_SEQUENCE, Signal.KL_UNKNOWN_UNIT, Signal.APPROX_KL), "A-kl"),
)


@run_check(
    reads="what is logged in the first 100 steps, and the settings",
    evidence={"missing": Measure("not logged", Unit.TEXT), "lines": Measure("lines that log it", Unit.TEXT)},
    variants={
        "unwatched": Variant(
            "the run does not log {missing}; to have it watched: {lines}", ("A-logging", "G8"), (INFO,)
        )
    },
    maturity=Maturity.STABLE,
)
def missing_signal(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding for the run; a later stream of it adds nothing."""
    for survey in run.inventories:
        framework = survey.framework or ""
        if missing := _missing(survey):
            yield RunFinding(
                index=0,
                variant="unwatched",
                step=survey.step,
                time=survey.time,
                evidence={
                    "missing": ", ".join(f"{need.signal} ({because})" for need, because in missing),
                    "lines": "; ".join(f"`{line_for(need.signal, framework)}`" for need, _ in missing),
                },
                catalogue=(*(need.entry for need, _ in missing), "A-logging"),
            )


def _missing(survey: Inventory) -> list[tuple[ExpectedSignal, str]]:
    """Return what the settings make worth watching and the stream does not log, with the reason."""
    if TRAINING_SIGNALS.isdisjoint(survey.signals):
        return []
    clips = survey.settings.get(Setting.MAX_GRAD_NORM)
    scheduler = survey.settings.get(Setting.SCHEDULER)
    beta = survey.settings.get(Setting.BETA)
    precision = survey.settings.get(Setting.PRECISION)
    pays = isinstance(beta, float) and beta > 0 and Signal.REWARD in survey.signals
    reasons = {
        Signal.GRAD_NORM: f"it clips at {clips:g}" if isinstance(clips, float) and clips > 0 else "",
        Signal.LEARNING_RATE: f"its schedule is {scheduler}" if scheduler not in (None, "constant") else "",
        Signal.LOSS_SCALE: "it trains in float16" if precision == "float16" else "",
        Signal.KL: f"its coefficient is {beta:g}" if pays else "",
    }
    return [
        (need, reason)
        for need in WATCHED
        if (reason := reasons[need.signal]) and survey.signals.isdisjoint((need.signal, *need.others))
    ]
