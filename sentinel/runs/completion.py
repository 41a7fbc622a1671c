"""What the points of a silent log say about whether more is to come: its plan, its schedule, its counts."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from sentinel.detectors.run_checks import Completion
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.runs.metadata import RunMetadata
from sentinel.series.buckets import Floats, Steps
from sentinel.series.history import SeriesHistory
from sentinel.series.plan import planned
from sentinel.series.stream import Stream

_FEWEST = 8  # rows of a learning rate that show a schedule
_AT_ITS_END = 0.01  # of its peak
_AMID = (0.5, 0.95)  # shares of its peak; a decay may end at a third or a tenth of it
_AS_FAST = 0.99  # the second half of a linear or a cosine decay falls at least as fast as the first one
_LAST_PART = 0.2  # a run that logs more often than five times stops by chance in its last part that seldom
_RARELY_ROUND = 20  # at most one in twenty logged steps is as round
_RARELY_EVALUATED = 10  # the same for an evaluation
_ENOUGH = 2  # signs of an end that may each be chance
_RATE = {Signal.LEARNING_RATE}
_LOSS = {Signal.LOSS}
_EVALUATED = {signal for signal in Signal if signal.startswith("eval_")}


def completion(
    facts: RunMetadata, streams: Iterable[Stream], planned_steps: float | None, save_steps: int = 0
) -> Completion:
    """Return why the run seems to be over, and why it should go on.

    ``save_steps`` is how often the log is written, if that is when a checkpoint is saved.
    """
    streams = [stream for stream in streams if stream.has_points]
    if facts.last_step is None:
        return Completion()
    interval = _interval(streams)
    schedules = (_of_schedule(*rates) for rates in map(_rates, streams) if rates)
    schedule = next(filter(None, schedules), Completion())
    if schedule.over:
        return schedule
    if told := _of_plan(facts.last_step, planned_steps, max(interval or 0, save_steps), schedule):
        return told
    if over := _of_epochs(facts):
        return Completion(over=over)
    if schedule.amid:
        return schedule
    signs = [*_signs(facts, streams, interval)]
    return (
        Completion(over=" and ".join(signs))
        if len(signs) >= _ENOUGH
        else Completion(hint=" and ".join(signs))
    )


def _of_plan(last: int, steps: float | None, interval: int, schedule: Completion) -> Completion | None:
    """Return what the planned steps say; a plan that was passed counts something else."""
    if not steps or last > steps:
        return None
    of = f"step {last} of {steps:.0f} planned"
    if steps - last < interval <= _LAST_PART * steps:
        return Completion(over=f"it stopped at {of}, and its log is written every {interval} steps")
    return Completion(goes_on=f"it is at {of}", amid=schedule.goes_on != "")


def _of_epochs(facts: RunMetadata) -> str:
    """Say that a log with one row for each epoch has all planned epochs; empty if it does not.

    Unlike a rule, this may use settings that were written after the first point.
    """
    epochs = planned({key: setting.value for key, setting in facts.config.items()}).get(Setting.EPOCHS)
    if epochs is None or facts.last_step is None:
        return ""
    rows = facts.last_step - (facts.first_step or 0) + 1
    whole = rows == epochs and facts.first_step in (0, 1)
    return f"it logged {rows} epochs of {epochs:.0f} planned" if whole else ""


def _of_schedule(steps: Steps, rates: Floats) -> Completion | None:
    """Return what a learning rate says that only falls: it is at the end of its schedule, or in the middle of
    it.

    A rate that fell far may have reached its floor, which shows only that it fell until now.
    """
    peak = int(np.argmax(rates))
    steps = steps[peak:]
    rates = rates[peak:]
    if len(rates) < _FEWEST or not (np.diff(rates) < 0).all():
        return None
    now = f"its learning rate fell from {rates[0]:.3g} to {rates[-1]:.3g}"
    share = rates[-1] / rates[0]
    if share <= _AT_ITS_END:
        return Completion(over=f"{now}, which is the end of its schedule")
    middle = float(np.interp((steps[0] + steps[-1]) / 2, steps, rates))
    if share > _AMID[1] or middle - rates[-1] < _AS_FAST * (rates[0] - middle):
        return None
    return Completion(goes_on=f"{now}, which is the middle of its schedule", amid=share > _AMID[0])


def _rates(stream: Stream) -> tuple[Steps, Floats] | None:
    """Return steps and learning rates of the first parameter group over the whole attempt; None without
    any.
    """
    for history in _histories(stream, _RATE):
        coarse = history.coarse
        recent = history.recent
        filled = slice(coarse.buckets - 1)  # the last bucket may be of one row, which is the last one
        steps = np.append(coarse.step[filled], recent.step[-1:])
        return steps, np.append(coarse.high[filled], recent.value[-1:])
    return None


def _signs(facts: RunMetadata, streams: Sequence[Stream], interval: int | None) -> Iterator[str]:
    """Signs of an end that each may be chance."""
    last = facts.last_step or 0
    first = facts.first_step or 0
    from_zero = first == 0 or first + 1 == interval  # each fifth step is logged as 4, 9, 14, ...
    counts = [last, last + 1] if from_zero else [last]
    if interval and (count := next((n for n in counts if _round(n) >= _RARELY_ROUND * interval), None)):
        yield f"{count} is a round number of steps"
    for stream in streams:
        evaluations = [history for history in _histories(stream, _EVALUATED) if history.count]
        trainings = [history for history in _histories(stream, _LOSS) if history.count]
        if evaluations and trainings:
            rare = all(history.count * _RARELY_EVALUATED <= trainings[0].count for history in evaluations)
            newest = max(history.position for history in evaluations)
            if rare and newest > max(history.position for history in trainings):
                yield "an evaluation was the last that it logged"
                return


def _histories(stream: Stream, signals: set[Signal]) -> Iterator[SeriesHistory]:
    """Yield the histories of all tags of some signals, alone or with others beside them."""
    for view in stream.specs:
        if view.judged in signals:
            yield from stream.attempt.series.get(view.key, {}).values()


def _interval(streams: Sequence[Stream]) -> int | None:
    """Return the usual number of steps between the last rows of the log; None if it has too few."""
    best: list[int] = []
    for stream in streams:
        for of_tag in stream.attempt.series.values():
            for history in of_tag.values():
                steps = history.last_steps(_FEWEST).tolist()  # numpy is slow at so few
                intervals = [later - earlier for earlier, later in pairwise(steps)]
                if len(intervals) > 1 and (usual := int(median(intervals))) > 0:
                    best.append(usual)
    return min(best, default=None)


def _round(number: int) -> int:
    """Return the largest of 1, 2, 5, 10, 20, 50, ... that divides the number."""
    if number <= 0:
        return 0
    powers = (10**n * m for n in range(int(math.log10(number)) + 1) for m in (1, 2, 5))
    return max((power for power in powers if number % power == 0), default=1)
