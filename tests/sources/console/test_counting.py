"""Lines that tell their step in other words, only within an epoch, or not at all."""

import random
from pathlib import Path

import pytest

from sentinel.sources.console.lines import parse
from sentinel.sources.console.log import ConsoleLog
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader

STEPS = {
    "INFO step 20: loss 0.5": 20,
    "2026-11-03 10:00:00 | INFO | step 20 | loss 0.5": 20,
    "2026-11-03 10:00:00.123 | INFO     | __main__:train:42 - step 20 | loss 0.5": 20,
    "I1103 10:00:00.123456 12345 train.py:55] [20] loss=0.5": 20,
    "I1103 10:00:00.123456 123 solver.cpp:228] Iteration 20, loss = 0.5": 20,
    "it 20: loss 0.5 (12.1ms)": 20,
    "Iter-20; loss: 0.5": 20,
    "step 20 -> loss 0.5": 20,
    "(step 20) loss 0.5, ppl 8.1": 20,
    "Steps: 1,020 | loss: 0.5": 1020,
    "loss at step 20: 0.5": 20,
    "loss after 20 steps: 0.5": 20,
    "loss at iteration 20 = 0.5": 20,
    "epoch: 1 step: 20, loss is 0.5": 20,
    "timestep 20 | loss 0.5": 20,
    "[20] loss: 0.5": 20,
    "20: loss 0.5": 20,
    "20 loss 0.5": 20,
    "20/100 loss: 0.5": 20,
    "[20/100] loss: 0.5": 20,
    "Batch 20: loss = 0.5": 20,
    "Ep 20 loss 0.5": 20,
    "epoch20: loss=0.5": 20,
    "1|20|Loss: 0.5:  40%|": 20,
    "[1, 20] loss: 0.5": 20,
    "[1/5][20/1583]\tloss: 0.5": 20,
    "[rank1]: step 20: loss 0.5": 20,
    "[epoch:  0, iter:   1,400, lr:(1.000e-03,)] [eta: 1 day, 5:40:34] loss: 0.5": 1400,
    "iter 1,000/10,000: loss 0.5": 1000,
    "Epoch:[1/1](170/39695), loss: 0.5, lr: 0.0005": 170,
    "Epoch 1/2 (100/1000), loss: 0.5": 100,
    "Epoch(train) [8][150/189]  lr: 1e-3  loss: 0.5": 1473,
    "Train: 2 [  50/100 ( 50%)]  Loss: 0.5 (0.6)": 150,
    "Epoch 20/50 loss 0.5": 20,
    "epoch 20/50 train_loss 0.5 lr 0.1": 20,
    "[1m02.5s] step 20 loss 0.5": 20,
}

ROWS = [
    "loss: {} acc: 0.25",
    "loss={}, lr=1e-3",
    "[INFO] [2026-11-03 10:00:00] loss: {}",
    "[10:00:00] INFO     loss: {}                        train.py:42",
    "INFO:trainer:{{'loss': {}, 'lr': 0.001}}",
    "2026-11-03T10:00:00Z [info     ] metrics                     loss={} lr=0.001",
    "train | loss {} | acc 0.5",
    "[GS 7] loss {}",
    "loss: tensor({}, device='cuda:0', grad_fn=<NllLossBackward0>)",
]

OTHERS = [
    '127.0.0.1 "GET /predict?loss=0.5&lr=1 HTTP/1.1" 200 loss: 512',
    "order filled, stop loss: 99.5, profit: 3",
    "10 packets transmitted, 10 received, packet loss: 0%, time 9012ms",
    "path loss: 97.5 dB",
    "quest done, player reward: 50",
    "Fold 3: accuracy: 0.9, loss: 0.4",
    "return code: 0",
    "acc: 0.5",
]


def log(directory: Path, lines: list[str]) -> Path:
    path = directory / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("line", STEPS)
def test_steps_in_other_words(tmp_path, line):
    path = log(tmp_path, [line, line.replace("0.5", "0.25")])
    found = [point for point in Reader(path).poll().flush().points if "loss" in point[0].lower()]
    assert found == [(found[0][0], STEPS[line], "0.5"), (found[0][0], STEPS[line], "0.25")]


@pytest.mark.slow
@pytest.mark.parametrize("line", ROWS)
def test_lines_without_a_step_are_counted(tmp_path, line):
    values = [str(1 / row) for row in range(1, 9)]
    path = log(tmp_path, ["Using device: cuda", *map(line.format, values), "Done."])
    found = [(step, value) for tag, step, value in Reader(path).poll().points if tag.endswith("loss")]
    assert found == list(enumerate(values, 1))


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_no_log_however_often_they_come(tmp_path, line):
    log(tmp_path, [line] * 30)
    assert not discover([tmp_path]).runs


def test_a_few_lines_without_a_step_are_no_log(tmp_path):
    log(tmp_path, ["loss: 0.5"] * 4)
    assert not discover([tmp_path]).runs


