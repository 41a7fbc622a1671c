"""Two runs side by side: the settings in which they differ, and how each signal went."""

from collections.abc import Iterator

from typing_extensions import TypedDict

from sentinel.common.text import clean_text, counted
from sentinel.replays.judged import JudgedRun

_MAX_SETTINGS = 300
_MAX_SIGNALS = 50


class CourseBody(TypedDict):
    """Where the finite values of a signal begin and end, and their extremes.

    ``not_finite_at`` is the step of the first NaN or infinity, null without one.
    """

    first: float
    last: float
    lowest: float
    highest: float
    not_finite_at: int | None


class PairBody(TypedDict):
    """Two ``runs``. ``differ`` holds both values of each setting in which they differ, null where a run does
    not say, and ``left_off`` how many more there are. ``signals`` holds both courses of each signal, null for
    a run that does not log it.
    """

    runs: list[str]
    differ: dict[str, list[float | int | str | bool | None]]
    left_off: int
    signals: dict[str, list[CourseBody | None]]


def pair_body(run: JudgedRun, other_run: JudgedRun) -> PairBody:
    """Return two runs side by side. Both need their curves."""
    pair = [run, other_run]
    logs = [judged_run.run_pipeline.log for judged_run in pair]
    first, second = ({name: setting.value for name, setting in log.metadata.config.items()} for log in logs)
    setting_names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    signals = dict.fromkeys(name for log in logs for name in log.understanding().signals)
    return {
        "runs": [log.name for log in logs],
        "differ": {name: [first.get(name), second.get(name)] for name in setting_names[:_MAX_SETTINGS]},
        "left_off": max(len(setting_names) - _MAX_SETTINGS, 0),
        "signals": {
            name: [_course(judged_run, name) for judged_run in pair] for name in [*signals][:_MAX_SIGNALS]
        },
    }


def pair_lines(pair: PairBody) -> Iterator[tuple[int, str]]:
    """Yield the same for a person, each line with its indent."""
    yield 0, clean_text(" beside ".join(pair["runs"]), 500)
    yield 0, "settings that differ:" if pair["differ"] else "no setting that the logs tell differs"
    for name, pair_values in pair["differ"].items():
        texts = ["none" if value is None else str(value) for value in pair_values]
        yield 2, clean_text(f"{name}: {' | '.join(texts)}", 500)
    if pair["left_off"]:
        yield 2, f"and {counted(pair['left_off'], 'more setting')}"
    yield 0, "signals at the end, with their extremes:"
    for signal, courses in pair["signals"].items():
        yield 2, clean_text(f"{signal}: {' | '.join(map(_course_text, courses))}", 500)


def _course(run: JudgedRun, signal: str) -> CourseBody | None:
    tags = run.run_pipeline.log.understanding().signals.get(signal)
    curve = run.curves.of.get(tags[0]) if tags and run.curves else None
    curve_values = [point.value for point in curve.points()] if curve else []
    if curve is None or not curve_values:
        return None
    return {
        "first": curve_values[0],
        "last": curve_values[-1],
        "lowest": min(curve_values),
        "highest": max(curve_values),
        "not_finite_at": curve.lost_at,
    }


def _course_text(course: CourseBody | None) -> str:
    if course is None:
        return "not logged"
    step = course["not_finite_at"]
    lost = "" if step is None else f", not finite at step {step:,}"
    return f"{course['last']:.4g} ({course['lowest']:.4g} to {course['highest']:.4g}{lost})"
