"""Tests whether pages come more often than promised, as often as one likes.

Sooner or later chance leaves an interval of 95 % that is computed every day. An e-detector is not misled: its
threshold bounds how often it is wrong over time, whenever and how often it is computed.

Where at most a promised share of the runs page, ``factor ** pages / (1 + (factor - 1) * share) ** runs``
has a mean of at most one. The detector of Shiryaev and Roberts adds this up over all times at which the share
may have begun to be larger: Shin, Ramdas and Rinaldo, "E-detectors", 2023, doi:10.51387/23-NEJSDS51. Many
streams share their errors as in e-d-BH with weights, "error over patience", arXiv:2501.04130.
"""

import numpy as np
from numpy.typing import NDArray

PATIENCE = 10_000.0
"""The least number of runs, or run-days, that pass on average before any stream of a kept promise is called
beyond it, however many streams there are.
"""

PROMISED_PAGES = 100.0
"""The least number of pages that were promised in that time. Where one page in 10,000 runs is promised,
10,000 runs are too few to tell anything, and any page would break the promise.
"""

_ODDS_FACTORS = np.array([1.5, 2.0, 3.0, 5.0, 20.0])  # by which the odds may have risen, all equally likely

Numbers = NDArray[np.float64]


def log_evidence(pages: Numbers, runs: Numbers, shares: Numbers) -> Numbers:
    """Return the logarithm of the detector of each stream after each time: an array of (times, streams).

    ``pages`` has how many of the ``runs`` of each time page, in the same form, and ``shares`` the promised
    share of each stream. The runs may as well be run-days.
    """
    odds = np.log(_ODDS_FACTORS)
    costs = np.log1p(shares[:, None] * (_ODDS_FACTORS - 1))
    # The weight of all starts bounds the mean of a detector: 1 for each run, less if few pages are promised.
    weights = np.log(np.minimum(1.0, shares * (PATIENCE / PROMISED_PAGES)))[:, None]
    evidence = np.full(costs.shape, -np.inf)
    path = np.empty(pages.shape)
    for time, count in enumerate(runs):
        start = weights + np.log(count) if count else -np.inf
        evidence = np.logaddexp(evidence, start) + pages[time][:, None] * odds - count * costs
        path[time] = np.logaddexp.reduce(evidence, axis=-1) - np.log(len(_ODDS_FACTORS))
    return path


def is_beyond(evidence: Numbers, error_shares: Numbers) -> NDArray[np.bool_]:
    """Return which streams leave their promise.

    ``evidence`` has the logarithm of the detector of each stream now, in its last axis, and ``error_shares``
    the part of the errors that each may make. They add up to 1 with those of streams without evidence.

    The mean of the detectors, weighted by their parts, is a detector itself. No stream is beyond unless it
    reaches the patience, so that holds for all streams together, however they depend on each other.
    """
    weighed = evidence + np.log(error_shares)
    ranked = -np.sort(-weighed, axis=-1)
    passes = ranked >= np.log(PATIENCE / np.arange(1, ranked.shape[-1] + 1))
    lowest = np.min(ranked, axis=-1, keepdims=True, initial=np.inf, where=passes)
    return np.asarray(weighed >= lowest)
