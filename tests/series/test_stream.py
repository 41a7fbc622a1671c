"""Whatever a stream is cut into, detectors see the same windows."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detection.row_detection import RowDetection
from sentinel.detectors.api import Detector, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import EARLY_ROWS, SERIES, Course, Every, First, Mean, Standing
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import of_buckets
from sentinel.series.derived import Units, losses_of
from sentinel.series.naming import Meaning, Naming
from sentinel.series.specs import series_specs
from sentinel.series.stream import Stream
from sentinel.series.windows import frame
from sentinel.sources.base import Chunk
from tests.series.stored import stored

VARIANTS = {"seen": Variant("", ())}
TAGS = {
    "a": "loss",
    "b": "learning_rate",
    "c": "pad_fraction",
    "d": "loss",
    "t": "step_time",
    "b2": "learning_rate",
    "n": "batch_tokens",
    "m": "batch_slots",
    "p": "eval_accuracy",
}


LOGGED = (*dict.fromkeys(TAGS.values()), Signal.KL)
"""What the logs below hold, and one signal that they never hold."""

ASKED = (Setting.TOTAL_STEPS, Setting.EPOCHS, Setting.SCHEDULER, Setting.NUM_CLASSES)
"""What the logs below may tell, and one setting that they never tell."""


def _columns(*names: str) -> dict[str, Measure]:
    return {name: Measure(name, Unit.NONE) for name in names}


def _sum_of(rows: pl.Expr, name: str) -> pl.Expr:
    return pl.col(name).filter(rows).sum().over(SERIES)


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, Signal.TOTAL_STEPS),
    settings=(Setting.SCHEDULER, Setting.EPOCHS),
    history=History(recent=7, head=5, coarse=True),
    variants=VARIANTS,
    evidence=_columns(
        "learning_rate",
        "total_steps",
        "scheduler",
        "epochs",
        "recent",
        "times",
        "head",
        "lowest",
        "means",
        "buckets",
    ),
)
def everything_seen(points: pl.LazyFrame, *, scale: Annotated[float, "unused"] = 1.0) -> pl.LazyFrame:
    """Reports what a verdict may depend on, so that a difference shows."""
    recent = pl.col("value").rolling_sum(7, min_samples=1).over(SERIES)
    return points.with_columns(
        severity=pl.lit(1),
        recent=recent.round(9),
        times=pl.col("time").rolling_sum(7, min_samples=1).over(SERIES),
        head=pl.when(pl.col("index") >= 5).then(_sum_of(pl.col("index") < 5, "value")).round(9),
        lowest=of_buckets(pl.col("coarse_low").list.min()),
        means=of_buckets(pl.col("coarse_mean").list.sum()),
        buckets=of_buckets(pl.col("coarse_high").list.len()),
    )


@detector(
    judges=(Signal.LOSS,),
    needs=(Signal.PAD_FRACTION,),
    history=History(recent=3),
    every=2,
    variants=VARIANTS,
    evidence=_columns("both", "pad_fraction"),
)
def joined(points: pl.LazyFrame) -> pl.LazyFrame:
    """Reports the rows of a join."""
    both = (pl.col("value") + pl.col("pad_fraction")).rolling_sum(3, min_samples=1).over(SERIES)
    return points.with_columns(severity=pl.lit(1), both=both.round(9))


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE,),
    non_finite=True,
    history=History(recent=4, coarse=True),
    variants=VARIANTS,
    evidence=_columns("learning_rate", "raw", "known", "means"),
)
def as_logged(points: pl.LazyFrame) -> pl.LazyFrame:
    """Reports rows of points that are not finite, too."""
    return points.with_columns(
        severity=pl.lit(1),
        raw=pl.col("raw").cast(pl.String),  # since NaN is not equal to itself
        known=pl.col("value").is_not_null().rolling_sum(4, min_samples=1).over(SERIES),
        means=of_buckets(pl.col("coarse_mean").list.sum()),
    )


@detector(
    judges=(Signal.PAD_FRACTION,),
    uses=(
        *(Mean(Signal.LOSS), First(Signal.LOSS), Every(Signal.LOSS)),
        *(Signal.LEARNING_RATE, Mean(Signal.LEARNING_RATE)),
    ),
    history=History(recent=2),
    variants=VARIANTS,
    evidence=_columns(
        "loss_mean", "loss_first", "loss_every", "learning_rate", "learning_rate_mean", "earlier"
    ),
)
def beside(points: pl.LazyFrame) -> pl.LazyFrame:
    """Reports what stands beside its rows, and beside the rows before."""
    earlier = pl.col("loss_every").list.sum().rolling_sum(3, min_samples=1).over(SERIES)
    return points.with_columns(
        severity=pl.lit(1),
        earlier=earlier.round(9),
        loss_every=pl.col("loss_every")
        .list.eval(pl.element().cast(pl.String))
        .list.join(" ", ignore_nulls=False),
    )


@detector(
    judges=(Signal.LOSS, Signal.EVAL_ACCURACY),
    uses=(Every(Signal.LOSS),),
    history=History(recent=2, earlier=6),
    variants=VARIANTS,
    evidence=_columns("rows", "last_step", "before", "beside"),
)
def resumed(points: pl.LazyFrame) -> pl.LazyFrame:
    """Reports what was before the restart."""
    before = pl.when(pl.col("index") < 0)
    return points.with_columns(
        severity=pl.lit(1),
        rows=before.then("index").min().over(SERIES),
        last_step=before.then("step").max().over(SERIES),
        before=before.then("value").sum().over(SERIES).round(9),
        beside=before.then(pl.col("loss_every").list.sum()).sum().over(SERIES).round(9),
    )


@detector(
    judges=(Signal.PAD_FRACTION,),
    uses=(Standing(Signal.LOSS), Course(Signal.LOSS)),
    history=History(recent=2),
    at_end=True,
    variants=VARIANTS,
    evidence=_columns("loss_standing", "course"),
)
def read(points: pl.LazyFrame) -> pl.LazyFrame:
    """Reports how the loss stands, and its whole course when the log is over."""
    course = pl.col("loss_course").list.eval(pl.element().cast(pl.String)).list.join(" ")
    return points.with_columns(severity=pl.lit(1), course=course)


DETECTORS: tuple[Detector, ...] = (everything_seen, joined, as_logged, beside, resumed, read)


def chunk_of(points: Sequence[tuple[str, int, float]]) -> Chunk:
    """Points that come one by one, with times of their own: a row of one time is never cut."""
    tags = list(dict.fromkeys(tag for tag, _, _ in points))
    return Chunk(
        "s",
        tags,
        np.array([tags.index(tag) for tag, _, _ in points], dtype=np.uint32),
        np.array([step for _, step, _ in points], dtype=np.int64),
        np.array([10 * step + ord(tag[0]) / 256 for tag, step, _ in points]),
        np.array([value for _, _, value in points], dtype=float),
    )


def verdicts(chunks: Iterable[Chunk], reload: bool = False, at_once: bool = False) -> list[Any]:
    """What is said of the chunks, each of which comes with a poll of its own unless all come ``at_once``."""

    def fail(name: str, run: str, error: Exception) -> None:
        raise error

    naming = Naming(TAGS)
    stream = Stream("run", "s", "jsonl", "", naming, series_specs(DETECTORS))
    results: list[Any] = []
    for poll in [[*chunks]] if at_once else [[chunk] for chunk in chunks]:
        arrived = [rows for chunk in poll for rows in stream.extend(chunk).rows]
        results += [v for _, rows in RowDetection({}, fail).segments(arrived, set()) for v in rows]
        if reload:
            state = stored(stream.dump())
            stream = Stream("run", "s", "jsonl", "", naming, series_specs(DETECTORS))
            stream.restore(state)
    over = [rows for rows in stream.end() if rows.window.ended]
    results += [v for _, rows in RowDetection({}, fail).segments(over, set()) for v in rows]
    comparable = [
        msgspec.structs.replace(v, known=_told(v), onset=v.onset(), level=repr(v.level(10))) for v in results
    ]
    return sorted(comparable, key=lambda v: (v.position, v.key.detector, v.key.tag))


def _told(verdict: Any) -> Any:
    """What rules on causes may ask at a row, asked when the whole log is known."""
    answers = verdict.known
    at = (verdict.position, verdict.step)
    return (
        [signal for signal in LOGGED if answers.logs(signal, verdict.position)],
        {setting: answers.setting(setting, *at) for setting in ASKED},
    )


def cut(
    points: Sequence[tuple[str, int, float]], cuts: Iterable[int], plans: Mapping[int, int] | None = None
) -> list[Chunk]:
    """``plans`` holds the planned number of steps by the number of points that precede it."""
    edges = [0, *sorted({c for c in cuts if c < len(points)}), len(points)]
    config = {
        at: {
            "max_steps": steps,
            "epochs": steps % 7,
            "lr_scheduler_type": "cosine" if steps % 2 else "linear",
        }
        for at, steps in (plans or {}).items()
    }
    return [replace(chunk_of(points[a:b]), config=config.get(a, {})) for a, b in pairwise(edges) if b > a]


def log(rows: int, seed: int, restarts: Sequence[int] = ()) -> list[tuple[str, int, float]]:
    """Some tags at every step, some now and then, some steps repeated, gaps, and restarts at given rows."""
    random = np.random.default_rng(seed)
    points = []
    step = 0
    for row in range(rows):
        step = step - 5 if row in restarts else step + int(random.integers(0, 3))
        for tag, share in zip("abncmdpx", (1.0, 0.3, 0.6, 0.8, 0.6, 0.5, 0.5, 0.5), strict=True):
            if random.random() < share:
                value = float(random.choice([np.nan, np.inf])) if random.random() < 0.02 else random.normal()
                points.append((tag, step, value))
    return points


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 120),
    seed=st.integers(0, 2**32 - 1),
    restarts=st.lists(st.integers(0, 120), max_size=3),
    cuts=st.lists(st.integers(0, 500), max_size=12),
    plans=st.dictionaries(st.integers(0, 200), st.integers(1, 150), max_size=3),
    reload=st.booleans(),
    at_once=st.booleans(),
)
def test_any_cut_gives_the_same_verdicts(
    rows: int,
    seed: int,
    restarts: list[int],
    cuts: list[int],
    plans: dict[int, int],
    reload: bool,
    at_once: bool,
) -> None:
    points = log(rows, seed, restarts)
    expected = verdicts(cut(points, plans, plans))
    assert verdicts(cut(points, [*cuts, *plans], plans), reload, at_once) == expected


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(30, 80),
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    reload=st.booleans(),
)
def test_any_cut_gives_the_same_verdicts_of_a_signal_by_its_role(
    rows: int, seed: int, cuts: list[int], reload: bool
) -> None:
    points = [("objective" if tag == "a" else tag, *rest) for tag, *rest in log(rows, seed) if tag != "d"]
    expected = verdicts(cut(points, ()))
    assert "objective" in {verdict.key.tag for verdict in expected}
    assert verdicts(cut(points, cuts), reload) == expected


@pytest.mark.long
@pytest.mark.parametrize(("rows", "begin", "size"), [(900, 0, 256), (900, 0, 17), (330, 300, 1)])
def test_long_series_have_the_same_coarse_view_however_they_arrive(rows: int, begin: int, size: int) -> None:
    points = [point for point in log(rows, seed=1) if point[0] in "ab"]  # 1.3 for each row of the loss
    cuts = range(begin, len(points), size)  # the view is renewed at 256 rows, at 320, ...
    assert verdicts(cut(points, cuts)) == verdicts([chunk_of(points)])


@pytest.mark.long
def test_parts_of_a_long_series_that_arrive_together_are_judged_in_their_order() -> None:
    points = log(1500, seed=1)  # more than are searched for an attempt's end at once
    chunks = cut(points, range(0, len(points), 256))
    expected = verdicts(chunks)
    assert verdicts([chunk_of(points)]) == expected
    assert verdicts(chunks, at_once=True) == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 300, 700, 5000])
def test_many_histograms_do_not_hide_the_framework(size: int) -> None:
    histograms = [(f"layer{i}#std", 0, 1.0) for i in range(1200)]
    steps = range(20)
    scalars = [(tag, s, 1.0) for s in steps for tag in ("train/loss", "train/reward", "train/reward_std")]
    stream = Stream("run", "s", "tensorboard", "", Naming({}), series_specs(DETECTORS))
    for chunk in cut([*histograms, *scalars], range(0, 1260, size)):
        stream.extend(chunk)
    profile, meanings = stream.explained()
    assert stream.has_names
    assert profile is not None
    assert profile.name == "trl-grpo"
    assert meanings["layer0#std"] == Meaning(Signal.HISTOGRAM_STD)


@pytest.mark.slow
def test_a_log_of_nothing_but_histograms_does_not_wait_for_ever() -> None:
    stream = Stream("run", "s", "tensorboard", "", Naming({}), series_specs(DETECTORS))
    stream.extend(chunk_of([("w#std", step, 1.0) for step in range(20_001)]))
    assert stream.has_names


@pytest.mark.long
def test_tags_written_one_after_the_other_are_joined_by_step() -> None:
    points = [(tag, step, 1.0) for tag in "ac" for step in range(100)]
    results = [v for v in verdicts(cut(points, range(0, 200, 7))) if v.key.detector == "joined"]
    assert [v.step for v in results] == [*range(EARLY_ROWS), *range(EARLY_ROWS + 1, 100, 2)]


@pytest.mark.slow
def test_settings_hold_from_their_place_on() -> None:
    points = [("a", s, 1.0) for s in range(40)]
    results = [
        v.evidence for v in verdicts(cut(points, [30], {30: 5})) if v.key.detector == "everything-seen"
    ]
    assert [(e["scheduler"], e["epochs"]) for e in results[29:31]] == [(None, None), ("cosine", 5)]


@pytest.mark.slow
def test_points_that_are_not_finite_are_rows_for_who_asks_for_them() -> None:
    nan = float("nan")
    inf = float("inf")
    points = [("a", step, value) for step, value in enumerate([1.0, nan, 2.0, -inf, *[3.0] * 20])]
    results: dict[str, list[Any]] = {}
    for verdict in verdicts([chunk_of(points)]):
        results.setdefault(verdict.key.detector, []).append(verdict)
    assert [(v.step, v.evidence["value"], v.evidence["raw"]) for v in results["as-logged"][:4]] == [
        (0, 1.0, "1.0"),
        (1, None, "NaN"),
        (2, 2.0, "2.0"),
        (3, None, "-inf"),
    ]
    assert [(v.index, v.step) for v in results["everything-seen"]][:3] == [(0, 0), (1, 2), (2, 4)]


def test_a_tag_that_is_never_finite_is_judged_by_who_asks_and_hides_no_other() -> None:
    nan = float("nan")
    points = [p for step in range(40) for p in (("b2", step, nan), ("b", step, 0.5), ("a", step, nan))]
    results = verdicts([chunk_of(points)])
    assert {v.key.detector for v in results} == {"as-logged"}
    assert results[-1].evidence["learning_rate"] == 0.5


@pytest.mark.slow
def test_a_step_that_goes_back_begins_an_attempt() -> None:
    points = [("a", s, 1.0) for s in [*range(30), *range(20, 40)]]
    results = [v for v in verdicts([chunk_of(points)]) if v.key.detector == "everything-seen"]
    assert [(v.key.attempt, v.index, v.step) for v in results][29:31] == [(1, 29, 29), (2, 0, 20)]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "attempts"), [(0, {1, 2}), (39, {1, 2}), (40, {1}), (50, {1})])
def test_a_file_that_began_anew_begins_an_attempt_unless_it_goes_on(first: int, attempts: set[int]) -> None:
    before, after = (
        chunk_of([(tag, s, 1.0) for s in steps for tag in "ab"])
        for steps in (range(40), range(first, first + 40))
    )
    assert {v.key.attempt for v in verdicts([before, replace(after, restarted=True)])} == attempts


@pytest.mark.slow
def test_the_last_rows_before_a_restart_are_known_and_not_judged() -> None:
    points = [("a", s, float(s)) for s in [*range(30), *range(20, 40), *range(35, 37)]]
    results = [v for v in verdicts([chunk_of(points)]) if v.key.detector == "resumed"]
    assert len(results) == len(points)
    before = [[v.evidence[n] for n in ("rows", "last_step", "before")] for v in results if v.key.attempt == 2]
    assert before == [[-6, 29, sum(range(24, 30))]] * 20
    assert {v.evidence["last_step"] for v in results if v.key.attempt == 3} == {39}


@pytest.mark.slow
def test_an_attempt_without_rows_hides_nothing_of_the_one_before() -> None:
    points = [*(("a", s, 1.0) for s in range(30)), *(("b", s, 1.0) for s in [20, 10, 5]), ("a", 30, 1.0)]
    results = [v for v in verdicts([chunk_of([("b", 0, 1.0), *points])]) if v.key.detector == "resumed"]
    assert (results[-1].key.attempt, results[-1].evidence["last_step"]) == (3, 29)


@pytest.mark.slow
def test_steps_of_what_means_nothing_begin_no_attempt() -> None:
    points = [
        point for s in range(60) for point in (("a", s, 1.0), ("x", s % 10, 1.0), ("a#std", s % 7, 1.0))
    ]
    assert {v.key.attempt for v in verdicts([chunk_of(points)])} == {1}


@pytest.mark.slow
def test_steps_of_what_is_measured_of_the_machine_begin_no_attempt() -> None:
    trained = [point for s in range(60) for point in (("a", s, 1.0), ("t", s, 1.0))]
    points = [*trained[:60], ("t", 1, 1.0), *trained[60:], ("t", 2, 1.0)]  # a validation's, by the epoch
    assert {v.key.attempt for v in verdicts([chunk_of(points)])} == {1}


@pytest.mark.long
def test_padding_follows_from_tokens_and_slots_of_the_same_step() -> None:
    points = [p for s in range(40) for p in (("n", s, 600.0), ("a", s, 2.0), ("m", s, 800.0))]
    results = [v for v in verdicts(cut(points, range(0, 120, 7))) if v.key.detector in ("joined", "beside")]
    assert {v.key.tag for v in results} == {"a", "1 - n/m"}
    assert [v.step for v in results if v.key.detector == "joined"] == list(range(40))
    assert {v.evidence["pad_fraction"] for v in results if v.key.detector == "joined"} == {0.25}


@pytest.mark.slow
def test_padding_without_slots_is_not_known() -> None:
    points = [p for s in range(40) for p in (("n", s, 600.0), ("a", s, 2.0), ("m", s, 0.0))]
    assert not [v for v in verdicts([chunk_of(points)]) if v.key.detector in ("joined", "beside")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ([0.0, 37.5, 50.0, 1.0], [0.0, 0.375, 0.5, 0.01]),
        ([0.0, 0.375, 1.0, 0.5], [0.0, 0.375, 1.0, 0.5]),
        ([0.75, 12.5, 37.5, 0.5], [0.75, 0.5]),  # it began below 1 %: what it tells then is no share
    ],
)
def test_a_share_in_percent_is_a_share(logged: list[float], expected: list[float]) -> None:
    points = [*(("b", s, 1.0) for s in range(20)), *(("p", 20 + s, value) for s, value in enumerate(logged))]
    for size in (1, 100):
        results = [v for v in verdicts(cut(points, range(0, 100, size)), reload=True) if v.key.tag == "p"]
        assert [v.evidence["value"] for v in results] == expected


def test_a_share_of_errors_may_exceed_1_and_is_one_in_percent_as_well() -> None:
    units = Units()
    assert units.errors("wer", np.array([50.0, 25.0])).tolist() == [0.5, 0.25]
    assert units.errors("wer", np.array([2.0])).tolist() == [0.02]
    assert units.errors("cer", np.array([2.0, 0.5])).tolist() == [2.0, 0.5]


def test_the_loss_of_a_perplexity_is_its_logarithm() -> None:
    perplexities = np.array([1.0, np.e, np.inf, 0.0, np.nan])
    np.testing.assert_allclose(losses_of(perplexities), [0.0, 1.0, np.inf, np.nan, np.nan])


@pytest.mark.slow
def test_a_rule_is_called_once_for_all_that_a_poll_brings() -> None:
    calls = []

    def counted(points: pl.LazyFrame) -> pl.LazyFrame:
        calls.append(points.collect().height)
        return everything_seen.rule(points)

    stream = Stream(
        "run", "s", "jsonl", "", Naming(TAGS), series_specs([replace(everything_seen, rule=counted)])
    )
    (chunk,) = cut([("a", step, 1.0) for step in range(2_000)], ())
    arrived = stream.extend(chunk).rows
    assert len(arrived) > 10, "the coarse view was renewed several times"
    rows = [v for _, rows in RowDetection({}, lambda *_: None).segments(arrived, set()) for v in rows]
    assert [v.index for v in rows] == [*range(2_000)]
    assert len(calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(), range(0, 300, 1), range(0, 300, 7)])
def test_the_terms_of_a_loss_are_summed_where_their_sum_is_not_logged(cuts: Sequence[int]) -> None:
    terms = {"train/box_loss": 1.0, "train/dfl_loss": 0.5, "train/cls_loss": 2.0}
    points = [
        p for s in range(1, 40) for p in (*((t, s, v * s) for t, v in terms.items()), ("lr/pg1", s, 0.1))
    ]
    results = [v for v in verdicts(cut(points, cuts)) if v.key.detector == "everything-seen"]
    assert {v.key.tag for v in results} == {"train/box_loss + train/cls_loss + train/dfl_loss"}
    assert [(v.step, v.evidence["value"]) for v in results] == [(s, 3.5 * s) for s in range(1, 40)]
    assert results[-1].evidence["learning_rate"] == 0.1


@pytest.mark.long
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bound_is_a_loss_whatever_its_sign(sign: float) -> None:
    points = [("train_elbo", step, sign * (50.0 - step)) for step in range(60)]
    for cuts in ((), range(0, 60, 1)):
        results = [v for v in verdicts(cut(points, cuts), reload=True) if v.key.detector == "resumed"]
        assert [v.evidence["value"] for v in results] == [50.0 - step for step in range(60)]


@pytest.mark.long
def test_a_perplexity_alone_is_judged_as_its_loss() -> None:
    points = [("train_ppl", step, 100.0 - step) for step in range(60)]
    results = [v for v in verdicts([chunk_of(points)], reload=True) if v.key.detector == "resumed"]
    np.testing.assert_allclose([v.evidence["value"] for v in results], np.log(100.0 - np.arange(60)))


@pytest.mark.long
def test_the_coarse_view_is_in_one_row_of_a_long_window() -> None:
    """Its 64 numbers beside each of 100,000 rows would take 150 MB."""
    stream = Stream("run", "s", "jsonl", "", Naming(TAGS), series_specs(DETECTORS))
    # a checkpoint, and fewer rows than up to the next
    first = 1 << 20
    rows = 100_000
    for begin, end in ((0, first), (first, first + rows)):
        steps = np.arange(begin, end)
        chunk = Chunk.of_rows("s", ["a"], steps, steps.astype(float), np.ones((len(steps), 1)), False)
        new_rows = stream.extend(chunk.flat).rows
    (series,) = (rows for rows in new_rows if everything_seen in rows.spec.detectors)
    window = frame(everything_seen, [(series.spec, series.window)])
    assert len(window) >= rows
    assert window["coarse_mean"].null_count() == len(window) - 1
    assert window.select("coarse_low", "coarse_mean", "coarse_high").estimated_size("mb") < 5
