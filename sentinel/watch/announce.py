"""Introduces new runs: what they are, and how many detectors can judge them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sentinel.common.text import clean_text
from sentinel.detectors.api import Declaration
from sentinel.runs.fit import fit
from sentinel.runs.log import RunLog

_MAX_RUNS_ANNOUNCED = 10  # that are introduced one by one


def introductions(logs: Sequence[RunLog], detectors: Collection[Declaration]) -> Iterator[str]:
    """Yield the lines that introduce runs. ``detectors`` are those that are enabled."""
    frameworks = [log.understanding().framework or log.run.format for log in logs]
    fits = []
    for log in logs:
        signals = log.understanding().signals
        lacking = {detector.name: detector.demand.missing(signals) for detector in detectors}
        fits.append(fit(signals, lacking, len(lacking)))
    if len(logs) <= _MAX_RUNS_ANNOUNCED:
        for log, framework, run_fit in zip(logs, frameworks, fits, strict=True):
            points = f"{framework}, {log.metadata.points} points"
            judged_by = f"judged by {run_fit.able} of {run_fit.fitting} that fit"
            yield f"found {clean_text(log.title)}: {points}; {judged_by}"
    else:
        counts = Counter(frameworks).most_common()
        kinds = ", ".join(f"{count} {framework}" for framework, count in counts)
        fewest_able = min(run_fit.able for run_fit in fits)
        most_able = max(run_fit.able for run_fit in fits)
        number = str(fewest_able) if fewest_able == most_able else f"{fewest_able} to {most_able}"
        yield f"found {len(logs)} runs ({kinds}); {number} detectors can judge each"
