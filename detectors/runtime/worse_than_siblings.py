"""The run is worse than healthy runs of the same training program ever are.

## What it catches
A signal that has left the band of its siblings on the bad side for an eighth of the plan: a loss, an
evaluation, a reward, a throughput or the memory; on either side for the gradient norm, the learning rate and
the entropy. Siblings log the same tags with the same framework, and their settings are the same but for
seeds, names and at most two values. A band takes three of them that are finished and have no warning. A
watch judges this while a run goes on, beside those with equal settings that ended before; a replay of their
tree judges it beside all.

## Why it matters
A fault often makes a run only worse than it should be, which no fixed threshold shows: a tenth of the labels
is wrong, a quarter of the layers is not trained, a machine has one slow card. Who knows the other seeds sees
it at once.

## What to do
Compare the commit, the data and the machine with those of the siblings, and the settings that differ. Where
all is as it was, start the run again with another seed.

## When it is wrong
One healthy run in 200 is as far off by chance. Siblings that share one seed differ too little from one
another. Where the settings differ on purpose, the difference is what was wanted: that is info, as is what
fewer than eight siblings say. Among runs that differ from one another in a setting, as in a sweep, only those
with the run's own value are its siblings.

## Source
A prediction interval for one more run, from the largest scores of the siblings, each against the others, as
in split conformal prediction with the run as the unit. The chance is shared among the signals (Bonferroni).
Loss curves are aligned by the share of the plan, as by compute in loss-curve collapse, arXiv:2507.02119.
"""

from collections.abc import Iterator
from typing import Annotated

from sentinel.detectors.api import INFO, WARNING, Variant
from sentinel.detectors.evidence import Measure, Unit, measure_of
from sentinel.detectors.run_checks import Deviation, RunFinding, RunView, run_check

RULE = "worse-than-siblings"  # the name of this detector; a run is compared only where it is enabled
MAX_NAMED = 3  # signals, so that the message stays short


@run_check(
    reads="the finished runs of the same training program",
    evidence={
        "siblings": Measure("siblings", Unit.COUNT),
        "where": Measure("signal", Unit.TEXT),
        "logged_as": Measure("logged as", Unit.TEXT),
        "level": Measure("level", Unit.NONE),
        "usual": Measure("level of the siblings", Unit.NONE),
        "limit": Measure("level that one of 200 siblings reaches", Unit.NONE),
        "score": Measure("distance in the spread of the siblings", Unit.NONE),
        "also": Measure("other signals that left the band", Unit.TEXT),
        "differ": Measure("settings that differ", Unit.TEXT),
    },
    variants={
        "worse": Variant(
            "{where} than in {siblings} healthy runs of the same program: {level:.4g}, theirs {usual:.4g} "
            "and hardly ever beyond {limit:.4g}; it differs in {differ}",
            (),
            (INFO, WARNING),
        )
    },
)
def worse_than_siblings(
    run: RunView, *, siblings_to_warn: Annotated[int, "siblings from which on it is a warning"] = 8
) -> Iterator[RunFinding]:
    """Yield one finding for the run, about the signal that left its band first."""
    if run.siblings is None or not run.siblings.deviations:
        return
    first, *others = run.siblings.deviations
    sure = run.siblings.siblings >= siblings_to_warn and not run.siblings.differ
    yield RunFinding(
        index=first.step,
        variant="worse",
        severity=WARNING if sure else INFO,
        step=first.step,
        onset_step=first.onset_step,
        evidence={
            "siblings": run.siblings.siblings,
            "where": _where(first),
            "logged_as": first.tag,
            "level": first.level,
            "usual": first.usual,
            "limit": first.limit,
            "score": first.score,
            "also": ", ".join(_where(other) for other in others[:MAX_NAMED]) or "none",
            "differ": run.siblings.differ or "no setting",
        },
    )


def _where(departed: Deviation) -> str:
    return f"{measure_of(departed.signal).label} is {'higher' if departed.higher else 'lower'}"
