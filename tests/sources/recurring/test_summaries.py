"""Summaries of evaluations whose numbers stand apart from their names, and bars of a part of the data."""

import pytest

from sentinel.sources.recurring.lines import RecurringLines
from sentinel.sources.recurring.summaries import Summaries
from tests.sources.reader import Reader
from tests.sources.recurring.restarting import rows_after_restarts

EPOCHS = 12


def precision(epoch):
    return round(0.1 + epoch / 50, 4)


def coco(epoch):
    yield f"Epoch: [{epoch}]  [99/100]  eta: 0:00:00  lr: 0.005  loss: 1.{epoch:02} (1.2)  max mem: 3000"
    yield "IoU metric: bbox"
    for overlap, value in (("0.50:0.95", precision(epoch)), ("0.50     ", 0.5)):
        yield f" Average Precision  (AP) @[ IoU={overlap} | area=   all | maxDets=100 ] = {value}"
    yield " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000"


def detectron2(epoch):
    stamp = f"[01/01 12:00:{epoch:02}"
    yield f"{stamp} d2.utils.events]:  eta: 0:10:00  iter: {epoch * 20 + 19}  total_loss: 1.{epoch:02}"
    for text in ("Task: bbox", "AP,AP50,APs", f"{precision(epoch)},58.9,nan"):
        yield f"{stamp} d2.evaluation.testing]: copypaste: {text}"


def mmsegmentation(epoch):
    stamp = "2021-06-01 10:00:00,123 - mmseg - INFO"
    yield f"{stamp} - Iter [{epoch * 50 + 50}/40000]\tlr: 9.9e-03, loss: 1.{epoch:02}"
    yield "+-------+-------+-------+"
    yield "|  aAcc |  mIoU |  mAcc |"
    yield "+-------+-------+-------+"
    yield f"| 80.25 | {precision(epoch)} | 50.75 |"


@pytest.mark.parametrize(
    ("program", "name"), [(coco, "bbox_mAP"), (detectron2, "bbox_AP"), (mmsegmentation, "mIoU")]
)
def test_the_numbers_of_a_summary_have_its_names(program, name, tmp_path):
    lines = [line for epoch in range(EPOCHS) for line in program(epoch)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reader = Reader(tmp_path).poll(limit=7).flush()
    summarised = [(step, value) for tag, step, value in reader.points if tag == name]
    assert [value for _, value in summarised] == [str(precision(epoch)) for epoch in range(EPOCHS)]
    assert len({step for step, _ in summarised}) == EPOCHS


@pytest.mark.parametrize("program", [coco, detectron2, mmsegmentation])
def test_what_the_lines_above_said_is_known_after_a_restart(program):
    lines = [f"{line}\n".encode() for epoch in range(EPOCHS) for line in program(epoch)]
    rows = RecurringLines("train").read(b"".join(lines))
    piecewise = rows_after_restarts(lines)
    assert [*map(repr, piecewise)] == [*map(repr, rows)]


def test_bars_of_training_and_of_held_out_data_are_told_apart(tmp_path):
    bars = [
        f"{part}: 100%|██████████| 12/12 [00:05<00:00,  2.1it/s, dice_loss - 0.{epoch + 20},"
        f" iou_score - 0.{50 + epoch}]"
        for epoch in range(EPOCHS)
        for part in ("train", "valid")
    ]
    lines = [f"\nEpoch: {at // 2}\n{bar}" if at % 2 == 0 else bar for at, bar in enumerate(bars)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tags = [tag for tag, _, _ in Reader(tmp_path).poll().flush().points]
    assert tags.count("valid iou_score") == EPOCHS


@pytest.mark.parametrize(
    "line",
    ["| a | b | c |", "| 1 | 2 | 3 |", "copypaste: 1,2,3", "| Class | IoU | Acc |", "|||||", "copypaste: "],
)
def test_numbers_without_names_stay_as_they_are(line):
    assert Summaries({}).read(line) == line
