"""The opinion of cards beside a rule: where it prevails, and where it is silent."""

import numpy as np
import polars as pl

from sentinel.detectors.api import CARD_BAR, Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.reading.cards import card_of
from sentinel.detectors.reading.opinion import with_rivals
from sentinel.detectors.schema import ONSET, VARIANT
from sentinel.detectors.signals import Signal
from sentinel.series.windows import frame
from tests.detectors.golden import Stream, judge, windows

NOISE = np.random.default_rng(1).normal(0, 8, 150)
FLAT = np.full(150, -200.0) + NOISE


def found(
    name: str, signal: Signal, *logs: np.ndarray, first: int = 0, plan: float | None = None
) -> pl.DataFrame:
    """What a detector finds in one signal, of which each log is an attempt of so many planned steps."""
    detector = all_detectors()[name]
    assert isinstance(detector, Detector)
    streams = [
        Stream(signal, np.arange(first, first + len(values)), values, attempt=number)
        for number, values in enumerate(logs, 1)
    ]
    if plan:
        streams.append(Stream(Signal.TOTAL_STEPS, np.array([first]), np.array([plan])))
    return judge(detector, windows(detector, streams)).drop_nulls(VARIANT)


def variants(
    name: str, signal: Signal, *logs: np.ndarray, first: int = 0, plan: float | None = None
) -> set[str]:
    """The variants that a detector finds in one signal, of which each log is an attempt."""
    return {*found(name, signal, *logs, first=first, plan=plan)[VARIANT].to_list()}


def test_a_card_speaks_under_the_name_of_the_detector_that_reads_it():
    assert variants("reward-stagnation", Signal.REWARD, FLAT) == {"reward-never-left-its-start"}


def of_flat_reward(first: float, last: float) -> set[str]:
    """What `reward-stagnation` finds in a flat reward beside a share of successes that moves."""
    detector = all_detectors()["reward-stagnation"]
    assert isinstance(detector, Detector)
    logged = {Signal.REWARD: FLAT, Signal.SUCCESS_RATE: np.linspace(first, last, 150) + NOISE / 800}
    streams = [Stream(signal, np.arange(150), values) for signal, values in logged.items()]
    return {*judge(detector, windows(detector, streams)).drop_nulls(VARIANT)[VARIANT].to_list()}


def test_an_agent_that_nearly_always_succeeds_has_little_to_gain():
    assert of_flat_reward(0.9, 0.9) == set()
    assert of_flat_reward(0.3, 0.3) == {"reward-never-left-its-start"}
    assert of_flat_reward(0.99, 0.87) == {"reward-never-left-its-start"}  # which it no longer does


def test_no_second_opinion_on_a_training_of_eight_points():
    """Whose last one may stand anywhere."""
    loss = np.array([27.0, 33, 22, 30, 45, 28, 31, 74])
    assert variants("loss-divergence", Signal.LOSS, loss) == set()
    assert variants("loss-divergence", Signal.LOSS, np.append(loss, [90.0, 110, 140, 160])) != set()


SELDOM = np.abs(NOISE) / 800  # a share of successes that never rises


def test_a_run_that_has_done_a_part_of_its_plan_has_a_lower_bar():
    steps = {
        plan: found("reward-stagnation", Signal.REWARD, SELDOM, plan=plan)["step"] for plan in (None, 150)
    }
    assert steps[None].to_list() == [149]  # at its end
    assert 50 <= steps[150].min() < 75
    assert variants("reward-stagnation", Signal.REWARD, SELDOM, plan=10_000) == set()


DESCENT = np.linspace(2, 1, 40) + NOISE[:40] / 800
FLAT_LOSS = 2.3 + NOISE[:100] / 8000


def of_flat_loss(loss: np.ndarray, **beside: np.ndarray) -> pl.DataFrame:
    """What `flat-loss-at-init` finds in a loss that goes on, beside values of other signals at its steps."""
    detector = all_detectors()["flat-loss-at-init"]
    assert isinstance(detector, Detector)
    steps = np.arange(len(loss))
    logged = {Signal.LOSS: loss, **{Signal(name): values for name, values in beside.items()}}
    streams = [Stream(signal, steps, values) for signal, values in logged.items()]
    told = judge(detector, windows(detector, streams)).drop_nulls(VARIANT)
    return told.filter((pl.col("step") < steps[-1]) & (pl.col(VARIANT) == "never-left-its-start"))


EPOCHS = np.arange(100.0)


