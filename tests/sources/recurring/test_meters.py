"""Evaluations that print the mean so far in parentheses, as PyTorch's examples, Swin and timm do."""

import pytest

from sentinel.sources.recurring.lines import RecurringLines
from sentinel.sources.recurring.meters import Meters
from tests.sources.reader import Reader
from tests.sources.recurring.restarting import rows_after_restarts

EPOCHS = 12


def accuracy(epoch):
    return 20.0 + 4 * epoch


def imagenet(epoch):
    yield from (
        f"Epoch: [{epoch}][{batch:3}/391]\tTime  0.1 ( 0.2)"
        f"\tLoss 1.{epoch:02}e+00 (1.2e+00)\tAcc@1  9.00 ( 9.00)"
        for batch in (0, 200)
    )
    for batch, value in ((0, 99.0), (50, 3.0)):  # sorted by class
        yield f"Test: [{batch:2}/79]\tLoss 1.3e+00 (1.3e+00)\tAcc@1  {value:.2f} ( {value:.2f})"
    yield f" *   Acc@1 {accuracy(epoch):.3f} Acc@5 80.000"


def swin(epoch):
    stamp = "[2021-07-01 10:00:00 swin_tiny]"
    yield from (
        f"{stamp}(main.py 226): INFO Train: [{epoch}/300][{batch}/1251]\teta 0:05:00 lr 0.000001"
        f"\tloss 1.{epoch:02} (1.2)\tmem 1000MB"
        for batch in (0, 600, 1250)
    )
    yield f"{stamp}(main.py 277): INFO Test: [0/98]\tTime 0.1 (0.1)\tLoss 0.9 (0.9)\tAcc@1 99.000 (99.000)"
    yield f"{stamp}(main.py 284): INFO  * Acc@1 {accuracy(epoch):.3f} Acc@5 90.123"


def timm(epoch):
    yield from (
        f"Train: {epoch} [{batch:4}/1251 ({batch * 100 // 1251:3}%)]  Loss: 1.{epoch:02} (1.2)  Time: 0.400s,"
        "  640.00/s  (0.410s,  620.00/s)  LR: 1.000e-03  Data: 0.010 (0.012)"
        for batch in (0, 600, 1250)
    )
    for batch, value in ((0, 99.0), (48, 3.0)):
        yield (
            f"Test: [{batch:4}/48]  Time: 0.100 (0.200)  Loss:   0.900 ( 0.900)"
            f"  Acc@1: {value:7.3f} ({accuracy(epoch):7.3f})"
        )


def torchvision(epoch):
    yield from (
        f"Epoch: [{epoch}]  [{batch:3}/391]  eta: 0:10:00  lr: 0.1  loss: 1.{epoch:02} (1.2)  max mem: 5000"
        for batch in (0, 390)
    )
    for batch, value in ((0, 99.0), (52, 3.0)):
        yield (
            f"Test:  [{batch:2}/53]  eta: 0:00:00  loss: 0.9 (0.9)"
            f"  acc@1: {value:.4f} ({accuracy(epoch):.4f})  max mem: 5000"
        )


@pytest.mark.parametrize("program", [imagenet, swin, timm, torchvision])
def test_an_evaluation_is_one_point_an_epoch(program, tmp_path):
    lines = [line for epoch in range(EPOCHS) for line in program(epoch)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reader = Reader(tmp_path).poll(limit=7).flush()
    evaluated = [(step, value) for tag, step, value in reader.points if tag.lower() == "test acc@1"]
    assert [value for _, value in evaluated] == [str(accuracy(epoch)) for epoch in range(EPOCHS)]
    assert [step for step, _ in evaluated] == sorted({step for step, _ in evaluated})
    losses = [value for tag, _, value in reader.points if tag.lower() == "loss"]
    assert len(losses) >= 2 * EPOCHS - 1


def test_the_evaluation_is_known_after_a_restart():
    lines = [f"{line}\n".encode() for epoch in range(EPOCHS) for line in imagenet(epoch)]
    whole = RecurringLines("train")
    rows = whole.read(b"".join(lines))
    piecewise = rows_after_restarts(lines)
    assert piecewise == rows


@pytest.mark.parametrize(
    "line",
    [
        "Test: [3/79] accuracy 0.5",
        "test: 0.5 (0.6)",
        "Test: [1, 2] loss 0.5 (0.4)",
        "best test [3/5] * loss 0.1",
    ],
)
def test_other_lines_stay_as_they_are(line):
    assert Meters().read(line) == line
