"""What the points of a silent log say about whether more is to come: its plan, its schedule, its counts."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from sentinel.detectors.run_checks import Completion
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.runs.metadata import RunMetadata
from sentinel.series.buckets import Floats, Steps
from sentinel.series.history import SeriesHistory
from sentinel.series.plan import planned
from sentinel.series.stream import Stream

_MIN_RATE_ROWS = 8  # of a learning rate that show a schedule
_MAX_END_SHARE = 0.01  # of its peak, at which a learning rate is at its end
_MAX_FALLING_SHARE = 0.95  # of its peak; above it, a rate has hardly fallen
_MIN_MIDDLE_SHARE = (
    0.5  # of its peak; below it, a rate may be at its end: some decays end at a third or a tenth
)
_MIN_SPEED_RATIO = 0.99  # of the second half of a linear or a cosine decay to the first half
_MAX_INTERVAL_SHARE = (
    0.2  # of the planned steps; a log with longer intervals may stop in its last one by chance
)
_LAST_ROWS = 8  # of a series that show the usual interval between its steps
_MIN_ROUND_INTERVALS = 20  # in a round number of steps, so at most one in twenty logged steps is as round
_MIN_ROWS_PER_EVALUATION = 10  # so at most one in ten rows is an evaluation
_MIN_SIGNS = 2  # of an end, each of which may be chance
_EVAL_SIGNALS = {signal for signal in Signal if signal.startswith("eval_")}


def completion(
    metadata: RunMetadata, streams: Iterable[Stream], planned_steps: float | None, save_steps: int = 0
) -> Completion:
    """Return why the run seems to be over, and why it should go on.

    ``save_steps`` is how often the log is written, if that is when a checkpoint is saved.
    """
    streams = [stream for stream in streams if stream.has_points]
    if metadata.last_step is None:
        return Completion()
    interval = _interval(streams) or _usual(metadata.step_intervals)
    schedules = (_by_schedule(*rates) for rates in map(_rates, streams) if rates)
    schedule = next(filter(None, schedules), Completion())
    if schedule.over:
        return schedule
    plan = _by_plan(metadata, planned_steps, max(interval or 0, save_steps), schedule)
    if plan is not None:
        return plan
    epochs = _by_epochs(metadata)
    if epochs:
        return Completion(over=epochs)
    if schedule.amid:
        return schedule
    signs = [*_signs(metadata, streams, interval)]
    evidence = " and ".join(signs)
    return Completion(over=evidence) if len(signs) >= _MIN_SIGNS else Completion(hint=evidence)


def _by_plan(
    metadata: RunMetadata, steps: float | None, interval: int, schedule: Completion
) -> Completion | None:
    """Return what the planned steps say; a plan that was passed counts something else."""
    last = metadata.last_step or 0
    if not steps or last > steps:
        return None
    progress = f"step {last} of {steps:.0f} planned"
    last_planned = steps - (metadata.first_step == 0)
    may_be_last = last_planned - last < interval
    if may_be_last and interval <= _MAX_INTERVAL_SHARE * steps:
        rhythm = f"it stopped at {progress}, and its log is written every {interval} steps"
        return Completion(over=rhythm, may_be_last=True)
    return Completion(goes_on=f"it is at {progress}", amid=schedule.goes_on != "", may_be_last=may_be_last)


def _by_epochs(metadata: RunMetadata) -> str:
    """Say that a log with one row for each epoch has all planned epochs; empty if it does not.

    Unlike a rule, this may use settings that were written after the first point.
    """
    epochs = planned({key: setting.value for key, setting in metadata.config.items()}).get(Setting.EPOCHS)
    if epochs is None or metadata.last_step is None:
        return ""
    rows = metadata.last_step - (metadata.first_step or 0) + 1
    has_all = rows == epochs and metadata.first_step in (0, 1)
    return f"it logged {rows} epochs of {epochs:.0f} planned" if has_all else ""


def _by_schedule(steps: Steps, rates: Floats) -> Completion | None:
    """Return what a learning rate that only falls says: it is at the end or in the middle of its schedule.

    A rate that fell far may have reached its floor, which shows only that it fell until now.
    """
    peak = int(np.argmax(rates))
    steps = steps[peak:]
    rates = rates[peak:]
    if len(rates) < _MIN_RATE_ROWS or not (np.diff(rates) < 0).all():
        return None
    fall = f"its learning rate fell from {rates[0]:.3g} to {rates[-1]:.3g}"
    share = rates[-1] / rates[0]
    if share <= _MAX_END_SHARE:
        return Completion(over=f"{fall}, which is the end of its schedule")
    middle = float(np.interp((steps[0] + steps[-1]) / 2, steps, rates))
    if share > _MAX_FALLING_SHARE or middle - rates[-1] < _MIN_SPEED_RATIO * (rates[0] - middle):
        return None
    return Completion(goes_on=f"{fall}, which is the middle of its schedule", amid=share > _MIN_MIDDLE_SHARE)


def _rates(stream: Stream) -> tuple[Steps, Floats] | None:
    """Return steps and learning rates of the first parameter group over the whole attempt, if it has any."""
    for history in _histories(stream, {Signal.LEARNING_RATE}):
        coarse = history.coarse
        recent = history.recent
        filled = slice(coarse.buckets - 1)  # the last bucket may be of one row, which is the last one
        steps = np.append(coarse.step[filled], recent.step[-1:])
        return steps, np.append(coarse.high[filled], recent.value[-1:])
    return None


def _signs(metadata: RunMetadata, streams: Sequence[Stream], interval: int | None) -> Iterator[str]:
    """Yield the signs of an end, each of which may be chance."""
    count = _round_step_count(metadata, interval)
    if count is not None:
        yield f"{count} is a round number of steps"
    if any(map(_ends_with_evaluation, streams)):
        yield "an evaluation was the last that it logged"


def _round_step_count(metadata: RunMetadata, interval: int | None) -> int | None:
    """Return how many steps the run made, if this number is far rounder than the interval of its log."""
    if not interval:
        return None
    last = metadata.last_step or 0
    first = metadata.first_step or 0
    counts_from_zero = first == 0 or first + 1 == interval  # each fifth step is logged as 4, 9, 14, ...
    counts = [last, last + 1] if counts_from_zero else [last]
    return next((n for n in counts if _roundness(n) >= _MIN_ROUND_INTERVALS * interval), None)


def _ends_with_evaluation(stream: Stream) -> bool:
    """Return whether the last rows of a stream are those of an evaluation, and evaluations are rare."""
    evaluations = [history for history in _histories(stream, _EVAL_SIGNALS) if history.count]
    trainings = [history for history in _histories(stream, {Signal.LOSS}) if history.count]
    if not evaluations or not trainings:
        return False
    are_rare = all(history.count * _MIN_ROWS_PER_EVALUATION <= trainings[0].count for history in evaluations)
    last_evaluation = max(history.position for history in evaluations)
    last_training = max(history.position for history in trainings)
    return are_rare and last_evaluation > last_training


def _histories(stream: Stream, signals: set[Signal]) -> Iterator[SeriesHistory]:
    """Yield the histories of all tags of some signals, alone or with others beside them."""
    for spec in stream.specs:
        if spec.judged in signals:
            yield from stream.attempt.series.get(spec.key, {}).values()


def _interval(streams: Sequence[Stream]) -> int | None:
    """Return the usual number of steps between the last rows of the log; None if it has too few."""
    usual: list[int | None] = []  # of each series
    for stream in streams:
        for history_by_tag in stream.attempt.series.values():
            for history in history_by_tag.values():
                steps = history.last_steps(_LAST_ROWS).tolist()  # numpy is slow at so few
                usual.append(_usual([later - earlier for earlier, later in pairwise(steps)]))
    return min((interval for interval in usual if interval), default=None)


def _usual(intervals: Sequence[int]) -> int | None:
    """Return the median of some intervals; None if there are too few, or if it is not positive."""
    if len(intervals) < 2:
        return None
    ordered = sorted(intervals)
    middle = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    return max(0, middle // 2) or None


def _roundness(number: int) -> int:
    """Return the largest of 1, 2, 5, 10, 20, 50, ... that divides the number."""
    if number <= 0:
        return 0
    powers = (10**n * m for n in range(int(math.log10(number)) + 1) for m in (1, 2, 5))
    return max((power for power in powers if number % power == 0), default=1)
