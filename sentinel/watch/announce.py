"""Introduces new runs: what they are, and how many detectors can judge them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sentinel.common.text import clean_text
from sentinel.detectors.api import Declaration
from sentinel.runs.fit import fit
from sentinel.runs.log import RunLog

_MAX_RUNS = 10  # that are introduced one by one


def introductions(logs: Sequence[RunLog], detectors: Collection[Declaration]) -> Iterator[str]:
    """Yield the lines that introduce runs. ``detectors`` are those that are enabled."""
    frameworks = [log.understanding().framework or log.run.format for log in logs]
    fits = []
    for log in logs:
        signals = log.understanding().signals
        lacking = {detector.name: detector.demand.missing(signals) for detector in detectors}
        fits.append(fit(signals, lacking, len(lacking)))
    if len(logs) <= _MAX_RUNS:
        for log, framework, each in zip(logs, frameworks, fits, strict=True):
            points = f"{framework}, {log.metadata.points} points"
            yield f"found {clean_text(log.title)}: {points}; judged by {each.able} of {each.fitting} that fit"
    else:
        counts = Counter(frameworks).most_common()
        kinds = ", ".join(f"{count} {framework}" for framework, count in counts)
        fewest = min(each.able for each in fits)
        most = max(each.able for each in fits)
        number = str(fewest) if fewest == most else f"{fewest} to {most}"
        yield f"found {len(logs)} runs ({kinds}); {number} detectors can judge each"
