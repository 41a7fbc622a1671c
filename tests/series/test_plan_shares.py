"""How far a run is in its plan: the rows of a series and the rules that read them say the same."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.detectors.api import History, Variant, detector
from sentinel.detectors.schedules import planned_steps
from sentinel.detectors.schema import INDEX, SIGNAL, STEP
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.series.attempt import plan_shares
from sentinel.series.rows import Rows
from sentinel.series.specs import series_specs

pytestmark = pytest.mark.slow

COUNTS = st.none() | st.integers(1, 40).map(float)


@detector(
    judges=(Signal.LOSS, Signal.EVAL_LOSS),
    uses=(Signal.TOTAL_STEPS, Signal.EPOCH),
    settings=(Setting.EPOCHS,),
    history=History(recent=1),
    variants={"never": Variant("never", ())},
)
def planned(points):
    return points


SPECS = {spec.judged: spec for spec in series_specs([planned])}


@given(
    judged=st.sampled_from([*SPECS]),
    begin=st.integers(1, 30),
    first_step=st.integers(0, 3),
    rows=st.lists(st.tuples(st.integers(0, 2), COUNTS, COUNTS, COUNTS), min_size=1, max_size=20),
)
@example(judged=Signal.EVAL_LOSS, begin=4, first_step=0, rows=[(0, None, None, 10.0)])
def test_rows_and_rules_know_the_same_share_of_the_plan(judged, begin, first_step, rows):
    moves, total, epoch, epochs = zip(*rows, strict=True)
    step = begin + first_step + np.cumsum(moves)
    stated = {Signal.TOTAL_STEPS: total, Signal.EPOCH: epoch, Setting.EPOCHS: epochs}
    frame = pl.DataFrame(
        {
            SIGNAL: [judged] * len(rows),
            INDEX: begin + np.arange(len(rows)),
            STEP: step,
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in stated.items()},
        }
    )
    spec = SPECS[judged]
    numbers = np.column_stack(
        [np.zeros(len(rows)), np.zeros(len(rows)), *(frame[name].to_numpy() for name in stated)]
    )
    shares = plan_shares(spec, Rows(step, numbers, tuple(map(spec.columns.index, stated))), begin)
    by_rules = frame.select(pl.col(STEP) / planned_steps()).to_series().to_numpy()
    np.testing.assert_allclose(shares, by_rules, rtol=1e-12)
