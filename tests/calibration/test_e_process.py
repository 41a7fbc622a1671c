"""A kept promise is seldom called broken however often one looks, and a broken one soon."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sentinel.calibration.e_process import PATIENCE, PROMISED_PAGES, is_beyond, log_evidence
from studies.promises import delays

SHARE = 0.02
A_DAY = 5  # runs


def first_beyond(path):
    """After how many runs each of the simulated fleets first goes beyond; NaN where it does not."""
    beyond = is_beyond(path[..., None], np.ones(1)).any(axis=-1)
    return np.where(beyond.any(axis=0), (beyond.argmax(axis=0) + 1) * A_DAY, np.nan)


def simulated(share, days, fleets, seed=0):
    """The detectors of fleets of which a share pages, and which are promised `SHARE`."""
    pages = np.random.default_rng(seed).binomial(A_DAY, share, (days, fleets)).astype(float)
    return log_evidence(pages, np.full(days, float(A_DAY)), np.full(fleets, SHARE))


@pytest.mark.long
def test_a_kept_promise_is_called_broken_less_than_once_in_its_patience():
    until = first_beyond(simulated(SHARE, days=8000, fleets=200))
    assert np.nan_to_num(until, nan=8000 * A_DAY).mean() > PATIENCE


@pytest.mark.long
def test_the_patience_is_that_of_the_whole_and_its_variants_together():
    """Ten variants whose pages make up the whole, each at the share that it is promised."""
    variants = 10
    fleets = 50
    days = 8000
    own = np.random.default_rng(0).binomial(A_DAY, SHARE / variants, (days, fleets, variants)).astype(float)
    pages = np.concatenate([own.sum(axis=-1, keepdims=True), own], axis=-1)
    shares = np.array([SHARE, *[SHARE / variants] * variants])
    path = log_evidence(pages.reshape(days, -1), np.full(days, float(A_DAY)), np.tile(shares, fleets))
    parts = np.array([0.5, *[0.5 / variants] * variants])
    beyond = is_beyond(path.reshape(pages.shape), parts).any(axis=-1)
    until = np.where(beyond.any(axis=0), (beyond.argmax(axis=0) + 1) * A_DAY, days * A_DAY)
    assert until.mean() > PATIENCE


@pytest.mark.slow
def test_a_share_that_triples_is_noticed():
    until = first_beyond(simulated(3 * SHARE, days=400, fleets=200))
    assert np.isfinite(until).all()
    assert 150 < np.median(until) < 250, "12 pages where 4 were promised"


@pytest.mark.slow
def test_a_share_that_triples_late_is_noticed_as_soon():
    shares = np.where(np.arange(600) < 400, SHARE, 3 * SHARE)[:, None]
    pages = np.random.default_rng(1).binomial(A_DAY, shares, (600, 200)).astype(float)
    path = log_evidence(pages, np.full(600, float(A_DAY)), np.full(200, SHARE))
    until = first_beyond(path)
    later = until[~(until < 400 * A_DAY)] - 400 * A_DAY
    assert len(later) > 150
    assert np.median(later) < 200


@pytest.mark.slow
def test_few_of_the_streams_that_are_named_are_innocent():
    streams = 100
    risen = 20
    days = 300
    shares = np.where(np.arange(streams) < risen, 4 * SHARE, SHARE)
    wrong = 0
    right = 0
    for seed in range(20):
        pages = np.random.default_rng(seed).binomial(A_DAY, shares, (days, streams)).astype(float)
        path = log_evidence(pages, np.full(days, float(A_DAY)), np.full(streams, SHARE))
        named = is_beyond(path[-1], np.full(streams, 1 / streams))
        wrong = wrong + named[risen:].sum()
        right = right + named[:risen].sum()
    assert right > 0.9 * 20 * risen
    assert wrong <= days * A_DAY / PATIENCE * 0.1 * right, "the bound is errors for each run of patience"


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0001, 0.001])
def test_of_few_promised_pages_there_is_patience_as_well_and_a_rise_is_noticed(share):
    kept = delays.first_beyond(share, 1, 300).mean()
    assert kept > PATIENCE
    assert kept * share > PROMISED_PAGES
    tripled = delays.first_beyond(share, 3, 20)
    assert 3 < np.median(tripled) * share < 5, "some 12 pages where 4 were promised"


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 200, 10_000])
def test_one_page_breaks_no_promise_however_long_nothing_came_before(days):
    pages = np.zeros((days, 1))
    pages[-1] = 1
    path = log_evidence(pages, np.full(days, 100.0), np.array([0.0001]))
    assert not is_beyond(path[-1], np.ones(1)).any()


def test_a_bound_of_many_streams_is_shared_as_by_rank():
    high = np.log(PATIENCE * 10 / 2)
    tenth = np.full(3, 0.1)
    assert is_beyond(np.array([high, 0.0, high]), tenth).tolist() == [True, False, True]
    assert not is_beyond(np.array([high, 0.0, 0.0]), tenth).any()
    assert is_beyond(np.array([high, 0.0, 0.0]), np.array([0.5, 0.25, 0.25])).tolist() == [True, False, False]
    assert not is_beyond(np.array([]), np.array([])).any()


counts = arrays(np.float64, st.tuples(st.integers(0, 20), st.just(3)), elements=st.integers(0, 10**6))
shares = st.floats(1e-9, 1.0)


@given(counts, st.integers(0, 10**6), shares)
def test_it_is_a_number_whatever_is_counted(pages, runs, share):
    path = log_evidence(pages, np.full(len(pages), float(runs)), np.full(3, share))
    assert path.shape == pages.shape
    assert not np.isnan(path).any()
    assert (path < np.inf).all()


@given(counts, st.integers(1, 100), shares)
def test_more_pages_never_speak_for_the_promise(pages, runs, share):
    of_times = np.full(len(pages), float(runs))
    promised = np.full(3, share)
    more, fewer = (log_evidence(pages + extra, of_times, promised) for extra in (1, 0))
    assert (more >= fewer).all()
