"""A comparison of runs in words, as every layout shows it."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from sentinel.common.text import clean_text, counted
from sentinel.detectors.evidence import measure_of

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison

_MAX_ARMS_SHOWN = 8  # that are shown one by one


def title(comparison: "Comparison") -> str:
    """Return what differs, and how many runs each value has: "learning_rate: 0.1 (3 runs), 0.2 (1 run)".

    Of many values it is "seed: 20 values, 20 runs".

    Of a run beside its baseline: "runs/new beside 3 runs of the baseline".
    """
    if comparison.is_with_baseline:
        (run,), good = comparison.arms.values()
        return clean_text(f"{run} beside {f'{len(good)} runs of ' if len(good) > 1 else ''}the baseline", 500)
    if len(comparison.arms) > _MAX_ARMS_SHOWN:
        runs = sum(map(len, comparison.arms.values()))
        return clean_text(f"{comparison.setting}: {len(comparison.arms)} values, {runs} runs", 500)
    arm_texts = (f"{value} ({counted(len(runs), 'run')})" for value, runs in comparison.arms.items())
    return clean_text(f"{comparison.setting}: {', '.join(arm_texts)}", 500)


def statements(comparison: "Comparison") -> Iterator[str]:
    """Yield what the comparison shows, then where each other signal ends."""
    for finding in comparison.findings:
        cited = f" ({', '.join(finding.catalogue)})" if finding.catalogue else ""
        yield clean_text(f"{finding.text}{cited}", 1000)
    for measure in comparison.measures:
        if comparison.is_with_baseline and measure.bests:
            continue  # a finding says it
        spread = "" if measure.spread is None else f"   between equal runs: {measure.spread:.2g}"
        yield clean_text(
            f"{measure_of(measure.signal).label} at the end   {_ends(measure.ends)}{spread}", 1000
        )


def _ends(ends: Mapping[str, float]) -> str:
    """Describe where a signal ends with each value.

    Of many values they are the lowest, the middle and the highest end.
    """
    if len(ends) <= _MAX_ARMS_SHOWN:
        return "   ".join(f"{value}: {end:.4g}" for value, end in ends.items())
    (low, least), *_, (high, most) = sorted(ends.items(), key=itemgetter(1))
    return f"{low}: {least:.4g}   median: {median(ends.values()):.4g}   {high}: {most:.4g}"
