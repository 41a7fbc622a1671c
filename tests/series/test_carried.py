"""Which evaluations are new and which ones rows of batches carry along, and that no cut changes it."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sentinel
from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.carried import Carried
from tests.series.stored import again

TAGS = {
    "epoch": Signal.EPOCH,
    "train_loss": Signal.LOSS,
    "val_loss": Signal.EVAL_LOSS,
    "val_acc": Signal.EVAL_ACCURACY,
}
BATCHES = 4  # rows of an epoch
ROWS = 5 * BATCHES
EPOCH = np.arange(ROWS) // BATCHES
FALLING = np.linspace(3.0, 1.0, ROWS)
LAST = 2.0 - 0.1 * EPOCH  # the evaluation before each epoch
RESTING = np.full(ROWS, 2.0)


def kept(columns: Sequence[Iterable[float]], cuts: Iterable[int] = ()) -> dict[str, list[int]]:
    """The steps of the points that are kept of each tag, if the rows hold these columns in the order of
    `TAGS` and come in pieces that are cut before these points.
    """
    table = np.array([*columns], float).T
    names = [*TAGS][: table.shape[1]]
    points = [
        (step, tag, value) for step, row in enumerate(table) for tag, value in zip(names, row, strict=True)
    ]
    carried = Carried()
    steps: dict[str, list[int]] = {name: [] for name in names}
    for part in np.split(np.arange(len(points)), [*cuts]):
        arrived = []
        for tag in names:
            at = [index for index in part if points[index][1] == tag]
            step = np.array([points[index][0] for index in at], np.int64)
            value = np.array([points[index][2] for index in at], float)
            if at:
                arrived.append(Points(tag, TAGS[tag], step, step.astype(float), np.array(at), value))
        for one in carried.without(arrived):
            steps[one.tag] += one.step.tolist()
        carried = again(carried)
    return steps


def test_an_evaluation_that_rows_of_batches_repeat_counts_once():
    assert kept([EPOCH, FALLING, LAST, 1 - LAST / 3])["val_loss"] == [0, 4, 8, 12, 16]


def test_the_metrics_beside_it_are_as_old():
    steps = kept([EPOCH, FALLING, LAST, 1 - LAST / 3])
    assert steps["val_acc"] == steps["val_loss"]
    assert steps["train_loss"] == [*range(ROWS)]


def test_one_that_really_rests_counts_once_an_epoch():
    assert kept([EPOCH, FALLING, RESTING])["val_loss"] == [0, 4, 8, 12, 16]


@pytest.mark.parametrize(
    "columns",
    [
        [np.arange(ROWS), FALLING, RESTING],  # each row is an epoch
        [EPOCH, RESTING, RESTING],  # nothing moves: the weights are frozen
        [EPOCH, FALLING, LAST - 0.01 * np.arange(ROWS)],  # it is measured in each row
    ],
    ids=["epochs", "frozen", "measured"],
)
def test_others_all_count(columns):
    assert kept(columns)["val_loss"] == [*range(ROWS)]


def test_an_accuracy_that_rests_beside_a_loss_that_moves_counts():
    moves = LAST - 0.01 * np.arange(ROWS)
    assert kept([EPOCH, FALLING, moves, RESTING])["val_acc"] == [*range(ROWS)]


@given(st.sets(st.integers(1, len(TAGS) * ROWS - 1)))
def test_no_cut_changes_what_is_kept(cuts):
    columns = [EPOCH, FALLING, LAST, 1 - LAST / 3]
    assert kept(columns, sorted(cuts)) == kept(columns)


def incidents(directory, lines):
    """What is told of the only run of a console."""
    (directory / "train.log").write_text("".join(lines))
    (run,) = sentinel.replay(directory).runs
    return run.incidents


def test_lines_that_print_it_once_there_is_one_are_of_one_stream(tmp_path):
    lines = []
    last = ""
    for epoch in range(12):
        for batch in range(0, 100, 5):
            loss = 2.3 * 0.85 ** (epoch + batch / 100) + 0.1
            lines.append(f"epoch {epoch} iter {batch}/100 | loss {loss:.4f}{last}\n")
        last = f" | val_loss {2.2 * 0.87**epoch + 0.2:.4f}"
    assert incidents(tmp_path, lines) == []


def test_a_progress_bar_that_shows_the_last_evaluation_is_not_told(tmp_path):
    lines = []
    last = ""
    for epoch in range(12):
        for batch in range(0, 101, 10):
            loss = 2.3 * 0.85 ** (epoch + batch / 100) + 0.1
            bar = f"{batch:3d}%|{'#' * (batch // 10):10s}| {batch}/100 [00:02<00:08,  5.00it/s"
            lines.append(f"Epoch {epoch}: {bar}, v_num=0, train_loss={loss:.3f}{last}]\n")
        held_out = 2.2 * 0.87**epoch + 0.2
        last = f", val_loss={held_out:.3f}, val_acc={1 - held_out / 3:.3f}"
    assert incidents(tmp_path, lines) == []


@given(
    st.lists(st.integers(0, 1), min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=6).map(sorted)
)
def test_no_cut_changes_what_is_kept_of_a_loss_without_evaluations(rises, cuts):
    """Of repeated steps the first row counts, wherever a piece begins."""
    step = np.cumsum(rises)
    at = np.arange(len(step))
    losses = Points("train_loss", Signal.LOSS, step, step.astype(float), at, at.astype(float))
    whole, cut = Carried(), Carried()
    whole.without([losses])
    for part in np.split(at, cuts):
        cut.without([losses.take(part)] if len(part) else [])
    kept_rows = [carried.recent["train_loss"].value.tolist() for carried in (whole, cut)]
    assert kept_rows[0] == kept_rows[1] == at[np.diff(step, prepend=-1) > 0][-3:].tolist()
