"""What a tag means beside the others of its stream."""

import pytest

from sentinel.detectors.signals import Signal
from sentinel.series.generic_names import fallback
from sentinel.series.tag_context import TagContext
from tests.series.stored import again


def signals(tags: str, **counts: int) -> dict[str, Signal | None]:
    """What the tags mean if each was logged three times, or as often as the counts say."""
    logged = dict.fromkeys(tags.split(), 3) | counts
    company = again(TagContext.from_tags(logged, fallback))
    return {
        tag: meaning.signal if (meaning := company.meaning(tag, fallback)) else None
        for tag in [*logged, "train_loss_step", "train_loss_epoch"]
    }


def test_a_loss_of_epochs_counts_where_that_of_steps_is_absent():
    meaning = signals("train_loss_epoch val_loss")
    assert meaning["train_loss_epoch"] is Signal.LOSS
    assert meaning["train_loss_step"] is None  # should it come later


@pytest.mark.parametrize(("epochs", "counting"), [(3, "train_loss_step"), (6, "train_loss_epoch")])
def test_of_a_pair_the_one_with_far_more_points_counts(epochs: int, counting: str):
    meaning = signals("train_loss_step", train_loss_epoch=epochs)
    assert meaning[counting] is Signal.LOSS
    assert (meaning["train_loss_step"] is None) == (counting == "train_loss_epoch")


def test_the_mean_of_an_evaluation_is_no_pair_of_its_steps():
    assert signals("val_loss_epoch")["val_loss_epoch"] is Signal.EVAL_LOSS
    assert TagContext.from_tags({"val_loss_epoch": 9}, fallback) == TagContext()


def test_a_bare_loss_makes_pairs_needless():
    assert TagContext.from_tags({"train_loss": 3, "train_loss_epoch": 3}, fallback) == TagContext()


@pytest.mark.parametrize(
    "tags",
    [
        "train_loss val_loss accuracy",
        "epoch Train/Loss Test/Loss Acc",
        "mean_reward loss accuracy heldout_violation_rate",
    ],
)
def test_an_accuracy_beside_metrics_that_are_named_for_their_data_is_held_out(tags: str):
    assert Signal.EVAL_ACCURACY in signals(tags).values()


@pytest.mark.parametrize(
    "tags",
    [
        "loss accuracy val_loss val_accuracy",  # Keras
        "loss accuracy val_loss",
        "train_loss accuracy",
        "train_loss train_accuracy val_loss",
        "train_loss batch_accuracy val_loss",
    ],
)
def test_another_accuracy_is_that_of_training_batches(tags: str):
    assert Signal.ACCURACY in signals(tags).values()


def test_an_accuracy_of_each_step_is_no_evaluation():
    assert signals("train_loss val_loss", accuracy=9)["accuracy"] is Signal.ACCURACY


@pytest.mark.parametrize(
    "tags", ["train_loss val_loss accuracy f1", "global_step train_loss mcc tp eval_loss"]
)
def test_a_score_beside_the_losses_of_training_and_evaluation_is_of_held_out_data(tags: str):
    assert Signal.EVAL_SCORE in signals(tags).values()


@pytest.mark.parametrize("tags", ["train_loss f1", "train_loss val_loss train_f1 f1", "val_loss f1"])
def test_another_score_tells_no_part_of_the_data(tags: str):
    assert Signal.EVAL_SCORE not in signals(tags).values()


def test_a_score_of_each_step_is_no_evaluation_either():
    assert signals("train_loss val_loss", f1=9)["f1"] is None


@pytest.mark.parametrize("beside", ["val_mse", "valid_mse val_mae"])
def test_an_error_that_the_evaluation_has_as_well_is_the_loss(beside: str):
    assert signals(f"train_mse {beside}")["train_mse"] is Signal.LOSS


@pytest.mark.parametrize("beside", ["", "val_rmse", "train_loss val_mse", "val_loss"])
def test_another_error_of_the_training_may_be_a_term_of_the_loss(beside: str):
    assert signals(f"train_mse {beside}")["train_mse"] is None
