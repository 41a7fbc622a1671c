"""Progress bars whose description or postfix tells metrics, and that name no epoch."""

import pytest

from sentinel.sources.base import Run
from sentinel.sources.console.log import ConsoleLog
from tests.sources.reader import Reader


def points(path, *texts):
    path.write_text("".join(texts))
    reader = Reader(path)
    run = Run(path, "console", ConsoleLog(path))
    reader.runs = {run.id: run}
    return [(tag, step, float(value)) for tag, step, value in reader.poll().points]


def grown(path, text, cut):
    """The points of a log that grows by so many characters at a time."""
    path.touch()
    reader = Reader(path)
    run = Run(path, "console", ConsoleLog(path))
    reader.runs = {run.id: run}
    for start in range(0, len(text), cut):
        with path.open("a", newline="") as file:
            file.write(text[start : start + cut])
        reader.poll()
    return [(tag, step, float(value)) for tag, step, value in reader.points]


def bar(title, count, total, postfix=""):
    return f"{title}: {100 * count // total:3d}%|###   | {count}/{total} [00:01<00:05, 3.1it/s{postfix}]"


def test_each_state_of_one_bar_is_a_point_at_its_count(tmp_path):
    states = [bar(f"loss: {1 / n:.2f}", 10 * n, 100) for n in (1, 2, 4, 10)]
    found = points(tmp_path / "train.log", "loading\n", "\r".join(states), "\n")
    assert found == [("loss", 10, 1.0), ("loss", 20, 0.5), ("loss", 40, 0.25), ("loss", 100, 0.1)]


def test_of_a_metric_behind_a_bar_the_last_state_counts(tmp_path):
    states = [bar("fitting", n, 4, f", loss={n / 8}") for n in range(1, 5)]
    found = points(tmp_path / "train.log", "\r".join(states[:2]), "\nsaved\n", "\r".join(states), "\n")
    assert found == [("loss", 2, 0.25), ("loss", 4, 0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 7, 64, 10_000])
def test_each_state_of_a_bar_without_a_title_is_a_point(tmp_path, cut):
    """Its shorter sisters are evaluations, of which it does not say so."""

    def drawn(total, loss):
        states = (
            f"{25 * n}%|### | {total * n // 4}/{total} [00:01<00:05, 3.1it/s, loss={loss / n}]"
            for n in range(1, 5)
        )
        return "\r" + "\r".join(states) + "\n"

    text = "".join(drawn(40, 8.0 / epoch) + drawn(8, 9.0) for epoch in (1, 2))
    found = grown(tmp_path / "train.log", text, cut)
    assert found == [("loss", 40 * e + 10 * n, 8.0 / (e + 1) / n) for e in (0, 1) for n in range(1, 5)]


def test_a_next_bar_counts_on_and_an_evaluation_stands_at_the_step_of_the_training(tmp_path):
    epochs = [
        f"{bar(f'train loss: 0.{9 - n}', 4, 4)}\n{bar('Validating', 2, 2, f', loss=0.{n}')}\n"
        for n in (1, 2, 3)
    ]
    found = points(tmp_path / "train.log", *epochs)
    assert [one for one in found if one[0] == "train loss"] == [
        ("train loss", 4, 0.8),
        ("train loss", 8, 0.7),
        ("train loss", 12, 0.6),
    ]
    assert [one for one in found if one[0] != "train loss"] == [
        ("validating/loss", 4, 0.1),
        ("validating/loss", 8, 0.2),
        ("validating/loss", 12, 0.3),
    ]


def test_a_full_bar_that_is_drawn_again_is_the_same_bar(tmp_path):
    first = bar("loss: 0.50", 3, 4)
    second = bar("loss: 0.25", 4, 4)
    found = points(tmp_path / "train.log", f"{first}\r{second}\nsaved\n{second}\n")
    assert {(step, value) for _, step, value in found} == {(3, 0.5), (4, 0.25)}


def test_a_bar_without_a_metric_tells_none(tmp_path):
    bars = [bar("Downloading", n, 4, ", 2.1MB/s") for n in range(1, 5)]
    assert points(tmp_path / "train.log", "\r".join(bars), "\n") == []


@pytest.mark.parametrize("cut", [7, 10_000])
def test_what_a_rank_prints_behind_the_bar_of_another_is_of_that_rank(tmp_path, cut):
    """As torchrun's ``--tee`` prints it, which takes the carriage return of a bar for the end of a line."""
    lines = []
    for step in range(4):
        drawn = f"[default0]: {25 * step}%|###   | {step}/4 [00:01<00:05, 3.1it/s]"
        lines += [
            "[default0]:",
            f"{drawn}[default0]:step {step} loss {1 + step}.5",
            f"{drawn}[default1]:step {step} loss {5 + step}.5",
        ]
    path = tmp_path / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    by_rank = {}
    for chunk in (chunk for batch in [ConsoleLog(path).poll({}, 1000)] for chunk in batch.chunks):
        by_rank[chunk.stream] = [float(value) for value in chunk.value]
    assert sorted(by_rank.values()) == [[1.5, 2.5, 3.5, 4.5], [5.5, 6.5, 7.5, 8.5]]
    assert len(grown(tmp_path / "grown.log", path.read_text(), cut)) == 8


def test_bars_of_one_title_are_told_apart_by_their_totals(tmp_path):
    """As where the bar of the validation has the title of that of the training: "Epoch 3/40"."""
    lines = []
    for epoch in range(1, 4):
        lines += [f"Epoch {epoch}/3: 100%|###| 9/9 [00:40<00:00, 2.2it/s, total_loss=0.{9 - epoch}]"]
        lines += [f"Epoch {epoch}/3: 100%|###| 4/4 [00:04<00:00, 2.2it/s, val_loss=0.{8 - epoch}]"]
        lines += [f"Epoch:{epoch}/3", f"Total Loss: 0.{9 - epoch} || Val Loss: 0.{8 - epoch}"]
    found = points(tmp_path / "train.log", "\n".join(lines), "\n")
    for name in ("total_loss", "Total Loss"):
        assert [(step, value) for tag, step, value in found if tag == name] == [(1, 0.8), (2, 0.7), (3, 0.6)]
    for name in ("val_loss", "Val Loss"):
        assert [(step, value) for tag, step, value in found if tag == name] == [(1, 0.7), (2, 0.6), (3, 0.5)]
