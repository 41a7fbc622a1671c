"""Whether the causes that are called likely are right: what is claimed of the first beside what it was."""

from collections.abc import Sequence

from studies.strangers.labels import FOLDS
from studies.strangers.likelihoods import BY_HAND, Case, Claim, claims, fitted
from tests.tools.docs import table

BINS = 10
LOWEST = 4
"""All claims below this bin are shown as one."""

HEAD = """An incident lists catalogue entries and says how likely each is. {runs} labels name the entries that
are right; on these runs {cases} incidents list some. **Claimed** is how likely the first was called,
**right** how often it was right, with the number of incidents, for all and by tenths of the claim. The
calibration error is the mean distance of the two over these tenths.

- **By hand** is the usual order of the entries and a factor of four for each clue.
- **Left out** claims of each fold what fits the other four.
- **Fitted** is what sentinel uses.

Some labels name several entries, and the rules of some pages were written with some of these runs in view. On
other runs the first may be right less often.

"""


def calibration(of: Sequence[Case]) -> str:
    """The section of the page."""
    if not of:
        return "No label names an entry."
    others = left_out(of) or claims(BY_HAND, of)
    told = {"By hand": claims(BY_HAND, of), "Left out": others, "Fitted": claims(fitted(of), of)}
    low = [f"below {(LOWEST + 1) / BINS:g}", *(f"from {at / BINS:g}" for at in range(LOWEST + 1, BINS))]
    rows = [
        [name, f"{expected_error(one):.3f}", *map(_cell, ([*one], *_binned(one)))]
        for name, one in told.items()
    ]
    head = HEAD.format(runs=round(sum(case.share for case in of)), cases=len(of))
    return head + table(["Likelihoods", "Calibration error", "Claimed / right", *low], rows)


def left_out(of: Sequence[Case]) -> list[Claim]:
    """What is claimed of the cases of each fold by numbers that were fitted to the other folds."""
    found = []
    for fold in range(FOLDS):
        there, others = ([case for case in of if (case.fold == fold) is here] for here in (True, False))
        found += claims(fitted(others), there) if there and others else []
    return found


def expected_error(of: Sequence[Claim]) -> float:
    """The expected calibration error: how far claims are from the truth, bin by bin."""
    apart = (abs(sum(one.share * (one.claimed - one.right) for one in there)) for there in _binned(of))
    return sum(apart) / sum(one.share for one in of)


def _binned(of: Sequence[Claim]) -> list[list[Claim]]:
    bins: list[list[Claim]] = [[] for _ in range(LOWEST, BINS)]
    for claim in of:
        bins[min(max(int(claim.claimed * BINS), LOWEST), BINS - 1) - LOWEST].append(claim)
    return bins


def _cell(of: Sequence[Claim]) -> str:
    if not of:
        return ""
    whole = sum(claim.share for claim in of)
    claimed = sum(claim.share * claim.claimed for claim in of) / whole
    right = sum(claim.share * claim.right for claim in of) / whole
    return f"{claimed:.2f} / {right:.2f} ({len(of)})"
