"""How long a promise stands that is kept, and how soon one that is broken is noticed, in simulated runs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sentinel.calibration.e_process import is_beyond, log_evidence

FLEETS = 200
SHARES = 0.0001, 0.001, 0.02
RISES = 2, 3, 5
_OF_THE_WHOLE = np.array([0.5])  # of the errors
_PROMISED = 800, 100  # pages that are promised while it is looked: where it is kept, and where it is not


def table_rows() -> Iterator[list[str]]:
    """A row for each promised share: runs until it is called broken by chance, and once it is."""
    for share in SHARES:
        kept = first_beyond(share, 1, _PROMISED[0])
        rose = (float(np.median(first_beyond(share, rise, _PROMISED[1]))) for rise in RISES)
        yield [
            f"{share:.2%}",
            f"over {kept.mean():,.0f}",
            f"over {kept.mean() * share:,.0f}",
            *(f"{runs:,.0f} ({runs * share:.1f})" for runs in rose),
        ]


def first_beyond(share: float, rise: float, promised: float, seed: int = 0) -> NDArray[np.float64]:
    """After how many runs each of `FLEETS` first goes beyond its promise, if the share that pages is so many
    times the promised one. It is looked at each day until so many pages were promised; one that is not
    beyond by then gives the runs until then.
    """
    a_day = max(5, round(0.02 / share))
    days = round(promised / share / a_day)
    pages = np.random.default_rng(seed).binomial(a_day, share * rise, (days, FLEETS)).astype(float)
    path = log_evidence(pages, np.full(days, float(a_day)), np.full(FLEETS, share))
    beyond = is_beyond(path[..., None], _OF_THE_WHOLE)[..., 0]
    return np.where(beyond.any(axis=0), beyond.argmax(axis=0) + 1, days) * float(a_day)
