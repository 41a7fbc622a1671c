"""Epochs that begin again tell of another training where the steps go on."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sentinel
from sentinel.detectors.signals import Signal
from sentinel.series.attempts import MAX_TOLD_ATTEMPTS, Attempts
from sentinel.sources.base import Chunk
from tests.series.stored import again

NAN = float("nan")


SIGNALS = {"epoch": Signal.EPOCH, "loss": Signal.LOSS}


def fell(epochs):
    """A loss that falls with the epochs."""
    return [2.0 - 0.2 * epoch for epoch in epochs]


def split(epochs, losses, *ends):
    """The number and the first step of each attempt, and whether it may go on with the one before, if a log
    whose steps go on comes in pieces.
    """
    found = Attempts()
    first = {}
    for begin, end in pairwise([0, *ends, len(epochs)]):
        steps = np.arange(begin, end)
        values = np.column_stack([epochs[begin:end], losses[begin:end]]).astype(float)
        chunk = Chunk.of_rows("s", [*SIGNALS], steps, np.full(len(steps), NAN), values, False).flat
        for number, part in found.split(chunk, np.array([True, True]), [*SIGNALS.values()]):
            first.setdefault(number, (int(chunk.step[part][0]), found.goes_on))
        found = again(found)
    return [(number, *of) for number, of in first.items()]


def test_each_fold_of_a_run_is_a_training_of_its_own():
    folds = [*range(5), *range(5), *range(5)]
    assert split(folds, fell(folds)) == [(1, 0, True), (2, 5, False), (3, 10, False)]


def test_fractions_of_epochs_begin_again_too():
    epochs = [0.5, 1.0, 2.0, 4.0, 0.5, 1.0]
    assert split(epochs, fell(epochs)) == [(1, 0, True), (2, 4, False)]


@pytest.mark.parametrize(
    "epochs",
    [
        [1, 1, 1, 2, 2, 2, 3, 3, 3],
        [0, 1, 2, 0, 1, 2, 0, 1, 2],  # too few to tell
        [3, 4, 5, 6, 7, 5, 6, 7],  # not back at the begin
        [0, 1, 2, NAN, 3],
    ],
)
def test_other_epochs_tell_no_attempt(epochs):
    assert split(epochs, fell(np.nan_to_num(epochs))) == [(1, 0, True)]


def test_a_resume_that_counts_its_epochs_anew_goes_on_with_its_loss():
    epochs = [*range(6), *range(6)]
    assert split(epochs, fell(range(12))) == [(1, 0, True)]


def test_epochs_that_begin_again_and_again_are_not_believed():
    epochs = [*range(4)] * 20
    assert len(split(epochs, fell(epochs))) == MAX_TOLD_ATTEMPTS


CONTINUES = "continues"
NEW = "new"


def kinds(losses, begins, first_step=0):
    """What each attempt of a log whose steps begin again is to the one before: it continues its loss, or is
    new, or it cannot be told.
    """
    found = Attempts()
    told = {}
    for losses_of_attempt in np.split(np.array(losses, dtype=float), begins):
        steps = np.arange(len(losses_of_attempt)) + (first_step if told else 0)
        values = losses_of_attempt[:, None]
        chunk = Chunk.of_rows("s", ["loss"], steps, np.full(len(steps), NAN), values, False).flat
        for number, _ in found.split(chunk, np.array([True]), [Signal.LOSS]):
            told[number] = CONTINUES if found.continues else "" if found.goes_on else NEW
        found = again(found)
    return [*told.values()]


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([9, 8, 7, 6, 5, 5, 5, 5, 5], ["", CONTINUES, CONTINUES]),  # steps count the batches of an epoch
        ([9.0, 8.9, 8.8, 8.7, 8.6, 8.5, 8.1, 8.0, 8.0], ["", "", ""]),  # too little to tell, so far
        ([9.0, 8.9, 8.8, 8.7, 8.6, 8.5, 8.1, 8.0, 7.9, 7.9, 7.9, 7.9], ["", "", "", CONTINUES]),
        ([9, 7, 5, 9, 7, 5, 9, 7, 5], ["", NEW, NEW]),  # folds
        ([9, 9, 9, 9, 9, 9], ["", ""]),  # nothing was learned
        ([9.0, 8.8, 8.9, 9.1, 8.7, 8.9], ["", ""]),  # nor here: the scatter of batches
        ([9.0, 8.8, 8.9, 9.9, 9.8, 9.9], ["", NEW]),  # where no batch has been
        ([1, -1, -3, -3, -3, -3], ["", CONTINUES]),
        ([9, 7, 5, 0, 0, 0], ["", ""]),  # a loss of exactly 0 goes on with nothing
    ],
)
def test_an_attempt_goes_on_with_a_loss_that_had_fallen_or_begins_with_its_first(losses, expected):
    assert kinds(losses, range(3, len(losses), 3)) == expected


def test_a_loss_that_is_back_while_the_steps_go_on_lost_its_weights_at_a_resume():
    assert kinds([9, 7, 5, 9, 7, 5], [3], first_step=1) == ["", ""]


def test_the_row_of_a_restart_is_whole_in_whatever_order_a_chunk_has_its_tags():
    values = np.array([9.0, 2.0, 8.0, 1.0, 9.1, 1.1])
    for tags in (["train", "val"], ["val", "train"]):
        tag = np.array([tags.index(name) for name in ("train", "val") * 3], np.uint32)
        chunk = Chunk("s", tags, tag, np.array([0, 0, 1, 1, 0, 0]), np.full(6, NAN), values)
        found = Attempts()
        assert [n for n, _ in found.split(chunk, np.ones(2, bool), [Signal.LOSS, Signal.EVAL_LOSS])] == [1, 2]
        assert found.goes_on, "one loss is back, the other one stays where it was"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=40), st.data())
def test_the_attempts_do_not_depend_on_how_the_log_is_cut(rows, data):
    epochs, losses = zip(*rows, strict=True)
    cuts = data.draw(st.sets(st.integers(1, len(rows) - 1)))
    assert split(epochs, losses, *sorted(cuts)) == split(epochs, losses)


@pytest.mark.slow  # replays a log
@pytest.mark.parametrize("tags", [("epoch", "train_loss", "val_loss"), ("train_loss", "val_loss", "epoch")])
def test_the_folds_of_one_run_are_not_compared(tmp_path, tags):
    random = np.random.default_rng(2)
    rows = []
    for _ in range(4):
        for epoch in range(20):
            train = 0.2 + 1.5 * np.exp(-epoch / 6) + random.normal(0, 0.01)
            row = {"epoch": epoch, "train_loss": train, "val_loss": 1.1 * train}
            rows.append(json.dumps({"_step": len(rows), **{tag: row[tag] for tag in tags}}))
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(rows) + "\n")
    (run,) = sentinel.replay(path).runs
    assert run.attempts == 4
    assert [one.detector for one in run.incidents if one.severity != "info"] == []


@pytest.mark.slow  # replays a log
@pytest.mark.parametrize("has_epochs", [True, False])
def test_steps_that_count_the_batches_of_an_epoch_page_nobody(tmp_path, has_epochs):
    losses = 0.45 + 0.24 * np.exp(-np.arange(900) / 90)
    losses *= 1 + np.random.default_rng(4).normal(0, 0.01, 900)
    path = tmp_path / "metrics.jsonl"
    with path.open("w") as file:
        for batch, loss in enumerate(losses.tolist()):
            epoch = {"epoch": batch // 60} if has_epochs else {}
            print(json.dumps({**epoch, "step": batch % 60, "loss": loss}), file=file)
    (run,) = sentinel.replay(path).runs
    assert [one.detector for one in run.incidents] == []
