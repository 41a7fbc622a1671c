"""Tests of names, values and company."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detectors.signals import Signal
from sentinel.series.roles.assignment import _roles_of_signals, role_of_signal, roles_of
from sentinel.series.roles.company import Series
from sentinel.series.roles.names import reading, table
from sentinel.series.roles.outcome import Outcome, outcome_of
from sentinel.series.roles.role import Direction, Kind, Mark, Measure, Role, Source, Split, Unit
from sentinel.series.roles.values import Values

REWARDS = (
    "win_rate",
    "Average100 Score",
    "Score",
    "success",
    "success_rate",
    "avg_raw_rewards",
    "outcome_reward_mean",
    "eval/mean_reward",
    "rollout/returns",
    "test/ep_ret",
    "episode_return_total",
    "rreturn_mean",
    "Epoch_reward",
    "Avg_return",
    "Success",
    "mean_reward_test",
    "Recompensa total",
    "Ep_r",
)
METRICS = (
    "mAP50(B)",
    "precision",
    "recall",
    "fscore",
    "FB1",
    "r2",
    "Pearson",
    "Spearman",
    "corrcoef",
    "C-index",
    "KRCC",
    "mDice",
    "FWIoU",
    "CIDEr",
    "slot_f1",
    "joint goal acc",
    "dice",
    "dice_coef",
    "jaccard",
    "IoU",
    "auc",
    "auroc",
    "acc5",
    "Pass@1",
    "PSNR",
    "SSIM",
    "kappa",
    "MCC",
    "BLEU",
    "ROUGE",
    "NDCG@10",
    "HR@10",
    "elo",
    "val/mIoU_0",
    "Clean Acc",
)
ERRORS = ("PhonemeErrorRate", "wer", "cer", "class_error", "eval_wer", "results/fid50k_full", "LPIPS", "FID")
LOSSES = (
    "val/ADE",
    "val/FDE",
    "val/MPJPE",
    "val/mape",
    "Valid MAPE",
    "val_nrmse",
    "test/MASE",
    "val/RMSE",
    "val/mae",
)
PARTS = ("mel_loss", "vqloss", "kld", "train/iou_loss", "loss_0", "avg_loss_0")
INNER = (
    "policy_kl",
    "logps/kl",
    "raw_grad_norm",
    "grad_norm_0",
    "Policy_Grad_Norms",
    "ppo_clip_ratio",
    "logps/clip_ratio",
)
SETTINGS = ("current_lr_0", "x/lr0", "ent_coef")
NOTHING = (
    "rewards/chosen",
    "rewards/rejected",
    "rewards/margins",
    "fast_rcnn/cls_accuracy",
    "cardinality_error",
    "positive_score",
    "discounted_reward",
    "MaxEpRet",
    "StdEpRet",
    "best_reward_max",
)


def _series(tag: str, *values: float) -> Series:
    return Series("", tag, Values().after(np.asarray(values, dtype=float)))


def _falling(tag: str, count: int = 20) -> Series:
    return _series(tag, *(2.0 * 0.9**step for step in range(count)))


def _rising(tag: str, count: int = 20, most: float = 0.9) -> Series:
    return _series(tag, *(most * (1 - 0.8**step) for step in range(count)))


def _outcome(*series: Series) -> Outcome:
    outcome = outcome_of(series, roles_of(series, {}))
    assert outcome is not None
    return outcome


def _role(tag: str, *series: Series) -> Role | None:
    return roles_of(series, {}).get(("", tag))


def test_a_loss_beside_advantages_is_that_of_a_policy_and_its_costs_are_judged() -> None:
    row = (_series("Loss", -3.8, 11.7, 44.0), _falling("Cost", 3), _series("Advantage", 0.1, -0.4, 0.0))
    assert (role := _role("Loss", *row)) is not None
    assert role.kind is Kind.INNER
    assert _outcome(*row).tag == "Cost"


@pytest.mark.parametrize(
    ("tags", "kind", "measure", "direction"),
    [
        (REWARDS, Kind.OUTCOME, Measure.REWARD, Direction.HIGHER),
        (METRICS, Kind.OUTCOME, Measure.METRIC, Direction.HIGHER),
        (ERRORS, Kind.OUTCOME, Measure.METRIC, Direction.LOWER),
        (LOSSES, Kind.HELD_OUT_LOSS, Measure.LOSS, Direction.LOWER),
    ],
)
def test_names_of_outcomes(tags: tuple[str, ...], kind: Kind, measure: Measure, direction: Direction) -> None:
    for tag in tags:
        role = reading(tag).role
        assert role is not None, tag
        assert (role.kind, role.measure, role.direction) == (kind, measure, direction), tag


@pytest.mark.parametrize(
    ("tags", "kind"), [(PARTS, Kind.PART), (INNER, Kind.INNER), (SETTINGS, Kind.SETTING)]
)
def test_names_of_others(tags: tuple[str, ...], kind: Kind) -> None:
    for tag in tags:
        role = reading(tag).role
        assert role is not None
        assert role.kind is kind, tag


@pytest.mark.parametrize("tag", NOTHING)
def test_false_friends_have_no_role(tag: str) -> None:
    assert reading(tag).role is None


def test_the_table_has_no_name_twice() -> None:
    assert len(table().names) > 400


def test_every_signal_with_a_role_is_a_signal() -> None:
    assert _roles_of_signals().keys() <= {*map(str, Signal)}


def test_reward_functions_are_parts() -> None:
    role = _role("rewards/accuracy_reward", _rising("reward"), _rising("rewards/accuracy_reward"))
    assert role is not None
    assert role.kind is Kind.PART


def test_val_loss_of_ppo_is_a_value_loss() -> None:
    series = _rising("reward"), _falling("pol_loss"), _falling("val_loss")
    role = _role("val_loss", *series)
    assert role is not None
    assert role.kind is Kind.INNER
    assert _outcome(*series).tag == "reward"


def test_a_table_of_whole_runs_is_no_training() -> None:
    seeds = _series("summaries/seed", *(37.0 + 10 * (n % 5) for n in range(20)))
    results = _falling("summaries/final_loss"), _rising("summaries/final_accuracy")
    assert not roles_of((seeds, *results), {})
    assert roles_of((_series("seed", *[7.0] * 20), _falling("final_loss")), {})
    assert roles_of((_series("seed", *map(float, range(20))), _rising("reward")), {})


@pytest.mark.parametrize(
    ("one", "other"), [("recon_loss", "loss_recon"), ("bpr_loss", "train/loss_bpr"), ("kl_loss", "loss_kl")]
)
def test_the_word_loss_may_stand_at_either_end_of_a_name(one: str, other: str) -> None:
    role = reading(one).role
    turned = reading(other).role
    assert role is not None
    assert turned is not None
    assert (turned.kind, turned.measure) == (role.kind, role.measure)


def test_a_rec_beside_a_kl_is_a_reconstruction_and_beside_a_precision_recall() -> None:
    autoencoder = _falling("Rec"), _falling("KL"), _falling("Total")
    assert _outcome(*autoencoder).role.kind is Kind.TRAINING_LOSS
    of_both = tuple(map(_falling, ("train_rec", "train_kl", "val_rec", "val_kl")))
    assert _outcome(*of_both).role.kind is Kind.HELD_OUT_LOSS
    detector = _rising("Rec"), _rising("Prec"), _falling("KL")
    assert _outcome(*detector).role.measure is Measure.METRIC


def test_loss_of_dqn_is_no_training_loss() -> None:
    series = _rising("episode_reward"), _falling("loss")
    role = _role("loss", *series)
    assert role is not None
    assert role.kind is Kind.INNER


def test_a_bare_metric_beside_that_of_training_is_held_out() -> None:
    series = _rising("Train Accuracy"), _rising("Accuracy"), _falling("loss")
    assert _outcome(*series).tag == "Accuracy"


def test_an_overlap_outranks_the_pixels_and_what_large_classes_weigh() -> None:
    for other in ("fwIoU", "MPA", "Acc_class"):
        for series in ((other, "mIoU"), ("mIoU", other)):
            assert _outcome(*map(_rising, series)).tag == "mIoU"


def test_the_accuracy_of_a_server_is_held_out() -> None:
    assert (
        _outcome(_falling("client_loss", 200), _falling("train_loss", 200), _rising("accuracy")).role.split
        is Split.HELD_OUT
    )


def test_one_printed_reward_is_not_the_mean() -> None:
    assert _outcome(_rising("Reward", 50), _rising("Mean Reward", 50)).tag == "Mean Reward"


def test_parts_are_not_the_loss() -> None:
    series = _falling("loss"), _falling("loss_x"), _falling("loss_y")
    assert _outcome(*series).tag == "loss"
    role = _role("loss_x", *series)
    assert role is not None
    assert role.kind is Kind.PART


def test_the_only_loss_is_the_loss() -> None:
    role = _role("proxy_loss", _falling("proxy_loss"))
    assert role is not None
    assert role.kind is Kind.TRAINING_LOSS


def test_the_only_share_of_held_out_data_is_the_outcome_whatever_stands_before_it() -> None:
    """Beside another outcome of the same data, or as one of several, it is not."""
    outcome = _outcome(_falling("train_loss"), _rising("val_novel_acc"))
    assert (outcome.tag, outcome.role.unit) == ("val_novel_acc", Unit.SHARE)
    in_percent = _outcome(_falling("train_loss"), _rising("val_ood_f1", most=90.0))
    assert in_percent.role.unit is Unit.PERCENT
    assert _role("val_ood_acc", _falling("val_loss"), _rising("val_ood_acc")) is None
    assert _role("val_easy_acc", _rising("val_easy_acc"), _rising("val_hard_acc")) is None


@pytest.mark.parametrize("tag", ["val_novel_acc_std", "best_val_novel_acc", "novel_acc", "val_hole_psnr"])
def test_the_only_one_of_held_out_data_that_is_no_share_of_them(tag: str) -> None:
    assert _role(tag, _falling("train_loss"), _series(tag, *range(20, 40))) is None


def test_metrics_that_nothing_counts_beside_nothing_of_a_training_are_results() -> None:
    """A program that compares models prints them, a line for each."""
    printed = replace(_rising("acc"), unit="row")
    assert _role("acc", printed) is None
    assert _outcome(replace(printed, unit="epoch")).tag == "acc"
    assert _role("acc", printed, _falling("train_loss")) is not None


def test_a_setting_of_a_loss_is_not_the_loss() -> None:
    assert _role("loss_weight", _falling("loss_weight")) is None


def test_objectness_is_a_part_and_an_objective_is_not() -> None:
    objectness = _role("obj", _falling("box"), _falling("obj"), _falling("cls"))
    objective = _role("Obj/train", _falling("Obj/train"))
    assert objectness is not None
    assert objectness.kind is Kind.PART
    assert objective is not None
    assert objective.kind is Kind.TRAINING_LOSS


def test_the_best_so_far_is_no_outcome() -> None:
    assert _outcome(_rising("best_val_acc"), _rising("val_acc")).tag == "val_acc"


def test_values_tell_percent_and_likelihood() -> None:
    percent = _role("val_acc", _rising("val_acc", most=90.0))
    likelihood = _role("nll", _series("nll", 1.0, 0.2, -0.5, -1.0))
    assert percent is not None
    assert percent.unit is Unit.PERCENT
    assert likelihood is not None
    assert Mark.LIKELIHOOD in likelihood.marks


def test_values_that_contradict_the_name_take_its_role() -> None:
    assert _role("accuracy", _series("accuracy", 1200.0, 1300.0, 1500.0)) is None


def test_a_profile_wins() -> None:
    known = role_of_signal("value_loss", Source.PROFILE, "the profile names it")
    assert known is not None
    assert roles_of([_falling("val_loss")], {("", "val_loss"): known})[("", "val_loss")].kind is Kind.INNER


def test_losses_of_adversaries_are_no_outcome() -> None:
    series = _falling("G_loss"), _falling("D_loss"), _falling("loss")
    assert outcome_of(series, roles_of(series, {})) is None


def test_losses_beside_the_number_of_a_participant_are_no_outcome() -> None:
    """In federated training each participant begins anew from the common model, on data of its own."""
    for number in ("Local Pariticipant", "client_id"):
        series = _falling("CE"), _series(number, *(step // 5 % 4 for step in range(20)))
        assert outcome_of(series, roles_of(series, {})) is None
    assert _outcome(_falling("CE"), _series("n_clients", *(4 for _ in range(20)))).tag == "CE"
    assert _outcome(_falling("CE"), _series("client drift", *(0.5 for _ in range(20)))).tag == "CE"


def test_a_score_without_an_agent_is_a_metric() -> None:
    assert _outcome(_falling("train_loss"), _rising("test_score")).role.measure is Measure.METRIC


def test_a_score_in_the_log_of_an_algorithm_that_trains_an_agent_is_a_reward() -> None:
    for stream, measure in (("a2c_history", Measure.REWARD), ("history", Measure.METRIC)):
        scores = replace(_rising("scores"), stream=f"{stream}.json")
        assert _outcome(scores).role.measure is measure


def test_a_total_of_both_parts_of_the_data_is_the_loss_and_a_quality_that_falls_with_it_its_term() -> None:
    totals = _falling("train_total"), _falling("val_total")
    outcome = _outcome(*totals, _falling("train_snr"), _falling("val_snr"))
    assert (outcome.tag, outcome.role.kind) == ("val_total", Kind.HELD_OUT_LOSS)
    assert _outcome(*totals, _rising("train_snr"), _rising("val_snr", most=20.0)).tag == "val_snr"
    assert _outcome(_falling("loss"), _series("train_total", *range(20))).tag == "loss"


def test_a_score_beyond_a_hundred_beside_an_error_may_be_a_penalty() -> None:
    score = _series("test_score", 15_000.0, 800.0, 400.0, 350.0)
    error = _series("test_rmse", 40.0, 17.0, 14.0, 13.0)
    assert _outcome(_falling("train_loss"), score, error).tag == "test_rmse"
    assert _outcome(_falling("train_loss"), score).tag == "test_score"


def test_a_series_of_an_unknown_name_is_no_outcome() -> None:
    series = [_falling("whatever")]
    assert outcome_of(series, roles_of(series, {})) is None


WORDS = [
    "loss",
    "val",
    "train",
    "reward",
    "best",
    "total",
    "acc",
    "1",
    "100",
    "mean",
    "_",
    "/",
    ".",
    "#",
    "%",
    "r",
    "l",
    "score",
    "policy",
    "val_loss",
    "epsilon",
]
TAGS = st.text(max_size=8) | st.lists(st.sampled_from(WORDS), max_size=5).map("".join)


@given(st.lists(TAGS, max_size=6, unique=True), st.lists(st.floats(), max_size=6))
def test_any_tags_with_any_values_have_roles(tags: list[str], values: list[float]) -> None:
    series = [_series(tag, *values) for tag in tags]
    outcome = outcome_of(series, roles_of(series, {}))
    assert outcome is None or outcome.tag in tags


@given(st.lists(st.floats(-2, 2) | st.just(math.nan)), st.lists(st.integers(0, 20), max_size=4))
def test_any_cut_gives_the_same_summary(values: list[float], cuts: list[int]) -> None:
    summary = Values()
    for begin, end in pairwise([0, *sorted(cuts), max(20, len(values))]):
        summary = summary.after(np.array(values[begin:end], dtype=float))
    assert summary == Values().after(np.asarray(values, dtype=float))


def test_a_loss_that_is_not_finite_stays_the_outcome() -> None:
    assert _outcome(_series("loss", math.nan, math.nan, math.nan)).tag == "loss"


def test_one_unknown_part_among_known_ones_is_not_the_loss() -> None:
    role = _role("train/dist_focalloss", _falling("train/iou_loss"), _falling("train/dist_focalloss"))
    assert role is not None
    assert role.kind is Kind.PART


def test_a_likelihood_beside_the_loss_is_a_part() -> None:
    assert _outcome(_falling("train_nll"), _falling("train_loss")).tag == "train_loss"


def test_the_accuracy_of_an_evaluation_comes_before_the_reward() -> None:
    assert _outcome(_rising("reward", 40), _rising("eval_accuracy", 8)).tag == "eval_accuracy"


@pytest.mark.parametrize(("unit", "measure"), [("episode", Measure.REWARD), ("epoch", Measure.METRIC)])
def test_the_score_of_an_episode_is_a_reward(unit: str, measure: Measure) -> None:
    score = replace(_rising("score"), unit=unit)
    assert _outcome(score).role.measure is measure


def _in_file(name: str, *values: float) -> Series:
    return Series(f"{name}.csv", name, Values().after(np.asarray(values, dtype=float)))


@pytest.mark.parametrize(
    ("name", "kind", "measure"),
    [
        ("loss_80", Kind.TRAINING_LOSS, Measure.LOSS),
        ("v6.2-se_resnet101-losses", Kind.TRAINING_LOSS, Measure.LOSS),
        ("val_loss_lr0.01", Kind.HELD_OUT_LOSS, Measure.LOSS),
        ("rewards_agent_ppo", Kind.OUTCOME, Measure.REWARD),
        ("2024_run3_val_accuracy", Kind.OUTCOME, Measure.METRIC),
    ],
)
def test_the_name_of_a_file_names_its_only_column(name: str, kind: Kind, measure: Measure) -> None:
    series = _in_file(name, *np.linspace(0.9, 0.2, 20))
    role = roles_of([series], {})[series.key]
    assert (role.kind, role.measure) == (kind, measure)
    assert outcome_of([series], {series.key: role}) is not None


@pytest.mark.parametrize(
    "name",
    ["car-42_jpg.rf.3a49628aee06dc7dae1cc57175510acc", "loss_G", "eps_history", "image_7_r_1", "weights"],
)
def test_the_name_of_a_file_that_tells_no_outcome(name: str) -> None:
    series = _in_file(name, *np.linspace(0.9, 0.2, 20))
    assert outcome_of([series], roles_of([series], {})) is None


def test_a_part_without_a_whole_is_the_loss() -> None:
    mel = (_falling("mel_loss"), _falling("val_mel_loss"))
    assert _outcome(*mel).kind == Kind.HELD_OUT_LOSS
    assert _role("mel_loss", *mel).kind is Kind.TRAINING_LOSS  # type: ignore[union-attr]
    assert _role("kl_loss", _falling("kl_loss")).kind is Kind.PART  # type: ignore[union-attr]
    assert _role("mel_loss", _falling("mel_loss"), _falling("loss")).kind is Kind.PART  # type: ignore[union-attr]


def test_parts_without_a_whole_are_its_terms() -> None:
    parts = (_falling("loss_cls"), _falling("loss_bbox"))
    for series in parts:
        assert Mark.TERM in _role(series.tag, *parts).marks  # type: ignore[union-attr]
    beside = (*parts, _falling("loss"))
    assert Mark.TERM not in _role("loss_cls", *beside).marks  # type: ignore[union-attr]
    tasks = (_falling("cardiac_train_loss"), _falling("surgical_train_loss"))
    assert Mark.TERM not in _role("cardiac_train_loss", *tasks).marks  # type: ignore[union-attr]
    coded = (_falling("loss_vae"), _falling("loss_recon_x"), _rising("loss_kl", most=200.0))
    assert Mark.TERM not in _role("loss_kl", *coded).marks  # type: ignore[union-attr]
    rivals = (_falling("loss_cycle"), _falling("loss_identity"), _falling("g_loss"), _falling("d_loss"))
    assert Mark.TERM not in _role("loss_cycle", *rivals).marks  # type: ignore[union-attr]
    for names in (("dis_loss", "dis_vid_fake"), ("dis_loss", "gp_losses")):
        critic = [_falling(f"loss/{name}") for name in names]
        assert Mark.TERM not in _role(critic[0].tag, *critic).marks  # type: ignore[union-attr]


def test_a_discriminator_alone_is_judged_by_no_loss_of_its_own() -> None:
    for name in ("d_loss_real", "loss_D_fake"):
        assert _role(name, _falling(name)).kind is Kind.INNER  # type: ignore[union-attr]


def test_how_much_a_term_counts_is_no_term() -> None:
    weights = (_series("LossTermWeights/w_recon", *[1.0] * 20), _series("loss_weight_kld", *[0.5] * 20))
    series = (*weights, _falling("loss_recon"), _falling("loss_cls"))
    for weight in weights:
        role = _role(weight.tag, *series)
        assert role is None or Mark.TERM not in role.marks


def test_a_loss_named_after_a_component() -> None:
    assert _outcome(_falling("LOSS TEXTCAT")).tag == "LOSS TEXTCAT"
    assert _role("loss_weight", _falling("loss_weight")) is None


def test_a_return_beside_exploration() -> None:
    assert _outcome(_rising("R", most=200.0), _falling("eps")).tag == "R"
    assert _role("R", _rising("R"), _rising("P")) is None


def test_an_error_counts_where_it_says_on_which_data() -> None:
    assert reading("test error").role is not None
    assert reading("errors").role is None


@pytest.mark.parametrize(
    ("tag", "english"),
    [
        ("训练损失", "train_loss"),
        ("验证准确率", "val_accuracy"),
        ("平均奖励", "mean_reward"),
        ("trainloss", "train_loss"),
        ("BCEloss", "bce_loss"),
        ("valacc", "val_accuracy"),
        ("avgreward", "mean_reward"),
        ("当前训练损失值", "train_loss"),
        ("策略损失", "policy_loss"),
        ("KL散度", "kl_divergence"),
        ("梯度范数", "grad_norm"),
        ("验证困惑度", "val_perplexity"),
        ("平均回复长度", "mean_response_length"),
        ("検証損失", "val_loss"),
        ("정확도", "accuracy"),
        ("pérdida de validación", "val_loss"),
        ("Perte entraînement", "train_loss"),
        ("Recompensa média", "reward"),
        ("RecompensaTotala", "total_reward"),
        ("потери", "loss"),
        ("Genauigkeit", "accuracy"),
    ],
)
def test_words_of_other_languages_and_words_without_a_space(tag: str, english: str) -> None:
    role = reading(english).role
    assert role is not None
    assert reading(tag).role == role


def test_what_evaluators_of_embeddings_and_pipelines_log() -> None:
    for tag in ("cosine_pearson", "cosine-NDCG@10", "cos_sim-MRR@10", "cossim_ap", "ENTS_F", "CATS_SCORE"):
        role = reading(tag).role
        assert role is not None
        assert (role.measure, role.split) == (Measure.METRIC, Split.HELD_OUT)


def test_the_loss_of_a_reward_model_is_no_reward() -> None:
    loss = _falling("Avg Reward Loss")
    assert roles_of([loss], {})[loss.key].kind is Kind.TRAINING_LOSS


def test_the_whole_reward_of_a_group_is_the_outcome() -> None:
    parts = [_rising("reward/format"), _rising("reward/length_mean")]
    whole = _series("reward/total_mean", *(0.5 + step % 5 / 10 for step in range(20)))
    assert _outcome(whole, _falling("loss"), *parts).tag == "reward/total_mean"
    raw = replace(whole, tag="reward/avg_raw_reward")
    assert _outcome(raw, _falling("loss"), *parts).tag == "reward/avg_raw_reward"


def test_the_reward_of_the_task_stands_for_the_whole() -> None:
    parts = [_rising("reward/selected_mean"), _rising("reward/std")]
    assert _outcome(_rising("reward/hard_pass_rate"), *parts).tag == "reward/hard_pass_rate"


def test_an_r_beside_no_length_of_an_episode_is_no_return() -> None:
    assert roles_of([_rising("Overall R")], {}) == {}
