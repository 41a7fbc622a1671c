"""What only the run so far as a whole shows is told at interims, stays in between, and ends at one."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.config.file import Config
from sentinel.detectors.api import WARNING, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.interims import THRICE, TWICE, is_interim, next_interim
from sentinel.detectors.schema import ENDED, SERIES, SUMS_UP, VALUE, Course, grown
from sentinel.detectors.signals import Signal
from sentinel.detectors.verdict import verdicts
from sentinel.replays.replaying import replay
from tests.test_conclusion import follow, read, write

INTERIMS = [5, 6, 7, 8, 10, 12, 14, 16, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960]


def test_interims_lie_close_together_at_first_and_then_there_are_two_for_each_doubling():
    assert [rows for rows in range(1000) if is_interim(rows)] == INTERIMS
    assert [next_interim(rows) for rows in range(1000) if is_interim(rows + 1)] == INTERIMS


@detector(
    judges=(Signal.LOSS,),
    history=History(recent=3, head=2),
    variants={"high": Variant("is at {value:.1f}", ())},
    maturity=Maturity.STABLE,
    at_end=True,
    at_interims=True,
    hold=2,
    clear=1,
)
def high_as_a_whole(points: pl.LazyFrame) -> pl.LazyFrame:
    """A high loss, which only a judgement of the run so far as a whole takes for one."""
    last = pl.col(VALUE).last().over(SERIES)  # nothing that comes later is seen
    return verdicts(points, found={"high": pl.col(SUMS_UP) & (pl.col(VALUE) > 0.5) & (last > 0.5)})


@detector(
    judges=(Signal.LOSS,),
    uses=(Course(Signal.LEARNING_RATE), Signal.TOTAL_STEPS),
    history=History(recent=3, head=2),
    variants={"high": Variant("is at {value:.1f} beside {rate:.3f}", ())},
    evidence={"rate": Measure("last rate", Unit.NONE)},
    maturity=Maturity.STABLE,
    at_end=True,
    at_interims=True,
    clear=1,
)
def high_while_it_grows(points: pl.LazyFrame) -> pl.LazyFrame:
    """The same, which has to stand while the log grows to twice its length."""
    rates = pl.col(Course(Signal.LEARNING_RATE).column).list
    found = {"high": pl.col(SUMS_UP) & (pl.col(VALUE) > 0.5)}
    return verdicts(points.with_columns(rate=rates.last()), found=found).with_columns(
        grown(pl.lit(value=False), {"high": TWICE})
    )


@detector(
    judges=(Signal.LOSS,),
    history=History(recent=3, head=2),
    variants={"high": Variant("is at {value:.1f}", ()), "higher": Variant("is even at {value:.1f}", ())},
    maturity=Maturity.STABLE,
    at_end=True,
    at_interims=True,
    clear=1,
)
def high_for_longer(points: pl.LazyFrame) -> pl.LazyFrame:
    """The same, which has to stand for longer unless it is higher."""
    whole = pl.col(SUMS_UP)
    found = {"higher": whole & (pl.col(VALUE) > 0.8), "high": whole & (pl.col(VALUE) > 0.5)}
    needed = grown(pl.lit(value=False), {"higher": TWICE, "high": THRICE})
    return verdicts(points, found=found).with_columns(needed)


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.TOTAL_STEPS,),
    history=History(recent=3, head=2),
    variants={"high": Variant("is at {value:.1f}", ())},
    maturity=Maturity.STABLE,
    at_end=True,
    at_stages=True,
    clear=1,
)
def high_at_the_end(points: pl.LazyFrame) -> pl.LazyFrame:
    """A high loss at the end of a run, or of a stage of its plan."""
    return verdicts(points, found={"high": pl.col(ENDED) & (pl.col(VALUE) > 0.5)})


def judge(log, detectors=(high_as_a_whole,)):
    return follow(log, detectors)


def told(pipeline, run_pipeline):
    changes = read(pipeline, run_pipeline)
    return [(str(c.event), c.incident.fired_step, c.incident.resolved_step) for c in changes]


def values(high):
    """Return losses of which those of the steps ``high`` are high."""
    return [0.9 if step in high else 0.1 for step in range(100)]


def test_it_is_told_at_an_interim_and_over_at_one(tmp_path):
    write(tmp_path / "a.jsonl", values(range(12, 50)))
    assert told(*judge(tmp_path / "a.jsonl")) == [("firing", 13, None), ("resolved", 13, 59)]


@pytest.mark.parametrize(
    ("higher", "told_at"),
    [((), 59), (range(100), 39), (range(30, 100), 59), (range(50), 39), ((19, 79), 59), ((29, 59), 59)],
)
def test_what_needs_to_stand_for_less_counts_for_what_has_to_stand_for_longer(tmp_path, higher, told_at):
    losses = [0.1] * 15 + [0.9 if step in higher else 0.6 for step in range(15, 100)]
    write(tmp_path / "a.jsonl", losses)
    assert told(*judge(tmp_path / "a.jsonl", (high_for_longer,)))[0] == ("firing", told_at, None)


def test_what_is_high_in_between_is_not_told(tmp_path):
    write(tmp_path / "a.jsonl", values(range(41, 59)))
    assert told(*judge(tmp_path / "a.jsonl")) == []


def test_what_may_be_over_soon_is_told_once_it_stood_while_the_log_doubled(tmp_path):
    write(tmp_path / "a.jsonl", values(range(12, 50)))
    assert told(*judge(tmp_path / "a.jsonl", (high_while_it_grows,))) == [
        ("firing", 29, None),
        ("resolved", 29, 59),
    ]


def test_what_an_interim_does_not_show_has_to_stand_anew(tmp_path):
    write(tmp_path / "a.jsonl", values([*range(12, 17), *range(25, 70)]))
    assert told(*judge(tmp_path / "a.jsonl", (high_while_it_grows,))) == [
        ("firing", 59, None),
        ("resolved", 59, 79),
    ]


@pytest.mark.parametrize("rule", [high_while_it_grows, high_at_the_end])
def test_it_is_told_at_once_where_a_stage_of_the_plan_is_done(tmp_path, rule):
    (tmp_path / "args.json").write_text('{"max_steps": 40}')
    write(tmp_path / "a.jsonl", values(range(17, 25))[:41])
    assert told(*judge(tmp_path / "a.jsonl", (rule,))) == [("firing", 20, None), ("resolved", 20, 27)]


@pytest.mark.parametrize(("grows", "expected"), [(False, [("firing", 30, None)]), (True, [])])
def test_a_total_that_grows_counts_steps_and_is_no_plan(tmp_path, grows, expected):
    with (tmp_path / "a.jsonl").open("w") as file:
        for step in range(40):
            total = 29 + step if grows else 60
            file.write(json.dumps({"step": step, "total_steps": total, "train/loss": 0.9}) + "\n")
    assert told(*judge(tmp_path / "a.jsonl", (high_at_the_end,))) == expected


def test_a_rule_that_waits_for_the_end_is_not_heard_at_other_interims(tmp_path):
    write(tmp_path / "a.jsonl", values(range(12, 100)))
    pipeline, run_pipeline = judge(tmp_path / "a.jsonl", (high_at_the_end,))
    assert told(pipeline, run_pipeline) == []
    (advance,) = pipeline.finalize([run_pipeline])
    assert [change.incident.fired_step for change in advance.changes] == [99]


def test_an_interim_knows_other_signals_up_to_its_row(tmp_path):
    with (tmp_path / "a.jsonl").open("w") as file:
        for step in range(40):
            rate = {} if step % 3 else {"train/lr": step / 1000}
            file.write(json.dumps({"step": step, **rate, "train/loss": 0.9}) + "\n")
    pipeline, run_pipeline = judge(tmp_path / "a.jsonl", (high_while_it_grows,))
    (change,) = read(pipeline, run_pipeline)
    assert change.incident.summary == "is at 0.9 beside 0.009"


def test_a_run_that_ends_otherwise_takes_it_back(tmp_path):
    write(tmp_path / "a.jsonl", values(range(12, 50))[:56])
    pipeline, run_pipeline = judge(tmp_path / "a.jsonl")
    assert told(pipeline, run_pipeline) == [("firing", 13, None)]
    (advance,) = pipeline.finalize([run_pipeline])
    assert [change.incident.resolved_step for change in advance.changes] == [55]


@pytest.mark.long  # many examples
@settings(deadline=None, max_examples=30)
@given(
    high=st.lists(st.sampled_from([rows - 1 for rows in INTERIMS]), max_size=6),
    lows=st.sets(st.integers(0, 99), max_size=5),
    cuts=st.lists(st.integers(0, 100), max_size=5),
    reload=st.booleans(),
    plan=st.sampled_from([0, 40, 110]),
)
def test_any_cut_tells_the_same(tmp_path_factory, high, lows, cuts, reload, plan):
    rules = (high_as_a_whole, high_while_it_grows, high_at_the_end)
    losses = values({*high} if len(high) < 4 else {*range(100)} - lows)
    whole, cut_log = (tmp_path_factory.mktemp(name) / "a.jsonl" for name in ("whole", "grown"))
    for log in whole, cut_log:
        (log.parent / "args.json").write_text(json.dumps({"max_steps": plan}))
    write(whole, losses)
    cut_log.touch()
    pipeline, run_pipeline = judge(cut_log, rules)
    changes = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(losses)], strict=True):
        write(cut_log, losses[begin:end], begin)
        changes += told(pipeline, run_pipeline)
        if reload:
            state = run_pipeline.dump()
            pipeline, run_pipeline = judge(cut_log, rules)
            assert run_pipeline.restore(state)
    assert changes == told(*judge(whole, rules))


def log_of_epochs(log, **series):
    """Write a log with one row an epoch."""
    names = [*series]
    with log.open("w") as file:
        file.write(",".join(["epoch", *names]) + "\n")
        for epoch, row in enumerate(zip(*series.values(), strict=True), 1):
            file.write(",".join(map(str, [epoch, *(f"{value:.6f}" for value in row)])) + "\n")
    return log


def first_told(log, detector, variant):
    """Return the first step at which a detector pages with a variant; None if it does not."""
    (run,) = replay([log], Config(), lambda *_: None).runs
    found = [i for i in run.incidents.values() if i.detector == detector and i.severity >= WARNING]
    steps = [i.fired_step for i in found if i.variant == variant]
    return min(steps, default=None)


def guessing(epochs, learns_from, creeps=0.0):
    """Return losses of a classifier of 24 classes that guesses until an epoch, and its accuracy."""
    rng = np.random.default_rng(1)
    gain = np.clip(np.arange(epochs) - learns_from, 0, None) / 20 + creeps * np.arange(epochs)
    loss = np.log(24) - gain
    return {
        "train_loss": loss + rng.normal(0, 1e-4, epochs),
        "val_loss": loss + 0.003 + rng.normal(0, 1e-4, epochs),
        "val_accuracy": 1 / 24 + gain / 10 + rng.normal(0, 0.005, epochs),
    }


def test_a_loss_that_rests_where_it_began_is_told_after_a_part_of_the_plan(tmp_path):
    (tmp_path / "config.yaml").write_text("max_steps: 60\n")
    log = log_of_epochs(tmp_path / "training.csv", **guessing(60, learns_from=60))
    assert first_told(log, "flat-loss-at-init", "never-fell") == 20


def test_a_loss_that_is_always_the_same_is_told_at_its_tenth_point(tmp_path):
    log = log_of_epochs(tmp_path / "training.csv", train_loss=[270.1] * 40, train_accuracy=[0.2] * 40)
    assert first_told(log, "flat-loss-at-init", "never-fell") == 10


def test_without_a_plan_a_loss_that_stands_still_is_told_once_the_log_has_trebled(tmp_path):
    noise = np.random.default_rng(1).normal(0, 0.005, 60)
    still = log_of_epochs(tmp_path / "training.csv", train_loss=np.linspace(2.4, 2.38, 60) + noise)
    assert first_told(still, "flat-loss-at-init", "stands-still") == 40
    leaves = np.r_[np.linspace(2.4, 2.39, 30), np.linspace(2.39, 2, 30)] + noise
    log = log_of_epochs(tmp_path / "training2.csv", train_loss=leaves)
    assert first_told(log, "flat-loss-at-init", "stands-still") is None


def test_without_a_plan_a_metric_that_never_left_its_start_is_told_once_the_log_has_doubled(tmp_path):
    epochs = np.arange(36)
    precision = np.where(epochs % 3, 0.21, 0.208)
    log = log_of_epochs(tmp_path / "training.csv", train_loss=1 - epochs / 100, val_precision=precision)
    assert first_told(log, "zero-eval-metric", "metric-never-left-its-start") == 30


@pytest.mark.parametrize(("found_from", "told"), [(7, None), (60, 10)])
def test_a_detector_may_need_some_epochs_before_one_box_counts(tmp_path, found_from, told):
    epochs = np.arange(60)
    found = np.clip((epochs - found_from) / 40, 0, 0.6)
    columns = {"train_loss": 3 / (1 + epochs / 4), "metrics/mAP50-95(B)": found}
    log = log_of_epochs(tmp_path / "training.csv", **columns)
    assert first_told(log, "zero-eval-metric", "zero") == told


def test_batches_of_which_few_digits_are_logged_are_alike_for_some_time(tmp_path):
    log = tmp_path / "metrics.jsonl"
    write(log, [0.693] * 15 + [round(0.693 * 0.95**n, 3) for n in range(40)])
    assert first_told(log, "flat-loss-at-init", "never-fell") is None


def test_a_loss_that_creeps_away_from_its_start_is_not_told_while_it_runs(tmp_path):
    log = log_of_epochs(tmp_path / "training.csv", **guessing(100, learns_from=45, creeps=3e-4))
    assert first_told(log, "flat-loss-at-init", "never-fell") is None


@pytest.mark.parametrize("variant", ["stands-still", "unmoved"])
def test_a_loss_that_falls_evenly_though_little_is_not_told_without_a_plan(tmp_path, variant):
    rows = np.arange(160)
    noise = np.random.default_rng(1).normal(0, 3e-5, 160)
    log = log_of_epochs(tmp_path / "training.csv", train_loss=9.27 - 1e-4 * rows - 8e-8 * rows**3 + noise)
    assert first_told(log, "flat-loss-at-init", variant) is None


def log_of_batches(log, held_out):
    """Write a log of ten noisy batches an epoch, whose loss falls by 3 % in all, and of what held-out data
    cost after each epoch.
    """
    loss = np.log(3) * (1 - np.arange(300) / 10000) * np.random.default_rng(1).normal(1, 0.06, 300)
    with log.open("w") as file:
        file.write("step,epoch,train_loss,val_loss,val_acc\n")
        for row, value in enumerate(loss):
            file.write(f"{50 * row},{row // 10},{value:.5f},,\n")
            if row % 10 == 9:
                file.write(f"{50 * row},{row // 10},,{held_out[row // 10]:.5f},{0.48 + row / 15000:.4f}\n")
    return log


def test_a_held_out_loss_that_creeps_tells_of_what_the_noise_of_batches_hides(tmp_path):
    level = log_of_batches(tmp_path / "training1.csv", np.full(30, np.log(3)))
    assert first_told(level, "flat-loss-at-init", "never-fell") == 4950
    creeps = log_of_batches(tmp_path / "training.csv", np.log(3) - np.arange(30) / 600)
    assert first_told(creeps, "flat-loss-at-init", "never-fell") is None


def test_an_accuracy_that_guesses_is_told_after_a_part_of_the_plan(tmp_path):
    (tmp_path / "config.yaml").write_text("max_steps: 100\n")
    log = log_of_epochs(tmp_path / "training.csv", **guessing(100, learns_from=100))
    assert first_told(log, "class-collapse", "guess") == 40


def test_without_a_plan_an_accuracy_that_guesses_is_waited_for(tmp_path):
    log = log_of_epochs(tmp_path / "training.csv", **guessing(100, learns_from=60))
    assert first_told(log, "class-collapse", "guess") is None


def test_an_accuracy_that_rests_below_its_best_is_told(tmp_path):
    series = guessing(100, learns_from=0)
    series["val_accuracy"][30:] = 0.123
    log = log_of_epochs(tmp_path / "training.csv", **series)
    assert first_told(log, "class-collapse", "stuck") == 40


def test_a_training_accuracy_that_lags_behind_its_loss_is_not_told_while_it_runs(tmp_path):
    epochs = np.arange(100)
    noise = np.random.default_rng(1).normal(0, 0.003, 100)
    series = {
        "train_loss": 3 * np.exp(-epochs / 40),
        "train_accuracy": np.clip((epochs - 30) / 100, 0, None) + 0.05 + noise,
    }
    log = log_of_epochs(tmp_path / "training.csv", **series)
    assert first_told(log, "class-collapse", "unmatched") is None


def test_planned_epochs_are_a_plan(tmp_path):
    (tmp_path / "config.yaml").write_text("num_train_epochs: 60\n")
    log = log_of_epochs(tmp_path / "training.csv", **guessing(60, learns_from=60))
    assert first_told(log, "class-collapse", "guess") == 20


def test_of_a_run_with_a_plan_fewer_points_tell(tmp_path):
    (tmp_path / "config.yaml").write_text("max_steps: 25\n")
    log = log_of_epochs(tmp_path / "training.csv", **guessing(25, learns_from=25))
    assert first_told(log, "flat-loss-at-init", "never-fell") == 10


def memorising(epochs):
    """Return losses and an accuracy of a classifier that memorises from its third epoch on."""
    epoch = np.arange(epochs)
    return {
        "train_loss": 0.7 * np.exp(-epoch / 3),
        "val_loss": 0.65 + 0.06 * np.abs(epoch - 1),
        "val_accuracy": 0.7 - 0.005 * epoch,
    }


@pytest.mark.parametrize(("plan", "told_at"), [("num_train_epochs: 8\n", 5), ("", 8)])
def test_a_card_tells_at_a_stage_of_the_plan_what_it_tells_at_the_end(tmp_path, plan, told_at):
    (tmp_path / "config.yaml").write_text(plan)
    log = log_of_epochs(tmp_path / "training.csv", **memorising(8))
    assert first_told(log, "generalization-gap", "memorises") == told_at


def test_a_noisy_loss_that_falls_no_lower_is_told_once_it_stood_while_the_log_grew(tmp_path):
    loss = np.log(24) + np.random.default_rng(2).normal(0, 0.02, 320)
    log = tmp_path / "metrics.jsonl"
    write(log, [round(value, 5) for value in loss])
    assert first_told(log, "flat-loss-at-init", "unmoved") == 119


def test_some_batches_that_stand_are_told_once_the_log_grew_to_three_times_its_length(tmp_path):
    loss = 50 + np.random.default_rng(0).normal(0, 1, 200)
    write(tmp_path / "metrics.jsonl", [round(value, 5) for value in loss])
    assert first_told(tmp_path / "metrics.jsonl", "flat-loss-at-init", "unmoved") == 119


RISES = 0.71, 0.729, 0.726, 0.697, 0.791, 0.813, 0.828, 0.913, 0.967, 1.02, 1.05, 1.1


def rising(losses, **series):
    """Return losses of a training that memorises, with these on held-out data, and an accuracy that falls."""
    epoch = np.arange(len(losses))
    of_accuracy = {} if series else {"val_accuracy": 0.7 - 0.02 * (epoch % 3)}
    return {"train_loss": 0.77 * np.exp(-epoch / 7), "val_loss": losses, **of_accuracy, **series}


def test_a_held_out_loss_that_rises_far_is_told_at_two_interims_in_a_row(tmp_path):
    log = log_of_epochs(tmp_path / "training.csv", **rising(RISES))
    assert first_told(log, "generalization-gap", "memorises") == 10


def test_a_held_out_loss_that_comes_down_between_two_interims_is_not_told(tmp_path):
    log = log_of_epochs(tmp_path / "training.csv", **rising([*RISES[:8], *[0.6] * 4]))
    assert first_told(log, "generalization-gap", "memorises") is None


def test_five_evaluations_that_rise_from_the_first_one_on_page_at_the_end(tmp_path):
    losses = 0.32, 0.34, 0.37, 0.4, 0.42
    log = log_of_epochs(tmp_path / "training.csv", train_loss=0.3 * 0.3 ** np.arange(5), val_loss=losses)
    assert first_told(log, "generalization-gap", "memorises") == 5


@pytest.mark.parametrize(("accuracy", "told_at"), [(0.9, None), (0.3, 12)])
def test_a_rise_beside_an_accuracy_that_holds_pages_where_the_run_looks_ill(tmp_path, accuracy, told_at):
    losses = [0.50, 0.40, 0.36, 0.35, *(0.37 + 0.02 * np.arange(16))]
    accuracies = [accuracy - 0.05, accuracy - 0.02, *[accuracy] * 18]
    series = {"train_loss": 0.85 ** np.arange(20), "val_loss": losses, "val_accuracy": accuracies}
    log = log_of_epochs(tmp_path / "training.csv", **series)
    assert first_told(log, "generalization-gap", "memorises") == told_at


def test_seven_evaluations_of_a_run_that_goes_on_are_too_few(tmp_path):
    accuracies = 0.16, 0.16, 0.16, 0.17, 0.1, 0.1, 0.1, 0.13, 0.19, 0.2, 0.25, 0.3
    losses = 0.036, 0.05, 0.045, 0.047, 0.056, 0.053, 0.042, 0.032, 0.03, 0.03, 0.025, 0.02
    series = {"train_loss": 0.5 + 1.4 * np.exp(-np.arange(12) / 3), "val_loss": losses}
    log = log_of_epochs(tmp_path / "training.csv", **series, val_accuracy=accuracies)
    assert first_told(log, "generalization-gap", "memorises") is None


def test_a_reward_that_fell_is_told_at_an_interim_of_a_short_log(tmp_path):
    level = np.concatenate([np.linspace(20, 100, 60), np.linspace(100, 70, 8), np.full(32, 45)])
    log = log_of_epochs(tmp_path / "training.csv", reward=level + np.random.default_rng(1).normal(0, 4, 100))
    assert first_told(log, "reward-collapse", "lost") == 80


@pytest.mark.parametrize(("below", "told_at"), [(15, 240), (0, 400)])
def test_a_reward_that_stands_below_its_start_is_told_once_the_log_has_doubled(tmp_path, below, told_at):
    level = np.where(np.arange(400) < 16, -100, -100 - below)
    log = log_of_epochs(tmp_path / "training.csv", reward=level + np.random.default_rng(0).normal(0, 15, 400))
    assert first_told(log, "reward-stagnation", "reward-never-left-its-start") == told_at


def test_a_reward_that_stands_at_its_start_may_yet_take_off(tmp_path):
    level = np.concatenate([np.full(300, -100), np.linspace(-100, 200, 100)])
    log = log_of_epochs(tmp_path / "training.csv", reward=level + np.random.default_rng(0).normal(0, 15, 400))
    assert first_told(log, "reward-stagnation", "reward-never-left-its-start") is None


def test_a_loss_that_stands_above_its_start_is_told_once_the_log_has_trebled(tmp_path):
    loss = 2 + 0.1 * np.minimum(1, np.arange(120) / 12) + np.random.default_rng(0).normal(0, 0.03, 120)
    log = log_of_epochs(tmp_path / "training.csv", loss=loss)
    assert first_told(log, "flat-loss-at-init", "loss-never-below-its-start") == 80


def test_one_row_of_an_interim_tells_that_a_loss_diverged(tmp_path):
    loss = [*(0.3 + 1.2 * np.exp(-np.arange(15) / 8)), 0.8, 1.0, 1.15, 1.2, 1.25, 1.2, 1.25]
    log = log_of_epochs(tmp_path / "training.csv", loss=loss + np.random.default_rng(1).normal(0, 0.02, 22))
    assert first_told(log, "loss-divergence", "diverged") == 20


def test_a_hundred_equal_accuracies_of_few_samples_are_enough(tmp_path):
    loss = 0.7 + np.random.default_rng(1).normal(0, 0.05, 130)
    log = log_of_epochs(tmp_path / "training.csv", loss=loss, val_accuracy=np.full(130, 0.5))
    assert first_told(log, "class-collapse", "constant") == 100