def test_a_row_ends_where_a_name_comes_again(tmp_path):
    epochs = [[f"  loss: 0.{epoch}", "  val_loss: 0.5"] for epoch in range(1, 7)]
    path = log(tmp_path, [line for epoch in epochs for line in epoch])
    points = Reader(path).poll().points
    assert [step for tag, step, _ in points if tag == "loss"] == [1, 2, 3, 4, 5, 6]
    assert [step for tag, step, _ in points if tag == "val_loss"] == [1, 2, 3, 4, 5, 6]


def test_results_without_a_step_are_no_points_of_lines_that_tell_it(tmp_path):
    path = log(tmp_path, ["step 1: loss 0.5", *["loss: 0.4"] * 9, "step 2: loss 0.3"])
    points = Reader(path).poll().flush().points
    assert [point for point in points if point[0] == "loss"] == [("loss", 1, "0.5"), ("loss", 2, "0.3")]


def test_rows_are_a_stream_of_their_own_beside_epochs_that_follow(tmp_path):
    epochs = [[*["batch loss: 0.5"] * 6, f"Epoch {epoch}: train loss 0.5"] for epoch in (1, 2)]
    chunks = ConsoleLog(log(tmp_path, [line for epoch in epochs for line in epoch])).poll({}, 1000).chunks
    assert {chunk.stream: chunk.step.tolist() for chunk in chunks} == {
        "train.log": [1, 1, 2, 2],
        "train.log:rows": [*range(1, 13)],
    }


@pytest.mark.slow
def test_batches_count_over_all_epochs(tmp_path):
    """As in PyTorch's quickstart."""
    lines = []
    for epoch in (1, 2, 3, 4):
        lines += [f"Epoch {epoch}", "-" * 31]
        lines += [f"loss: 0.{epoch}  [{seen:>5d}/60000]" for seen in range(64, 60000, 6400)]
        lines += ["Test Error: ", f" Accuracy: 6{epoch}.5%, Avg loss: 0.5 ", ""]
    points = Reader(log(tmp_path, lines)).poll().points
    losses = [step for tag, step, _ in points if tag == "loss"]
    assert losses == [60000 * epoch + seen for epoch in range(4) for seen in range(64, 60000, 6400)]
    assert ("Test Accuracy", 57664, "61.5") in points


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "epochs", "expected"),
    [
        ("Epoch(train) [{}][ 50/99]  loss: 0.5", range(1, 9), [50 + 99 * n for n in range(8)]),
        ("Epoch: [{}][50/100]\tLoss 0.5", [0, 1, 2, 1, 2], [50, 150, 250, 150, 250]),
        ("Epoch: [{}][50/100]\tLoss 0.5", [3, 4], [250, 350]),
        ("Epoch [{0}/3], Step [{0}00/900], Loss: 0.5", [1, 2, 3], [100, 200, 300]),
        ("Epoch:[{}/9](0/200), loss:0.5", [1, 2, 3], [0, 200, 400]),
        ("[{}/9] batch 50/99 Loss: 0.5 lr: 1e-3", [1, 2, 3], [50, 149, 248]),
        ("10:00:00 [{}/9], iter [50/99], train_loss 0.5", [1, 2, 3], [50, 149, 248]),
    ],
)
def test_the_length_of_an_epoch_counts(tmp_path, line, epochs, expected):
    path = log(tmp_path, [line.format(epoch) for epoch in epochs])
    assert [step for tag, step, _ in Reader(path).poll().flush().points if "loss" in tag.lower()] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "INFO:root:\t{}: loss = 0.{} | f1 = 0.5",
        "[{}] loss: 0.{}",
        "2026-11-03 10:00:00,123 - trainer - INFO - {}: loss 0.{}",
        "2026-11-03 10:00:00.123 | INFO     | __main__:run:42 - {} loss: 0.{}",
    ],
)
def test_training_and_evaluation_are_two_metrics(tmp_path, line):
    path = log(tmp_path, [line.format(part, n) for n in range(1, 7) for part in ("Train", "Val")])
    points = sorted(point for point in Reader(path).poll().points if "loss" in point[0])
    expected = [(f"{part} loss", n, f"0.{n}") for n in range(1, 7) for part in ("Train", "Val")]
    assert points == sorted(expected)


PARTS = {
    "Epoch 3 [Val] loss: 0.5": {"Val loss": 0.5},
    "[Valid] Epoch: [3][10/20] Loss 0.5": {"Valid Loss": 0.5},
    "Epoch 3 | Train: loss 0.5 acc 0.4 | Val: loss 0.6 acc 0.3": {
        "loss": 0.5, "acc": 0.4, "Val loss": 0.6, "Val acc": 0.3,
    },
    "Epoch 12: Train Loss 0.5, Accuracy 0.4; Test Loss 0.6, Accuracy 0.3": {
        "Train Loss": 0.5, "Train Accuracy": 0.4, "Test Loss": 0.6, "Test Accuracy": 0.3,
    },
    "Evaluation at step 100: loss=0.5 acc=0.3": {"Evaluation loss": 0.5, "Evaluation acc": 0.3},
    "eval step 100: loss 0.5": {"eval loss": 0.5},
    "step 100: loss (val): 0.5 val: 0.25 lr: 0.1": {"loss (val)": 0.5, "val": 0.25, "lr": 0.1},
    "Epoch(val) [1][10/10]  loss: 0.5  accuracy/top1: 90.6": {"val loss": 0.5, "accuracy/top1": 90.6},
}  # fmt: skip


