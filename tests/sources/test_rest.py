"""What a log tells when it is over: its last line without a line break, and what waited for more."""

import json
from pathlib import Path

import pytest

from sentinel.api import replay
from sentinel.sources.base import Chunk, flush
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader


def left(place: Path) -> list[tuple[str, int, float]]:
    """The tag, the step and the value of each point that the end of the log makes sure."""
    read = Reader(place).poll()
    found = list[Chunk]()
    for run in read.runs.values():
        found += flush(run.source, json.loads(read.cursors[run.id]))
    return [
        (chunk.tags[tag], step, value)
        for chunk in found
        for tag, step, value in zip(
            chunk.tag.tolist(), chunk.step.tolist(), chunk.value.tolist(), strict=True
        )
    ]


def bar(count: int, total: int, title: str = "") -> str:
    return f"{title}{100 * count // total:3d}%|###   | {count}/{total} [00:10<00:20,  3.0it/s]"


LAST_LINES = {
    "train.log": ("step {n} loss 0.{n}", [("loss", 9, 0.9)]),
    "metrics.csv": ("{n},0.{n}", [("loss", 9, 0.9)]),
    "log.tsv": ("{n}\t0.{n}", [("loss", 9, 0.9)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAST_LINES)
def test_a_last_line_without_a_line_break_is_read_at_the_end(tmp_path, name):
    line, expected = LAST_LINES[name]
    header = {"csv": ["step,loss"], "tsv": ["step\tloss"]}.get(name[-3:], [])
    path = tmp_path / name
    path.write_text("\n".join([*header, *(line.format(n=n) for n in range(1, 10))]))
    assert left(tmp_path) == expected
    path.write_text(path.read_text() + "\n")
    assert left(tmp_path) == []


@pytest.mark.slow
def test_reports_hold_the_last_line(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("\n".join(f"step {n} loss {3 / n:.3f}" for n in range(1, 41)))
    found = replay(path)
    assert (found.runs[0].points, found.runs[0].last_step) == (40, 40)
    assert found.points()["step"].max() == 40


@pytest.mark.parametrize("name", ["train.log", "metrics.csv"])
def test_a_line_that_the_end_of_a_block_cut_is_torn(tmp_path, name):
    line, _ = LAST_LINES[name]
    text = ("step,loss\n" if name.endswith("csv") else "") + "".join(
        f"{line.format(n=n)}{'0' * 40}\n" for n in range(1, 200)
    )
    (tmp_path / name).write_text(text[:4096])
    assert not text[:4096].endswith("\n")
    assert left(tmp_path) == []


def test_one_file_for_each_metric(tmp_path):
    place = tmp_path / "dvclive" / "plots" / "metrics"
    place.mkdir(parents=True)
    (place / "loss.tsv").write_text("step\tloss\n" + "\n".join(f"{n}\t0.{n}" for n in range(1, 10)))
    assert left(tmp_path) == [("loss", 9, 0.9)]


def test_buffered_rows_at_the_end_of_a_log_that_no_bar_follows(tmp_path):
    """As nohup leaves them when a run is stopped: the bars stand there, and then all rows come at once."""
    row = "{{'loss': 0.{n}, 'learning_rate': 1e-05, 'epoch': {epoch:.2f}}}\n"
    rows = [row.format(n=n, epoch=n / 8) for n in range(1, 7)]
    bars = "\r".join(bar(n, 160) for n in range(61))
    (tmp_path / "nohup.out").write_text(bars + "\n" + "".join(rows))
    assert [(step, value) for tag, step, value in left(tmp_path) if tag == "loss"] == [
        (10 * n, n / 10) for n in range(1, 7)
    ]


def test_a_last_state_of_a_bar_that_shows_metrics(tmp_path):
    states = [bar(n, 4, f"loss: 0.{n}: ") for n in range(1, 5)]
    (tmp_path / "train.log").write_text("step 1 loss 1\nstep 2 loss 0.5\n" + "\r".join(states))
    assert ("loss by part", 4, 0.4) in left(tmp_path)


@pytest.mark.slow
def test_the_state_of_a_bar_of_batches_counts_when_the_epoch_is_over(tmp_path):
    def epoch(number: int, counts: range) -> str:
        state = "Epoch {e}: {p}%|##| {n}/8 [00:01<00:03, 1.0it/s, train_loss=0.{n}{e}]"
        return "\r".join(state.format(e=number, n=n, p=n * 100 // 8) for n in counts)

    path = tmp_path / "train.log"
    before = "\n".join(epoch(number, range(1, 9)) for number in range(3)) + "\n"
    path.write_text(before + epoch(3, range(1, 9)))
    assert left(tmp_path)[0] == ("train_loss", 3, 0.83)
    path.write_text(before + epoch(3, range(1, 6)))
    assert left(tmp_path) == []


def test_a_poll_after_the_end_reads_the_line_when_it_is_whole(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {n} loss 0.5\n" for n in range(1, 9)) + "step 9 loss 2.1")
    read = Reader(path).poll()
    (run,) = discover([path]).runs
    assert [chunk.value.tolist() for chunk in flush(run.source, json.loads(read.cursors[run.id]))] == [[2.1]]
    with path.open("a") as log:
        log.write("5\n")
    assert read.poll().points[-1] == ("loss", 9, "2.15")
