"""What a watch says of runs that it has just found: what they are, and how many detectors can judge them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from sentinel.common.text import clean_text
from sentinel.detectors.api import Declaration
from sentinel.runs.log import RunLog

_MAX_NAMED = 10  # runs that are named one by one


def introduced(logs: Sequence[RunLog], detectors: Collection[Declaration]) -> Iterator[str]:
    """Yield the lines that introduce runs. ``detectors`` are those that are enabled."""
    kinds = [_kind(log) for log in logs]
    able = [_able(log, detectors) for log in logs]
    if len(logs) <= _MAX_NAMED:
        for log, kind, names in zip(logs, kinds, able, strict=True):
            judged = f"{len(names)} of {len(detectors)} detectors can judge it"
            yield f"found {clean_text(log.name)}: {kind}, {log.metadata.points} points; {judged}"
    else:
        counted = ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).most_common())
        few = min(map(len, able))
        many = max(map(len, able))
        each = str(few) if few == many else f"{few} to {many}"
        some = len(set[str]().union(*able))
        judged = f"{each} of {len(detectors)} detectors can judge each, {some} at least one"
        yield f"found {len(logs)} runs ({counted}); {judged}"


def _kind(log: RunLog) -> str:
    """Return the framework that wrote the log, else its format."""
    return log.understanding().framework or log.run.format


def _able(log: RunLog, detectors: Collection[Declaration]) -> set[str]:
    """Return the names of the detectors that find the signals that they need."""
    signals = log.understanding().signals
    return {detector.name for detector in detectors if not detector.demand.missing(signals)}
