"""Rows of a trainer whose steps only a progress bar tells."""

from pathlib import Path

import pytest

from sentinel.sources.console.bars import redrawn
from tests.sources.reader import Reader


def read(path: Path, text: str) -> list[tuple[int, str]]:
    """The step and the loss of each row of a training."""
    path.write_text(text)
    return [(step, value) for tag, step, value in Reader(path).poll().points if tag == "loss"]


def bar(count: int, total: int = 1860) -> str:
    return f"\r{100 * count // total:3d}%|███       | {count}/{total} [00:10<00:20,  3.0it/s]"


def rows(steps: range, of_epoch: int) -> str:
    return "".join(
        f"{{'loss': {step / 1000}, 'learning_rate': 1e-05, 'epoch': {step / of_epoch:.2f}}}\n"
        for step in steps
    )


@pytest.mark.slow
@pytest.mark.parametrize("stride", [10, 25])
def test_rows_that_a_buffer_held_have_the_steps_of_their_epochs(tmp_path, stride):
    """As nohup leaves them: all rows of an epoch come at its end."""
    text = ""
    for epoch in (1, 2, 3):
        steps = range(stride * (620 * (epoch - 1) // stride + 1), 620 * epoch + 1, stride)
        text += "".join(map(bar, range(620 * (epoch - 1), 620 * epoch + 1, 5))) + rows(steps, 620)
        text += bar(7, 20) + bar(20, 20) + "\n"
    found = read(tmp_path / "train.log", text + bar(1860) + "\n")
    assert found == [(step, str(step / 1000)) for step in range(stride, 1861, stride)]


def test_a_row_whose_line_break_lies_in_a_buffer_is_read(tmp_path):
    first, second = rows(range(10, 30, 10), 20).splitlines()
    text = bar(10, 40) + "\n" + first + bar(20, 40) + "\n" + second + "\n" + bar(20, 40)
    assert [value for _, value in read(tmp_path / "train.log", text)] == ["0.01", "0.02"]


def test_of_bars_between_two_rows_the_first_and_the_last_tell_the_steps(tmp_path):
    first, second = rows(range(10, 30, 10), 100).splitlines(keepends=True)
    bars = [f"{bar(count, 100)}\n" for count in (5, 10, 14, 18, 20)]
    text = bars[0] + first + "".join(bars[1:]) + second + "saved\n"
    assert redrawn(text.split("\n"), range(8)) == {3, 4}
    assert read(tmp_path / "train.log", text) == [(10, "0.01"), (20, "0.02")]


def test_epochs_that_are_rounded_alike_leave_the_distance_of_the_rows(tmp_path):
    row = "{{'loss': {}, 'num_tokens': 5.0, 'epoch': 0.0}}\n"
    text = bar(40, 200) + "\n" + "".join(row.format(n) for n in range(7)) + bar(41, 200) + "\n"
    assert [step for step, _ in read(tmp_path / "train.log", text)] == [5, 10, 15, 20, 25, 30, 35]


def test_the_summary_tells_how_long_an_epoch_is(tmp_path):
    text = bar(11250, 22500) + bar(206, 250) + "\n" + rows(range(500, 22501, 500), 2250)
    summary = "{'train_runtime': 7502.2, 'train_loss': 3.6, 'epoch': 10.0}"
    found = read(tmp_path / "train.log", text + "\n" + summary)
    assert [step for step, _ in found] == [*range(500, 22501, 500)]


@pytest.mark.slow
def test_the_last_row_is_read_before_its_bar_is_complete(tmp_path):
    text = "".join(
        f"{bar(n, 10)}\r      \r{{'loss': {loss}, 'epoch': 0.{n}}}\n{bar(n, 10)}"
        for n, loss in ((2, 1.0), (4, 2.0), (6, "nan"))
    )
    expected = [(2, "1.0"), (4, "2.0"), (6, "nan")]
    assert read(tmp_path / "train.log", text) == expected
    assert read(tmp_path / "train.log", text[: text.rfind(" [00")] + " [") == expected


def test_the_bar_of_an_evaluation_that_begins_is_no_step(tmp_path):
    text = "".join(f"{bar(n, 650)}\n{{'loss': 2.{n}}}\n{bar(0, 7)}{bar(7, 7)}\n" for n in (13, 26))
    assert read(tmp_path / "train.log", text.replace("}", ", 'epoch': 0.75}")) == [(13, "2.13"), (26, "2.26")]


def test_an_evaluation_that_came_with_other_rows_stands_at_its_epoch(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        bar(30, 60) + "\n" + rows(range(5, 21, 5), 20) + "{'eval_loss': 1.5, 'epoch': 1.0}\n"
        + rows(range(25, 31, 5), 20) + bar(30, 60) + "\n"
    )  # fmt: skip
    assert ("eval_loss", 20, "1.5") in Reader(path).poll().points


def test_an_evaluation_that_tells_the_epoch_of_the_row_before_it_has_its_step(tmp_path):
    """Step 100 of 705 rounds to epoch 0.14, which would be step 99: as if the training had gone back."""
    evaluation = "{{'eval_loss': 0.3, 'eval_runtime': 3.0, 'epoch': {:.2f}}}\n"
    text = bar(100, 2115) + rows(range(10, 101, 10), 705) + "saved\n"
    text += bar(200, 2115) + evaluation.format(100 / 705) + rows(range(110, 201, 10), 705) + "saved\n"
    text += bar(300, 2115) + evaluation.format(200 / 705) + rows(range(210, 301, 10), 705) + "saved\n"
    (tmp_path / "train.log").write_text(text)
    points = Reader(tmp_path / "train.log").poll().points
    assert [step for tag, step, _ in points if tag == "eval_loss"] == [100, 200]


def test_a_line_among_rows_that_a_buffer_held_does_not_move_them(tmp_path):
    """A callback prints every tenth step, and the bar is ahead of the rows above its line."""
    row = "{{'loss': {}, 'num_tokens': 5.0, 'epoch': {:.2f}}}\n"
    text = ""
    for last in range(8, 81, 8):
        text += "".join(map(bar, range(last - 8, last + 1))) + "\n"
        for step in range(last - 7, last + 1):
            text += row.format(step / 1000, step / 290)
            text += f"[Step   {step}] OK, reward=-3.052  beta=0.1000\n" if step % 10 == 0 else ""
    found = read(tmp_path / "train.log", text + bar(80) + "\n")
    assert found == [(step, str(step / 1000)) for step in range(1, 81)]
