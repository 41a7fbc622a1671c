"""A comparison of runs in words, as every layout shows it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sentinel.detectors.evidence import measure_of
from sentinel.ground.text import clean_text

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison


def title(comparison: "Comparison") -> str:
    """What differs, and how many runs each value has: "learning_rate: 0.1 (3 runs), 0.2 (1 run)".

    Of a run beside its baseline: "runs/new beside 3 runs of the baseline".
    """
    if comparison.of_baseline:
        (run,), good = comparison.arms.values()
        return clean_text(f"{run} beside {f'{len(good)} runs of ' if len(good) > 1 else ''}the baseline", 500)
    counted = (f"{value} ({len(runs)} run{'s' * (len(runs) > 1)})" for value, runs in comparison.arms.items())
    return clean_text(f"{comparison.setting}: {', '.join(counted)}", 500)


def statements(comparison: "Comparison") -> Iterator[str]:
    """What the comparison shows, then where each other signal ends."""
    for finding in comparison.findings:
        cited = f" ({', '.join(finding.catalogue)})" if finding.catalogue else ""
        yield clean_text(f"{finding.text}{cited}", 1000)
    for measure in comparison.measures:
        if comparison.of_baseline and measure.bests:
            continue  # a finding says it
        ends = "   ".join(f"{value}: {end:.4g}" for value, end in measure.ends.items())
        spread = "" if measure.spread is None else f"   between equal runs: {measure.spread:.2g}"
        yield clean_text(f"{measure_of(measure.signal).label} at the end   {ends}{spread}", 1000)