def test_a_loss_that_has_stood_for_three_tenths_of_its_epochs_is_told_and_none_that_leaves_its_start():
    assert of_flat_loss(FLAT_LOSS, epoch=EPOCHS)["step"].min() == 27
    leaves = np.r_[FLAT_LOSS[:24], DESCENT]
    assert of_flat_loss(leaves, epoch=EPOCHS[: len(leaves)]).is_empty()


def test_as_many_batches_say_little():
    assert of_flat_loss(FLAT_LOSS).is_empty()
    assert of_flat_loss(FLAT_LOSS, epoch=EPOCHS / 10).is_empty()


def test_a_loss_that_stays_at_its_start_beside_a_metric_that_has_learned_says_nothing():
    rests = 0.1 + np.abs(NOISE[:100]) / 8000
    assert not of_flat_loss(FLAT_LOSS, epoch=EPOCHS, eval_accuracy=rests).is_empty()
    assert of_flat_loss(FLAT_LOSS, epoch=EPOCHS, eval_accuracy=rests + 0.008 * EPOCHS).is_empty()


def test_another_score_excuses_a_zero_and_no_score_that_never_left_its_start():
    detector = all_detectors()["zero-eval-metric"]
    assert isinstance(detector, Detector)
    rows = np.arange(15)
    recall = Stream(Signal.EVAL_SCORE, rows, np.full(15, 0.65), tag="val_recall")
    for precision, variants_of_it in ((0.21, {"metric-never-left-its-start"}), (0.0, set())):
        wavers = np.where(rows % 3, precision, 0.99 * precision)
        streams = [Stream(Signal.EVAL_SCORE, rows, wavers, tag="val_precision"), recall]
        told = judge(detector, windows(detector, streams)).drop_nulls(VARIANT)
        assert {*told[VARIANT]} == variants_of_it


def test_an_evaluation_that_fell_is_told_beside_a_reward_in_training_that_rose():
    detector = all_detectors()["reward-collapse"]
    assert isinstance(detector, Detector)
    steps = np.arange(150)
    rises = np.linspace(-200, 0, 150) + NOISE
    fell = np.r_[np.linspace(0, 200, 75), np.linspace(200, 100, 25), np.full(50, 100.0)] + NOISE
    streams = [Stream(Signal.REWARD, steps, rises), Stream(Signal.EVAL_REWARD, steps, fell)]
    told = judge(detector, windows(detector, streams)).drop_nulls(VARIANT)
    assert {*told[VARIANT]} == {"reward-got-worse"}
    swapped = [Stream(Signal.EVAL_REWARD, steps, rises), Stream(Signal.REWARD, steps, fell)]
    assert judge(detector, windows(detector, swapped)).drop_nulls(VARIANT).is_empty()


def test_a_loss_beside_clipped_samples_is_that_of_a_policy():
    detector = all_detectors()["loss-divergence"]
    assert isinstance(detector, Detector)
    steps = np.arange(80)
    penalty = Stream(Signal.LOSS, steps, 4e-5 * (steps + 1.0))
    clipped = Stream(Signal.CLIP_FRACTION, steps, np.zeros(80))
    assert not judge(detector, windows(detector, [penalty])).drop_nulls(VARIANT).is_empty()
    assert judge(detector, windows(detector, [penalty, clipped])).drop_nulls(VARIANT).is_empty()


def test_a_reward_of_fewer_than_ten_points_says_nothing():
    assert variants("reward-stagnation", Signal.REWARD, FLAT[:9]) == set()
    assert variants("reward-stagnation", Signal.REWARD, FLAT[:10]) == {"reward-never-left-its-start"}


def test_the_first_row_of_a_resume_is_no_start():
    assert variants("reward-stagnation", Signal.REWARD, FLAT, first=50_000) == set()


def test_a_far_shorter_attempt_before_is_no_resume():
    assert variants("reward-stagnation", Signal.REWARD, FLAT[:3], FLAT) == {"reward-never-left-its-start"}
    assert variants("reward-stagnation", Signal.REWARD, FLAT[:-50], FLAT[:50]) == set()


def test_a_card_yields_to_another_one():
    fell = np.r_[np.full(40, 0.0), np.linspace(0, -200, 60), np.full(50, -200.0)] + NOISE
    assert variants("reward-collapse", Signal.REWARD, fell)
    assert variants("reward-stagnation", Signal.REWARD, fell) == set()