@pytest.mark.parametrize("line", PARTS)
def test_the_part_before_metrics_belongs_to_their_names(line):
    _, record = parse(line) or ("", {})
    assert {name: record[name] for name in record if name not in ("epoch", "iter", "step")} == PARTS[line]


@pytest.mark.slow
def test_batches_of_a_resumed_training_step_back(tmp_path):
    path = log(tmp_path, [f"[{step}/1000] loss: 0.5" for step in (100, 200, 300, 200, 300)])
    assert [step for _, step, _ in Reader(path).poll().points] == [100, 200, 300, 200, 300]


def test_a_block_below_its_iteration(tmp_path):
    """As rsl_rl prints it."""
    block = ["#" * 80, "      Learning iteration {0}/1500      ", "", "   Computation: 26000 steps/s", "{1}"]
    lines = [line.format(i, f"     Mean reward: {i}.5") for i in (7, 8) for line in block]
    points = Reader(log(tmp_path, lines)).poll().points
    assert [point for point in points if point[0] == "Mean reward"] == [
        ("Mean reward", 7, "7.5"),
        ("Mean reward", 8, "8.5"),
    ]


TABLES = {
    "fastai": [
        "epoch     train_loss  valid_loss  accuracy  time    ",
        "0         0.834567    0.712345    0.712300  00:12     ",
        "1         0.434567    0.512345    0.812300  00:12     ",
    ],
    "skorch": [
        "  epoch    train_loss    valid_acc    valid_loss     dur",
        "-------  ------------  -----------  ------------  ------",
        "      1        \x1b[36m0.6868\x1b[0m       \x1b[32m0.5850\x1b[0m        0.6791  0.5123",
        "      2        0.6068       0.5950        0.6591  0.5123",
    ],
    "spacy": [
        "E    #       LOSS TAGGER  TAG_ACC  SCORE ",
        "---  ------  -----------  -------  ------",
        "  0       0        72.00    43.12    0.43",
        "  1      20       822.60   100.00    1.00",
    ],
    "bars": [
        "Epoch | Train Loss | Confidence | LR",
        "-" * 50,
        "    1 |   0.014930 |     0.0309 | 0.000100",
        "    2 |        nan |        nan | 0.000100",
    ],
    "frame": [
        "| Epoch | Train Loss | Val Acc |",
        "|-------|------------|---------|",
        "|   1/9 |     0.4930 |   0.309 |",
        "|   2/9 |     0.4830 |   0.319 |",
    ],
    "logger": [
        "2026-04-07 22:55:52,418 - INFO - Epoch    | Train Loss    | Acc     | FPR    ",
        "2026-04-07 22:55:52,418 - INFO - -------------------------------------",
        "2026-04-07 22:56:10,900 - INFO - 1        | 0.4829  | 77.68%  | 0.00   ",
        "2026-04-07 22:56:30,286 - INFO - 2        | 0.4748  | 77.76%  | 0.01   ",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_tables_with_a_column_for_each_metric(tmp_path, name):
    points = Reader(log(tmp_path, ["Training", *TABLES[name], "saved 3 files"])).poll().points
    losses = {"fastai": "train_loss", "skorch": "train_loss", "spacy": "LOSS TAGGER"}
    losses |= {"bars": "Train Loss", "frame": "Train Loss", "logger": "Train Loss"}
    expected = {
        "fastai": [(0, "0.834567"), (1, "0.434567")],
        "skorch": [(1, "0.6868"), (2, "0.6068")],
        "spacy": [(0, "72.0"), (20, "822.6")],
        "bars": [(1, "0.01493"), (2, "nan")],
        "frame": [(1, "0.493"), (2, "0.483")],
        "logger": [(1, "0.4829"), (2, "0.4748")],
    }
    assert [(step, value) for tag, step, value in points if tag == losses[name]] == expected[name]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_any_cut_gives_the_same_points(tmp_path, seed):
    dice = random.Random(seed)
    kinds = [line.format("0.5") for line in ROWS[:4]] + [
        "Test Error: ",
        " Accuracy: 50%",
        "Done",
        "[5/9] loss: 1",
    ]
    path = log(tmp_path, [dice.choice(kinds[: dice.choice([4, 8])]) for _ in range(60)])
    text = path.read_bytes()
    whole = sorted(Reader(path).poll().points)
    path.write_bytes(text[: len(text) // 2])
    reader = Reader(path).poll(limit=3)
    path.write_bytes(text)
    assert sorted(reader.poll(limit=1).points) == whole
