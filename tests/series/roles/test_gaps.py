"""Signals of roles: only in gaps, and the same however a log is cut into polls."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.detectors.signals import Signal
from sentinel.series.naming import Naming
from sentinel.series.specs import series_specs
from sentinel.series.stream import Stream
from sentinel.sources.base import Chunk
from tests.series.stored import stored

Point = tuple[str, int, float]

ROW = ("Avg_return", "whatever", "policy loss")
LATER = (
    "val_dice",
    "val_mcc",
    "val_accuracy",
    "test_score",
    "mean_reward_test",
    "best_val_mcc",
    "val/MPJPE",
    "accuracy",
    "f1",
)


def _new_stream(overrides: Mapping[str, str]) -> Stream:
    return Stream("run", "s", "jsonl", "", Naming(overrides), series_specs(()))


def _chunk(points: Sequence[Point]) -> Chunk:
    tags = sorted({tag for tag, _, _ in points})
    return Chunk(
        "s",
        tags,
        np.array([tags.index(tag) for tag, _, _ in points], dtype=np.uint32),
        np.array([step for _, step, _ in points], dtype=np.int64),
        np.array([10.0 * step for _, step, _ in points]),
        np.array([value for _, _, value in points]),
    )


def _signals(
    points: Sequence[Point], cuts: Iterable[int] = (), overrides: Mapping[str, str] | None = None
) -> dict[str, Signal | None]:
    """What the tags mean after all points, if the watch restarts at each of the cuts."""
    stream = _new_stream(overrides or {})
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(points)}), len(points)]
    for begin, end in pairwise(edges):
        stream.extend(_chunk(points[begin:end]))
        state = stored(stream.dump())
        stream = _new_stream(overrides or {})
        stream.restore(state)
    _, meanings = stream.explained()
    return {tag: meaning.signal if meaning else None for tag, meaning in meanings.items()}


def _rows(*tags: str, count: int = 30) -> list[Point]:
    return [(tag, step, float(step)) for step in range(count) for tag in tags]


@pytest.mark.parametrize(
    ("tag", "signal"),
    [
        ("val_mcc", Signal.EVAL_SCORE),
        ("PhonemeErrorRate", Signal.EVAL_ERROR_RATE),
        ("Avg_return", Signal.REWARD),
        ("test/ep_ret", Signal.EVAL_REWARD),
        ("val/MPJPE", Signal.EVAL_LOSS),
        ("val/psnr", Signal.EVAL_QUALITY),
        ("val/lpips", Signal.EVAL_DISTANCE),
        ("success_rate", Signal.REWARD),
        ("win_rate", None),
        ("best_val_mcc", None),
        ("train/mystery", None),
    ],
)
def test_a_role_gives_a_signal(tag: str, signal: Signal | None) -> None:
    assert _signals([*_rows(tag), *_rows("a", count=40)])[tag] is signal
    assert _signals([*_rows("a"), (tag, 40, 0.5)])[tag] is signal  # the same if it comes later


def test_what_is_short_for_two_things_gets_no_signal_where_it_comes_later() -> None:
    first = [*_rows("loss")]
    assert _signals([*first, ("recall", 40, 0.5)])["recall"] is Signal.EVAL_SCORE
    assert _signals([*first, ("rec", 40, 2.5), ("kl", 40, 0.1)])["rec"] is None


@pytest.mark.parametrize(
    ("tag", "signal"), [("Mask (l1 loss)", Signal.LOSS), ("PPO reward function #5", Signal.REWARD)]
)
def test_a_number_in_the_only_name_makes_it_none_of_several(tag: str, signal: Signal) -> None:
    assert _signals(_rows(tag))[tag] is signal


@pytest.mark.parametrize(
    ("beside", "signal"),
    [("rollout/ep_len_mean", Signal.REWARD), ("rollout/ep_rew_mean", Signal.SUCCESS_RATE)],
)
def test_success_is_the_reward_of_a_library_that_logs_no_other(beside: str, signal: Signal | None) -> None:
    of_library = ("time/fps", "time/total_timesteps", "train/n_updates", "train/actor_loss")
    assert _signals(_rows("rollout/success_rate", beside, *of_library))["rollout/success_rate"] is signal


@pytest.mark.parametrize("ending", ["(l{} loss)", "/{}/auc"])
def test_what_is_one_of_several_is_no_outcome(ending: str) -> None:
    tags = [f"Mask {ending.format(number)}" for number in (1, 2)]
    assert {*_signals(_rows(*tags)).values()} == {None}


@pytest.mark.parametrize(
    ("tag", "signal"), [("rounds/global_accuracy", Signal.EVAL_SCORE), ("accuracy", Signal.EVAL_ACCURACY)]
)
def test_a_metric_beside_no_loss_is_that_of_an_evaluation(tag: str, signal: Signal) -> None:
    assert _signals(_rows(tag))[tag] is signal
    assert _signals(_rows(tag, "loss_of_a_part"))[tag] is not signal


@pytest.mark.parametrize(
    ("tag", "signal"),
    [
        ("accuracy", Signal.EVAL_ACCURACY),
        ("Accuracy Score", Signal.EVAL_SCORE),
        ("F1 Score (Micro)", Signal.EVAL_SCORE),
        ("train accuracy", Signal.ACCURACY),
        ("best_f1", None),
    ],
)
def test_a_metric_that_comes_after_many_losses_is_that_of_an_evaluation(tag: str, signal: Signal) -> None:
    """A console prints the losses of an epoch first, and then what its evaluation gave."""
    assert _signals([*_rows("loss"), (tag, 40, 0.5)])[tag] is signal
    assert _signals([*_rows("loss", "val_accuracy"), (tag, 40, 0.5)])[tag] in (None, Signal.ACCURACY)


@pytest.mark.parametrize(("tag", "signal"), [("f1", Signal.EVAL_SCORE), ("accuracy", Signal.EVAL_ACCURACY)])
def test_a_metric_alone_in_its_stream_is_that_of_an_evaluation(tag: str, signal: Signal) -> None:
    """The lines of the training are another stream of the same console."""
    stream = Stream("run", "s", "console", "", Naming({}), series_specs(()), is_beside_others=True)
    stream.extend(_chunk(_rows(tag)))
    meaning = stream.explained()[1][tag]
    assert meaning is not None
    assert meaning.signal is signal


def test_a_coefficient_that_may_be_far_below_zero_has_a_unit_of_its_own() -> None:
    """An R2 is 1 at best."""
    points: list[Point] = [("val_r2", step, -4.8 + step / 10) for step in range(40)]
    assert _signals(points)["val_r2"] is Signal.EVAL_QUALITY
    shares: list[Point] = [(tag, step, value / 100) for tag, step, value in points]
    assert _signals(shares)["val_r2"] is Signal.EVAL_SCORE


def test_a_role_that_the_stream_has_is_not_given_a_second_time() -> None:
    assert _signals(_rows("val_accuracy", "val_kappa"))["val_kappa"] is None
    assert _signals([*_rows("val_accuracy"), ("val_kappa", 30, 0.5)])["val_kappa"] is None


def test_the_reward_of_a_better_judge_counts_before_that_of_the_one_trained_by() -> None:
    """What a policy gains by a learned judge alone is over-optimisation (Gao et al. 2022)."""
    both = _signals(_rows("proxy_reward", "gold_reward"))
    assert both == {"proxy_reward": None, "gold_reward": Signal.REWARD}
    assert _signals(_rows("proxy_reward"))["proxy_reward"] is Signal.REWARD


@pytest.mark.parametrize(
    ("tags", "signals"),
    [
        ("val_auc val_accuracy", (Signal.EVAL_SCORE, Signal.EVAL_ACCURACY)),
        ("val_f1 val_auc val_accuracy", (Signal.EVAL_SCORE, Signal.EVAL_SCORE, Signal.EVAL_ACCURACY)),
        ("val_auc val_auroc val_accuracy", (Signal.EVAL_SCORE, None, Signal.EVAL_ACCURACY)),
        ("val_kappa val_accuracy", (None, Signal.EVAL_ACCURACY)),
    ],
)
def test_a_metric_that_a_reader_takes_before_those_with_signals_has_one_too(
    tags: str, signals: Sequence[Signal | None]
) -> None:
    assert _signals(_rows(*tags.split())) == dict(zip(tags.split(), signals, strict=True))


@pytest.mark.parametrize(
    ("change", "signals"),
    [(-0.01, [Signal.LOSS, Signal.EVAL_LOSS]), (0.01, [None, Signal.EVAL_SCORE])],
    ids=["a loss", "a score"],
)
def test_what_catboost_prints_is_a_loss_where_it_falls(
    change: float, signals: Sequence[Signal | None]
) -> None:
    """It prints "learn" and "test" of whatever it measures."""
    tags = ("learn", "test", "best", "total", "remaining")
    points: list[Point] = [(tag, step, 0.5 + change * step) for step in range(30) for tag in tags]
    found = _signals(points)
    assert [found["learn"], found["test"]] == signals


def test_a_person_and_a_profile_win() -> None:
    assert _signals(_rows("loss", "val_mcc"), overrides={"val_mcc": "ignore"})["val_mcc"] is None
    assert _signals(_rows("val_mcc"), overrides={"val_mcc": "accuracy"})["val_mcc"] is Signal.ACCURACY


@settings(max_examples=60, deadline=None)
@given(
    row=st.sampled_from([ROW, ("loss", "lr")]),
    rows=st.integers(1, 40),
    later=st.lists(st.sampled_from([*ROW, *LATER]), max_size=12),
    cuts=st.lists(st.integers(0, 140), max_size=8),
)
def test_any_cut_gives_the_same_signals(
    row: Sequence[str], rows: int, later: list[str], cuts: list[int]
) -> None:
    points = [*_rows(*row, count=rows), *((tag, 50, 0.5) for tag in later)]
    assert _signals(points, cuts) == _signals(points)


@pytest.mark.parametrize(
    ("tags", "tag", "signal"),
    [
        ("pol_loss val_loss mean_return", "val_loss", Signal.VALUE_LOSS),
        ("policy_loss value_loss val_loss mean_return", "val_loss", Signal.EVAL_LOSS),
        ("train_loss val_loss", "val_loss", Signal.EVAL_LOSS),
        ("loss epsilon episode_reward", "loss", Signal.VALUE_LOSS),
        ("loss reward", "loss", Signal.POLICY_LOSS),
        ("loss val_loss", "loss", Signal.LOSS),
        ("Loss Cost Advantage", "Loss", Signal.POLICY_LOSS),
        ("Loss Cost Advantage", "Cost", Signal.LOSS),
        ("TrainAccuracy accuracy loss", "accuracy", Signal.EVAL_ACCURACY),
        ("accuracy loss", "accuracy", Signal.ACCURACY),
        ("train_loss loss accuracy", "loss", Signal.EVAL_LOSS),
        ("train_loss loss accuracy", "accuracy", Signal.EVAL_ACCURACY),
        ("train_loss loss val_loss", "loss", Signal.LOSS),
        ("step_rewards_tictactoe other", "step_rewards_tictactoe", Signal.REWARD),
        ("left_reward right_reward", "left_reward", None),
        ("reward reward_of_walking", "reward_of_walking", None),
        ("std_of_rewards", "std_of_rewards", None),
        ("mean_reward success_rate", "success_rate", Signal.SUCCESS_RATE),
        ("mean_loss mean_td_error mean_q_value", "mean_loss", Signal.VALUE_LOSS),
        ("Avg_Loss Avg_Q Avg_Coverage", "Avg_Loss", Signal.VALUE_LOSS),
        ("loss loss_q0 q_proj_norm", "loss", Signal.LOSS),
        ("reward_mean_raw cov_rew_mean aux_rew_mean", "aux_rew_mean", None),
        ("reward_mean_raw cov_rew_mean aux_rew_mean", "reward_mean_raw", Signal.REWARD),
        ("transition_rewards", "transition_rewards", None),
        ("PDE BC IC Total", "Total", Signal.LOSS),
        ("pde total", "total", None),
        ("pde bc loss total", "total", None),
        ("PDE BC IC Total", "PDE", None),
        ("loss_pde loss_bc", "loss_pde", Signal.LOSS_PART),
        ("loss_pde loss_bc loss", "loss_pde", None),
        ("loss_pde lr", "loss_pde", None),
        ("learn test", "learn", None),
        ("train val", "val", Signal.EVAL_SCORE),
        ("train val loss", "val", None),
        ("train learning_rate", "train", None),
        ("Losses|Losses 2|Losses 3", "Losses", None),
        ("Losses|Losses 2", "Losses", Signal.LOSS),
        ("loss|CV info cv_loss", "CV info cv_loss", Signal.EVAL_LOSS),
        ("shaping_reward_of_goals other", "shaping_reward_of_goals", None),
        ("expert_policy_return", "expert_policy_return", None),
        ("loss chosen_reward", "chosen_reward", None),
        ("loss accuracy mean_rejected_rewards", "mean_rejected_rewards", None),
        ("loss train/reward_gap", "train/reward_gap", None),
        ("reward kl_penalty", "kl_penalty", Signal.KL_UNKNOWN_UNIT),
        ("loss kl_penalty", "kl_penalty", None),
        ("kl reward kl_penalty", "kl_penalty", None),
        ("reward kl_loss", "kl_loss", None),
        ("reward kl_loss response_length", "kl_loss", Signal.KL_UNKNOWN_UNIT),
        ("reward kl_coef response_length", "kl_coef", None),
        ("reward avg_gen_len", "avg_gen_len", Signal.COMPLETION_LENGTH),
        ("loss eval_gen_len", "eval_gen_len", None),
        ("reward mean_len", "mean_len", None),
        ("reward mean_len format_reward", "mean_len", Signal.COMPLETION_LENGTH),
        ("reward response_tokens", "response_tokens", None),  # which grow as a sum does
        ("reward truncation_rate", "truncation_rate", None),
        ("reward_mean answer_reward_mean format_reward_mean", "answer_reward_mean", Signal.TASK_REWARD),
        ("reward_mean answer_reward_mean format_reward_mean", "format_reward_mean", Signal.REWARD_FUNCTION),
        ("total_reward rewards/accuracy rewards/format", "rewards/accuracy", Signal.TASK_REWARD),
        ("loss answer_reward", "answer_reward", Signal.REWARD),
        ("episode_return is_success", "is_success", Signal.SUCCESS_RATE),
        ("loss success_rate", "success_rate", Signal.REWARD),
        ("reward truncation_rate gen_len", "truncation_rate", Signal.CLIPPED_COMPLETION_RATIO),
        ("reward policy/clip_ratio gen_len", "policy/clip_ratio", Signal.CLIP_FRACTION),
        ("loss reward/total_mean reward/format", "reward/total_mean", Signal.REWARD),
        ("reward/selected_mean reward/hard_pass_rate", "reward/hard_pass_rate", Signal.REWARD),
        ("reward/total reward/hard_pass_rate", "reward/hard_pass_rate", None),
    ],
)
def test_the_other_tags_correct_a_signal(tags: str, tag: str, signal: Signal | None) -> None:
    assert _signals(_rows(*tags.split("|" if "|" in tags else None)))[tag] is signal


@pytest.mark.parametrize("beside", [[], ["acc"], ["ppl"], ["val_ppl"]])
def test_losses_of_which_only_the_part_of_the_data_is_named(beside: list[str]) -> None:
    """Of "train" and "val" alone, or beside a named metric or a perplexity, what falls is a loss."""
    points: list[Point] = [
        (tag, step, 1 / (step + 1)) for step in range(30) for tag in ("train", "val", *beside)
    ]
    found = _signals(points)
    assert (found["train"], found["val"]) == (Signal.LOSS, Signal.EVAL_LOSS)


def test_shares_of_parts_of_the_data_are_metrics_where_that_of_the_training_rises() -> None:
    """Those of held-out data may swing."""
    points: list[Point] = [
        (tag, step, value)
        for step in range(30)
        for tag, value in (("train", 0.6 + step / 100), ("dev", 0.61 - step % 3 / 500))
    ]
    found = _signals(points)
    assert (found["train"], found["dev"]) == (None, Signal.EVAL_SCORE)


def test_what_a_single_step_gave_is_no_reward_beside_that_of_a_library() -> None:
    """It says nothing of an episode; the reward of a discriminator, which names no step, may."""
    tags = ("rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/n_updates", "Reward/Step")
    assert _signals(_rows(*tags))["Reward/Step"] is None
    assert _signals(_rows(*tags))["rollout/ep_rew_mean"] is Signal.REWARD
    assert _signals(_rows(*tags), cuts=[20, 60])["Reward/Step"] is None
    assert _signals(_rows(*tags[1:]))["Reward/Step"] is Signal.REWARD
    assert _signals(_rows(*tags[:-1], "reward_signal_mean"))["reward_signal_mean"] is Signal.REWARD


def test_the_results_of_a_participant_are_those_of_no_course() -> None:
    """In federated training each one begins anew from the common model."""
    points: list[Point] = [
        (tag, step, value)
        for step in range(30)
        for tag, value in (("client_id", step % 5), ("round", step // 5), ("loss", 0.5), ("accuracy", 0.8))
    ]
    found = _signals(points)
    assert (found["loss"], found["accuracy"]) == (None, None)
    assert _signals(points, cuts=[40, 60]) == found
    others = _signals(
        [("n_clients" if tag == "client_id" else tag, step, value) for tag, step, value in points]
    )
    assert (others["loss"], others["accuracy"]) == (Signal.LOSS, Signal.ACCURACY)


def test_a_person_is_not_corrected() -> None:
    points = _rows("pol_loss", "val_loss", "mean_return")
    assert _signals(points, overrides={"val_loss": "eval_loss"})["val_loss"] is Signal.EVAL_LOSS


@pytest.mark.parametrize(
    ("tags", "signals"),
    [
        ("train_ppl val_ppl", (Signal.LOSS, Signal.EVAL_LOSS)),
        ("train_loss train_ppl val_ppl", (Signal.LOSS, Signal.PERPLEXITY, Signal.EVAL_LOSS)),
        ("train_ppl val_loss val_ppl", (Signal.LOSS, Signal.EVAL_LOSS, Signal.EVAL_PERPLEXITY)),
    ],
)
def test_a_perplexity_stands_for_a_loss_that_is_not_logged(tags: str, signals: Sequence[Signal]) -> None:
    assert _signals(_rows(*tags.split())) == dict(zip(tags.split(), signals, strict=True))


@pytest.mark.parametrize("beside", ["", "val_loss"])
def test_a_perplexity_that_comes_later_stands_for_a_loss(beside: str) -> None:
    first = _rows("train_loss", count=60)
    later = [(tag, 60, 9.0) for tag in ("val_ppl", beside) if tag]
    signal = Signal.EVAL_PERPLEXITY if beside else Signal.EVAL_LOSS

    assert _signals([*first, *later])["val_ppl"] is signal