def test_a_short_tail_after_a_resume_is_no_course():
    rising = np.array([0.488, 0.496, 0.514, 0.521, 0.512, 0.525, 0.53, 0.526, 0.525, 0.513])
    assert variants("generalization-gap", Signal.EVAL_LOSS, rising) == {"memorises"}
    assert variants("generalization-gap", Signal.EVAL_LOSS, rising, first=40) == set()


def onsets(errors: np.ndarray) -> list[int]:
    """Where an error rate began to be worse than it was, as each look says."""
    return found("eval-metric-collapse", Signal.EVAL_ERROR_RATE, errors)[ONSET].to_list()


LEARNS = np.r_[np.linspace(0.9, 0.2, 40), 0.2 + 0.004 * np.sin(np.arange(30))]


def test_what_was_lost_is_bad_from_its_first_low_point_and_not_from_the_best_one():
    leaps = np.r_[LEARNS, np.full(40, 0.9)]
    assert {*onsets(leaps)} == {70}
    leaps[80] = 0.2
    assert {*onsets(leaps)} == {70}
    slides = onsets(np.r_[LEARNS, np.linspace(0.21, 0.9, 20), np.full(20, 0.9)])
    assert slides
    assert {*slides} <= {*range(72, 79)}


def test_what_was_lost_before_the_recent_rows_is_bad_from_about_there():
    lost = onsets(np.r_[np.linspace(0.9, 0.2, 400), np.linspace(0.75, 0.99, 600)])
    assert lost
    assert all(abs(onset - 400) <= 40 for onset in lost)


def told(bar: float) -> pl.DataFrame:
    """What the cards of a detector say of a reward at rest, with bars so many times as high."""
    detector = all_detectors()["reward-stagnation"]
    assert isinstance(detector, Detector)
    stream = Stream(Signal.REWARD, np.arange(len(FLAT)), FLAT)
    read = frame(detector, windows(detector, [stream]))
    return detector.run(read, {CARD_BAR: bar}).drop_nulls(VARIANT)


def test_a_card_whose_bar_is_raised_asks_for_more_points_and_says_so():
    usual = told(1.0)
    points = usual["card_points"].to_list()[-1]
    over = card_of("reward-never-left-its-start").over.page_from
    assert told(points / over)["card_points"].to_list()[-1] == points
    assert f"pages from {points:g}" in told(points / over)["card"].to_list()[-1]
    assert told(1.01 * points / over).is_empty()


def test_a_card_with_no_bar_pages_from_a_point_on():
    assert "pages from 1" in told(0.0)["card"].to_list()[-1]


def test_a_claim_is_not_told_because_the_one_it_yields_to_became_stricter():
    card = card_of("reward-never-left-its-start").raised(2.0)
    cards = {one.claim: one for one in with_rivals([card.claim], 2.0)}
    assert cards[card.claim].over.page_from == card.over.page_from
    assert all(cards[rival] is card_of(rival) for rival in card.yields_to)


def test_a_reward_that_ends_at_its_worst_far_below_its_start_is_told_once_it_has_stayed_there():
    rose = np.linspace(-10, 40, 12)
    fell = np.r_[rose, np.linspace(20, -200, 8), np.full(20, -200.0)] + NOISE[:40] / 20
    steps = found("reward-collapse", Signal.REWARD, fell)["step"]
    assert steps.min() == 23
    assert variants("reward-collapse", Signal.REWARD, np.r_[fell[:20], rose, rose + 40]) == set()


def test_one_bad_evaluation_at_half_of_the_plan_is_not_told():
    losses = np.array([1.36, 1.26, 1.21, 1.20, 1.39, 1.19, 1.18, 1.17, 1.16, 1.15])
    assert not variants("generalization-gap", Signal.EVAL_LOSS, losses, plan=8)


LEVEL = 10 + np.random.default_rng(3).normal(0, 3, 30)


def test_a_second_opinion_is_asked_once_a_run_is_over():
    """No card pages of so few points of a level, noisy reward."""
    told = found("reward-stagnation", Signal.REWARD, LEVEL)
    assert told[VARIANT].to_list() == ["second-opinion-reward-low"]
    assert told["step"].to_list() == [len(LEVEL) - 1]
    assert "what weighs most: " in told["reading"].item()


def test_a_second_opinion_needs_no_untrained_start_but_a_third_of_the_plan():
    assert variants("reward-stagnation", Signal.REWARD, LEVEL, first=10_000) == {"second-opinion-reward-low"}
    assert variants("reward-stagnation", Signal.REWARD, LEVEL, plan=1000) == set()
