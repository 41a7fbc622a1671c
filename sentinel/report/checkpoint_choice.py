"""Which checkpoint of a run to keep: of those on disk, the best by the metric that the run selects by."""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from sentinel.common.text import clean_text, duration_text
from sentinel.detectors.evidence import measure_of
from sentinel.detectors.signals import Signal
from sentinel.runs.metadata import FoundSetting
from sentinel.series.curves import Curve, Point
from sentinel.sinks.checkpoints import checkpoints

_HIGHER = (
    *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.MEAN_AVERAGE_PRECISION),
    *(Signal.MEAN_INTERSECTION_OVER_UNION, Signal.EVAL_QUALITY, Signal.EVAL_REWARD),
)
_LOWER = (
    *(Signal.EVAL_ERROR_RATE, Signal.FRECHET_INCEPTION_DISTANCE, Signal.EVAL_DISTANCE),
    Signal.EVAL_PERPLEXITY,
)
_SELECTS_BY = "metric_for_best_model"  # transformers' TrainingArguments
_PREFERS_HIGHER = "greater_is_better"


class Keep(msgspec.Struct, frozen=True):
    """The checkpoint to keep, and why, in sentences."""

    path: str
    reason: str


class _CheckpointMetric(msgspec.Struct, frozen=True):
    """A metric of held-out data. ``stated`` says that the run's settings name it."""

    name: str
    points: Sequence[Point]
    higher: bool  # is better
    stated: bool = False

    def at(self, step: int) -> float | None:
        """Return the last value that was measured at or before a step."""
        return max(
            ((point.step, point.value) for point in self.points if point.step <= step), default=(0, None)
        )[1]

    def best(self, steps: Mapping[int, str]) -> int | None:
        """Return the step of the best checkpoint, the first of equals; None if none was evaluated."""
        value_by_step = {step: value for step in sorted(steps) if (value := self.at(step)) is not None}
        return (max if self.higher else min)(
            value_by_step, key=lambda step: value_by_step[step], default=None
        )


def checkpoint_to_keep(
    run_path: str,
    tags: Mapping[str, Sequence[str]],
    curves: Mapping[str, Curve],
    settings: Mapping[str, FoundSetting],
    last_time: float | None,
    before_step: int | None,
) -> Keep | None:
    """Return the best checkpoint beside a run; None if none is found whose step was evaluated.

    ``tags`` are the run's by signal, and ``last_time`` is that of its last point. Only
    checkpoints from before the step ``before_step`` count, if it is given. A run that names no metric
    is taken to select by the evaluation loss, else by the first score that it logs.
    """
    metrics = [*_metrics(tags, curves, settings)]
    dated = ((step, entry.path) for step, entry in checkpoints(run_path) if step is not None)
    on_disk = {s: path for s, path in dated if before_step is None or s < before_step} if metrics else {}
    choices = [(metric, best) for metric in metrics if (best := metric.best(on_disk)) is not None]
    if not choices:
        return None
    metric, best = choices[0]
    count = len(on_disk)
    which = "highest" if metric.higher else "lowest"
    by = "the metric that its settings select by" if metric.stated else "its settings name no other metric"
    healthy = "" if before_step is None else f" from before step {before_step:,}"
    sentences = [
        f"{metric.name} is {metric.at(best):.4g} there, the {which} of "
        f"{'the only checkpoint' if count == 1 else f'{count} checkpoints'} on disk{healthy} ({by})."
    ]
    for other_choice, elsewhere in choices[1:]:
        if elsewhere != best:
            sentences.append(
                f"By {other_choice.name} the one of step {elsewhere:,} is better "
                f"({other_choice.at(elsewhere):.4g}, against {other_choice.at(best):.4g})."
            )
    if spent := _spent_after(best, curves, last_time):
        sentences.append(f"The run spent {spent} after it.")
    return Keep(clean_text(on_disk[best], 1000), " ".join(sentences))


def _metrics(
    tags: Mapping[str, Sequence[str]], curves: Mapping[str, Curve], settings: Mapping[str, FoundSetting]
) -> Iterator[_CheckpointMetric]:
    """Yield the stated metric, the evaluation loss, then the scores that are logged."""
    stated = str(_setting_value(settings, _SELECTS_BY) or "")
    words = stated.removeprefix("eval_")
    prefers = _setting_value(settings, _PREFERS_HIGHER)
    higher = not words.endswith("loss") if prefers is None else str(prefers).casefold() == "true"
    stated_tag = next(
        (tag for tag in curves if words and tag in (f"eval/{words}", f"eval_{words}", words)), None
    )
    if stated_tag is not None:
        yield _CheckpointMetric(clean_text(stated), curves[stated_tag].points(), higher, stated=True)
    metric_choices = [(Signal.EVAL_LOSS, False), *((s, True) for s in _HIGHER), *((s, False) for s in _LOWER)]
    for signal, is_higher in metric_choices:
        for tag in [tag for tag in tags.get(signal, ())[:1] if tag in curves and tag != stated_tag]:
            yield _CheckpointMetric(measure_of(signal).label, curves[tag].points(), is_higher)


def _setting_value(settings: Mapping[str, FoundSetting], name: str) -> object:
    """Return the value of a setting of this name, in whatever table."""
    return next((setting.value for key, setting in settings.items() if key.rpartition(".")[2] == name), None)


def _spent_after(step: int, curves: Mapping[str, Curve], last_time: float | None) -> str:
    """Return how long the run went on after a step, by the points near it; empty if it has no times."""
    times = [point.time for curve in curves.values() for point in curve.points() if point.step <= step]
    step_time = max((time for time in times if math.isfinite(time)), default=None)
    spent = last_time - step_time if step_time is not None and last_time is not None else 0.0
    return duration_text(spent) if spent >= 1.0 else ""
