"""Introduces new runs: what they are, and how many detectors can judge them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sentinel.common.text import clean_text
from sentinel.detectors.api import Declaration
from sentinel.runs.log import RunLog

_MAX_RUNS = 10  # that are introduced one by one


def introductions(logs: Sequence[RunLog], detectors: Collection[Declaration]) -> Iterator[str]:
    """Yield the lines that introduce runs. ``detectors`` are those that are enabled."""
    frameworks = [log.understanding().framework or log.run.format for log in logs]
    usable = []
    for log in logs:
        signals = log.understanding().signals
        usable.append({detector.name for detector in detectors if not detector.demand.missing(signals)})
    if len(logs) <= _MAX_RUNS:
        for log, framework, names in zip(logs, frameworks, usable, strict=True):
            ability = f"{len(names)} of {len(detectors)} detectors can judge it"
            yield f"found {clean_text(log.name)}: {framework}, {log.metadata.points} points; {ability}"
    else:
        counts = Counter(frameworks).most_common()
        kinds = ", ".join(f"{count} {framework}" for framework, count in counts)
        fewest = min(map(len, usable))
        most = max(map(len, usable))
        each = str(fewest) if fewest == most else f"{fewest} to {most}"
        any_ = len(set[str]().union(*usable))
        ability = f"{each} of {len(detectors)} detectors can judge each, {any_} at least one"
        yield f"found {len(logs)} runs ({kinds}); {ability}"
