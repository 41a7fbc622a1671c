"""Compares a run with good ones, for what no single curve shows: a loss that rests too high."""

from collections.abc import Iterator, Mapping, Sequence

from sentinel.comparison.measures import (
    COMPARED,
    LOSSES,
    OUTCOMES,
    ComparedRun,
    Comparison,
    Course,
    Finding,
    SignalInArms,
    courses_of,
    measured,
    parting,
)
from sentinel.detectors.evidence import measure_of


def against(run: ComparedRun, baselines: Sequence[ComparedRun]) -> Comparison:
    """Compare a run with its baselines, which count as equal runs with other seeds.

    The comparison has no measures if the run has no tag and no steps in common with all of them.
    """
    arms = {"this run": [run], "baseline": baselines}
    courses = {signal: by_arm for signal in COMPARED if (by_arm := courses_of(signal, arms))}
    measures = [measured(signal, by_arm) for signal, by_arm in courses.items()]
    names = {value: [run.name for run in runs] for value, runs in arms.items()}
    outcomes = [measure for measure in measures if measure.signal in OUTCOMES]
    findings = [
        finding
        for outcome in outcomes
        for finding in _findings(outcome, courses[outcome.signal], len(baselines))
    ]
    nothing = Finding("logs nothing that runs are judged by under a tag and over steps that the baseline has")
    return Comparison("baseline", names, measures, findings or [nothing], of_baseline=True)


def _findings(measure: SignalInArms, courses: Mapping[str, Sequence[Course]], runs: int) -> Iterator[Finding]:
    """Yield where the run ends, its best value, whether that may be chance, and from when on it differs."""
    (end, good) = measure.ends.values()
    (best, reached) = measure.bests.values()
    name = measure_of(measure.signal).label
    is_loss = measure.signal in LOSSES
    word = "worse" if (end > good) == is_loss else "better"
    change = f", {abs(end - good) / abs(good):.1%} {word}" if good and end != good else ""
    ends = f"{name} ends at {end:.4g}, the baseline at {good:.4g}{change}"
    values = f"{ends}; {'lowest' if is_loss else 'highest'} {best:.4g} and {reached:.4g}"
    spread = measure.spread
    if spread is None:
        yield Finding(f"{values}: one baseline run does not tell how much equal runs differ", ("R6",))
    elif not measure.beyond_chance:
        yield Finding(f"{values}: that may be chance, as {runs} runs of the baseline differ by {spread:.2g}")
    else:
        yield Finding(f"{values}: more than chance, as {runs} runs of the baseline differ by {spread:.2g}")
    if measure.beyond_chance is not False and (share := parting(courses)) is not None:
        begin = f"{share:.0%} of the common course" if share else "the start"
        yield Finding(f"{name} stays apart from the baseline by more than its own noise from {begin} on")
