"""Points do not depend on how a text was cut, the state survives a restart, and hostile text stays cheap."""

import json
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.csv.delimited import Table
from sentinel.sources.general.content import judge
from sentinel.sources.general.text_log import TextLog
from sentinel.sources.json import tree
from sentinel.sources.readers.measured_rows import Laps
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.slots import read_slots
from sentinel.sources.readers.templates import mask, template
from sentinel.sources.recurring.lines import RecurringLines

pytestmark = pytest.mark.slow

NUMBERS = st.one_of(
    st.floats(allow_nan=True).map(str),
    st.integers(-10, 10**9).map(str),
    st.sampled_from(["4K", "1,234", "0.64%", "tensor(2.3, device='cuda:0')", "nan", "inf", "00:12", "1.2.3"]),
)
LINES = st.one_of(
    st.builds("Epoch {}/{} | loss: {} | acc {}%".format, st.integers(0, 9), st.just(9), NUMBERS, NUMBERS),
    st.builds("step {} loss={} lr={}".format, st.integers(0, 99), NUMBERS, NUMBERS),
    st.builds("[rank{}]: iter {}: loss {}".format, st.integers(0, 3), st.integers(0, 9), NUMBERS),
    st.builds("| train/loss | {} |".format, NUMBERS),
    st.just("-----------"),
    st.builds("{{'loss': {},".format, NUMBERS),
    st.builds(" 'acc': {}}}".format, NUMBERS),
    st.builds(
        "Epoch {}: 10%|#  | {}/10 [00:0{}<00:09, loss={}]\r".format,
        st.integers(0, 3),
        st.integers(0, 9),
        st.integers(0, 9),
        NUMBERS,
    ),
    NUMBERS,
    st.builds("{},{}".format, NUMBERS, NUMBERS),
    st.builds("[{}, {}, {}]".format, st.integers(0, 3), st.integers(0, 9), NUMBERS),
    st.text(max_size=60),
)
TEXTS = st.lists(LINES, max_size=60).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
CUTS = st.lists(st.integers(0, 4000), max_size=12)

HOSTILE = [
    "1" * 8000,
    "1," * 4000,
    "(" * 8000,
    "a=" * 4000,
    " " * 8000 + "1",
    "%|" * 4000,
    "loss: " + "[" * 8000,
    "-" * 8000,
    "1:" * 4000,
    "a " * 4000,
    "\x1b[" * 4000,
    "{'a': " * 1300,
    "2020-01-01 00:00:00 " * 400,
    "is " * 2600 + "1",
    "1.1." * 2000,
]

OF_NAMES = {"precision": "0.8", "recall": "0.7", "F1": "0.75"}
OF_EPISODE = {"Total Reward": "2.5", "Steps": "40"}
OF_VALIDATION = {"Validation mIoU": "0.4"}
NAMES = [
    ("Epoch 006 | train loss 0.2765 val loss 0.5805", {"train loss": "0.2765", "val loss": "0.5805"}),
    ("EPOCH[26/50] loss0.033", {"loss": "0.033"}),
    ("idx: 0loss: tensor(8.4650, grad_fn=<NegBackward>)", {"loss": "8.4650"}),
    ("NCE Loss at epoch 8 and iteration 1000 is 0.92", {"NCE Loss": "0.92", "iteration": "1000"}),
    (
        "{'loss': 0.4117, 'learning_rate': 4.9e-05, 'epoch': 0.01}",
        {"loss": "0.4117", "learning_rate": "4.9e-05"},
    ),
    (
        "precision: 0.7590, recall: 0.5948, fscore: 0.6670",
        {"precision": "0.7590", "recall": "0.5948", "fscore": "0.6670"},
    ),
    ("2020-03-26 23:41:03,136 - log - INFO -   ORG: precision: 22.33%", {"ORG precision": "22.33"}),
    (
        "Epoch 1/9 | Train Loss: 3.3 Acc: 29.6% | Val Loss: 2.1 Acc: 54.4%",
        {"Train Loss": "3.3", "Train Acc": "29.6", "Val Loss": "2.1", "Val Acc": "54.4"},
    ),
    (
        "Epoch 3 | Train: loss 0.5 acc 0.4 | Val: loss 0.6 acc 0.3",
        {"loss": "0.5", "acc": "0.4", "Val loss": "0.6", "Val acc": "0.3"},
    ),
    ("Epoch 3 [Val] loss: 0.5", {"Val loss": "0.5"}),
    ("train Loss: 0.5125 Acc: 0.7541", {"train Loss": "0.5125", "train Acc": "0.7541"}),
    ("bench val acc: 76.6, test acc: 81.9", {"bench val acc": "76.6", "bench test acc": "81.9"}),
    ("Averaged stats: lr: 0.0001  loss: 12.25 (12.50)", {"lr": "0.0001", "loss": "12.25"}),
    (
        "step:20 - val/reward/mean@30:-1.0 - acc:0.5",
        {"step": "20", "val/reward/mean@30": "-1.0", "acc": "0.5"},
    ),
    ("step 5 time (data): 0.3s LR: 0.1", {"step": "5", "time (data)": "0.3", "LR": "0.1"}),
    (
        "Test set: Average loss: 0.05, Accuracy: 9836/10000 (98%)",
        {"Test Average loss": "0.05", "Test Accuracy": "0.9836"},
    ),
    ("# correct:\t9836/10000 = 98.36%", {"accuracy": "0.9836"}),
    ("epoch: 1 step: 20, loss is 0.5", {"step": "20", "loss": "0.5"}),
    ("I1103 10:00:00.123456 12345 train.py:55] [20] loss=0.5", {"loss": "0.5"}),
    ("Epoch 1 mean_rank: 3.5 loss: 0.5", {"loss": "0.5"}),
    ("Avg reward over the last 100 episodes: 3.5", {"Avg reward last100": "3.5"}),
    ("Mean reward (100 ep): 3.5", {"Mean reward (last100)": "3.5"}),
    ("[Step 9] Mean Reward (last 20 eps): 3.5", {"Step": "9", "Mean Reward (last20)": "3.5"}),
    ("Avg Reward (last 100):  3.5", {"Avg Reward (last100)": "3.5"}),
    ("Accuracy of the network on the 10000 test images: 55 %", {"test Accuracy": "55"}),
    ("Overall R^2 = 0.8, RMSE = 0.5", {"Overall R2": "0.8", "RMSE": "0.5"}),
    ("Accuracy on test set: 97.5%", {"test Accuracy": "97.5"}),
    ("Loss on the Dev-Set = 0.5", {"Dev Loss": "0.5"}),
    ("Losses {'ner': 0.5}", {"Losses ner": "0.5"}),
    ("Epoch 2 - Dev BLEU: BLEU-1 65.4, BLEU-2 60.6", {"Dev BLEU-1": "65.4", "Dev BLEU-2": "60.6"}),
    ("Discriminator Accuracy (Loss): 1.0", {"Discriminator Accuracy (Loss)": "1.0"}),
    ("Val mAP@0.5: 0.7 mAP@[.5:.95]: 0.4", {"Val mAP@0.5": "0.7", "Val mAP@50_95": "0.4"}),
    ("mAP@0.50:0.95 = 0.4, mAP50-95: 0.5", {"mAP@50_95": "0.4", "mAP@50_95 2": "0.5"}),
    ("AP@[IoU=0.50:0.95]: 0.4", {"AP@50_95": "0.4"}),
    (
        "mean/median reward 3.5/3.0, min/max reward 1.0/9.0",
        {"mean reward": "3.5", "median reward": "3.0", "min reward": "1.0", "max reward": "9.0"},
    ),
    ("step 20: precision, recall, F1: 0.8, 0.7, 0.75", {"step": "20"} | OF_NAMES),
    ("Test loss, acc: (0.3, 55.5%)", {"Test loss": "0.3", "Test acc": "55.5"}),
    ("Epoch 3 train/val loss: 0.3/0.4", {"train loss": "0.3", "val loss": "0.4"}),
    ("epoch 3/100 step 20/300 loss 0.3", {"step": "20", "loss": "0.3"}),
    ("Episode 3/90 | Total Reward: 2.5 | Steps: 40", {"Episode": "3", "max_steps": "90"} | OF_EPISODE),
    ("回合\N{FULLWIDTH COLON}3\N{FULLWIDTH COMMA}奖励\N{FULLWIDTH COLON}2.5", {"回合": "3", "奖励": "2.5"}),
    ("第3轮 训练损失: 0.3, 验证准确率: 0.4", {"训练损失": "0.3", "验证准确率": "0.4"}),
    (
        "{'Train': {'rocauc': 0.9}, 'Validation': {'rocauc': 0.8}}",
        {"Train rocauc": "0.9", "Validation rocauc": "0.8"},
    ),
    ("Validation #3  Average Loss: 0.3, mIoU: 0.4", {"Validation Average Loss": "0.3"} | OF_VALIDATION),
    ("val-epoch 3 metrics is: IOU: 0.3", {"val IOU": "0.3"}),
    (
        "INFO:tensorflow:Saving dict for global step 30: eval_accuracy = 0.5, global_step = 30, loss = 0.4",
        {"global step": "30", "eval_accuracy": "0.5", "global_step": "30", "eval loss": "0.4"},
    ),
    (
        "SpanFPreRecMetric: f=0.5, pre=0.4, rec=0.6",
        {"dev f1": "0.5", "dev precision": "0.4", "dev recall": "0.6"},
    ),
    (
        "ClassifyFPreRecMetric: f=0.5, pre=0.4, rec=0.6",
        {"dev f1": "0.5", "dev precision": "0.4", "dev recall": "0.6"},
    ),
    ("LOSS train 0.3 valid 0.4", {"LOSS train": "0.3", "valid LOSS": "0.4"}),
    (
        "loss: train 0.3, val 0.4 | acc: train 0.5, val 0.6",
        {"train loss": "0.3", "val loss": "0.4", "train acc": "0.5", "val acc": "0.6"},
    ),
    ("Epoch: 003, Loss: 0.3, Train: 0.5, Val: 0.4", {"Loss": "0.3", "Train": "0.5", "Val": "0.4"}),
    ("epoch-3, loss-0.25, val_rmse-0.5", {"loss": "0.25", "val_rmse": "0.5"}),
]


PREFIXES = [
    *("2023-01-01 10:00:00,123 - /home/u/train.py[line:88] - INFO: ", "2023-01-01 10:00:00 train.py L88: "),
    *("[2023-01-01 10:00:00 swin] (main.py 88): INFO ", "[2023-01-01 10:00:00 swin](main.py 88): INFO "),
    *("2023-01-01 10:00:00,123 - main.py(88) - INFO - ", "[INFO] 2023-01-01 10:00:00 [train.py, 88]: "),
    *("[2023-01-01 10:00:00,123][INFO][train.py][88] ", "2023-01-01 10:00:00 train.py line:88 INFO "),
    *("[INFO|trainer.py:88] 2023-01-01 10:00:00,123 >> ", "2023-01-01 10:00:00,123-INFO-train.py-88: "),
    *("08/03 10:00:00 PM ", "2023-01-01 10:00:00 AM ", "2023年01月01日 10:00:00 "),
    *("Sun Jan  1 10:00:00 2023 ", "Jan 01 10:00:00 ", "[01-01 10:00:00] (train.py:88) INFO: "),
]
MESSAGES = [
    *("Epoch: [3/20][40/200] loss 0.3 acc 0.5", "Epoch 3/20 | train loss 0.3 | val acc 0.5"),
    *("Test: loss 0.3, acc 0.5", "step 40: loss 0.3"),
]


PARTS = ("train", "test")


def numbers_of(line):
    masked, numbers = mask(line)
    plan = template(masked)
    counters = {kind: numbers[at] for at, kind, _ in plan.counters}
    return counters, {name: numbers[at] for at, name in plan.values}


def points_of(*lines):
    reader = RecurringLines("log")
    rows = reader.read("".join(f"{line}\n" for line in lines).encode()) + reader.end()
    return [
        (name, row.step, value) for row in rows for name, value in zip(row.names, row.values, strict=True)
    ]


def test_an_evaluation_below_the_batches_of_a_training_has_their_step():
    lines = []
    for epoch in range(3):
        lines += [f"Epoch {epoch} [{batch}/200] loss: 0.{batch}" for batch in (0, 100)]
        lines += ["Saved a model of epoch 9", f"Accuracy: 0.7{epoch}"]
    steps = [step for name, step, _ in points_of(*lines) if name == "Accuracy"]
    assert steps == [100, 300, 500]


def test_how_long_an_episode_was_is_no_step():
    lengths = [40, 46, 31, 31, 52]
    for word in ("Steps", "Steps taken", "步数"):
        lines = [f"Episode {n} | Reward: 0.{n} | {word}: {steps}" for n, steps in enumerate(lengths, 1)]
        assert [step for name, step, _ in points_of(*lines) if name == "Reward"] == [1, 2, 3, 4, 5]


def test_steps_of_episodes_that_first_seem_to_go_on_never_go_back():
    lines = [f"Episode {n} Step {steps} Reward: 0.{n}" for n, steps in enumerate([31, 45, 45, 12, 30])]
    steps = [step for name, step, _ in points_of(*lines) if name == "Reward"]
    assert len(steps) == 5
    assert steps == sorted(steps)


def test_steps_of_episodes_that_go_on_are_believed():
    lines = [f"Episode {n} Step {steps} Reward: 0.{n}" for n, steps in enumerate([31, 45, 80, 112])]
    assert [step for name, step, _ in points_of(*lines) if name == "Reward"] == [31, 45, 80, 112]


def test_a_line_of_values_behind_dashes_is_no_header():
    lines = [f"epoch-{n}, loss-{value}, val_rmse-0.5" for n, value in enumerate(["0.5", "0.4", "0.3", "nan"])]
    points = [(step, value) for name, step, value in points_of(*lines) if name == "loss"]
    assert points[:3] == [(0, 0.5), (1, 0.4), (2, 0.3)]
    assert points[3][0] == 3


def test_a_report_of_a_classification_tells_the_means_of_its_classes():
    def report(at):
        return [
            "              precision    recall  f1-score   support",
            "",
            *(f"           {k}       0.1{k}      0.2{k}      0.3{k}       122" for k in range(3)),
            *("", f"    accuracy                           0.{at}5       366"),
            f"   macro avg       0.{at}6      0.{at}7      0.{at}8       366",
        ]

    lines = []
    for n in range(1, 5):
        lines += [f"epoch: {n}, train loss: 0.{9 - n}", *report(n)]
        lines += ["**** confusion matrix ** train **", *report(n + 4)]
    points = points_of(*lines)
    for part, first in (("eval", 0), ("train", 4)):
        values = [(step, value) for name, step, value in points if name == f"{part} accuracy"]
        assert values == [(n, round((n + first) / 10 + 0.05, 2)) for n in range(1, 5)]
        assert (f"{part} macro f1-score", 4, round((4 + first) / 10 + 0.08, 2)) in points
    assert not any(value in (0.1, 0.21, 0.32, 122) for _, _, value in points)


def test_a_heading_of_a_part_names_what_stands_below():
    lines = [
        line for n in range(1, 4) for line in (f"Epoch {n}", "Test Error:", f" Accuracy: 0.{n}, loss: 0.5")
    ]
    assert ("Test Accuracy", 3, 0.3) in points_of(*lines)


def test_lines_between_the_beginning_and_the_end_of_an_evaluation_are_of_held_out_data():
    """PaddlePaddle's Model.fit prints the batches of an evaluation in the words of its training."""
    lines = [
        line
        for n in range(1, 5)
        for line in (
            *(
                f"Epoch {n}/4",
                f"step 10/20 - loss: 0.{n}1 - acc: 0.{n}2",
                "step 20/20 - loss: 0.5 - acc: 0.6",
            ),
            *("Eval begin...", f"step 5/8 - loss: 0.{n}3 - acc: 0.{n}4", "step 8/8 - loss: 0.7 - acc: 0.8"),
            "Eval samples: 512",
        )
    ]
    points = points_of(*lines)
    told = {
        name: [value for name_of, _, value in points if name_of == name] for name in ("loss", "eval loss")
    }
    assert told["loss"] == [value for n in range(1, 5) for value in (round(n / 10 + 0.01, 2), 0.5)]
    assert told["eval loss"] == [value for n in range(1, 5) for value in (round(n / 10 + 0.03, 2), 0.7)]


def test_lines_that_count_have_the_plain_name_beside_those_that_do_not():
    lines = [line for n in range(1, 9) for line in ("loss: 0.5", "loss: 0.4", f"step {n}0: loss 0.{n}")]
    assert [step for name, step, _ in points_of(*lines) if name == "loss"] == [*range(10, 90, 10)]


def test_a_table_with_commas_below_a_printed_model_is_read():
    """Keras's history as pandas prints it: the rows are numbered below no name."""
    lines = [
        "Trainable params: 491,270",
        ",loss,val_loss,val_acc",
        *(f"{n},{n / 8},0.5,{'' if n == 3 else n / 9}" for n in range(5)),
        "brand 133 202 227",
    ]
    points = points_of(*lines)
    assert [(step, value) for name, step, value in points if name == "loss"] == [(n, n / 8) for n in range(5)]
    assert [step for name, step, _ in points if name == "val_acc"] == [0, 1, 2, 4]


def test_a_message_of_tensorflow_within_a_bar_is_none_of_its_numbers():
    message = (
        "2021-05-24 03:37:45.267570: I tensorflow/core/allocator.cc:247] Allocator: After 54 get requests"
    )
    lines = [
        line
        for epoch in (1, 2)
        for line in (
            f"Epoch {epoch}/2",
            *(
                f" {n}0/80 [=>..] - ETA: 9s - loss: 0.{9 - n} - acc: 0.{n}{message * (n % 2)}"
                for n in range(1, 9)
            ),
            message,
        )
    ]
    points = points_of(*lines)
    assert {name for name, _, _ in points} == {"ETA", "loss", "acc"}
    assert [value for name, _, value in points if name == "acc"] == [n / 10 for n in range(1, 9)] * 2


def test_the_epoch_may_stand_behind_a_point():
    lines = [f"INFO - ---Epoch.{n} Val Log-Loss per event: 0.{n}; MAPE: 0.5" for n in range(3)]
    assert [step for name, step, _ in points_of(*lines) if "Log-Loss" in name] == [0, 1, 2]


def test_columns_between_strokes_behind_a_percent_sign_are_no_bar():
    lines = [
        f"Epoch {n}/9 | Train Acc: 5{n}.5% | Val Loss: 0.{n} | Val Acc: 6{n}.5% | 3s" for n in range(1, 6)
    ]
    assert {name for name, _, _ in points_of(*lines)} >= {"Train Acc", "Val Loss", "Val Acc"}


def test_a_part_of_the_data_may_stand_between_what_counts_and_a_comma():
    lines = [
        line
        for n in range(1, 6)
        for line in (
            f"Epoch {n} Train, mae:{9 - n}.5, Cost: 71.5 sec",
            f"Epoch {n} Val, MAE: {n}.5 Cost 7.5 sec",
        )
    ]
    names = {name for name, _, _ in points_of(*lines)}
    assert "Val MAE" in names
    assert not {name for name in names if name.endswith("Cost")}


def test_what_a_model_generates_above_gives_no_steps():
    above = ["Sampling slow, steps=138", "**Step 2:** add", "**Step 1:** multiply", "**Step 4:** add"]
    lines = [line for n, text in enumerate(above) for line in (text, f"grpo_loss is 0.{n}")]
    assert [step for name, step, _ in points_of(*lines) if name == "grpo_loss"] == [1, 2, 3, 4]


def test_a_rate_that_stands_still_counts_below_an_epoch():
    lines = [line for n in range(1, 5) for line in (f"End of epoch {n} / 9", "learning rate = 0.0001000")]
    assert [step for name, step, _ in points_of(*lines) if name == "learning rate"] == [1, 2, 3, 4]
    assert not points_of(*["learning rate = 0.0001000"] * 4)


def test_a_printed_model_holds_no_metrics():
    layers = [f"      (norm{n}): BatchNorm2d({n}, eps=1e-05, momentum=0.1)" for n in range(4)]
    assert not points_of(*layers)


def test_an_exception_is_no_metric():
    assert not points_of("Epoch 1", "FileNotFoundError: [Errno 2] No such file: 'a'")
    assert points_of("Epoch 1", "TestError: 0.5", "Epoch 2", "TestError: 0.4")


@pytest.mark.parametrize("name", ["rank0", "default0"])
def test_what_torchrun_puts_before_a_line_is_its_process(name):
    lines = [
        f"[{name}]: 25%|##  | {n}/4 [00:01<00:05, 3.1it/s][{name}]:step {n} loss 0.{n}" for n in range(1, 5)
    ]
    reader = RecurringLines("log")
    rows = reader.read("".join(f"{line}\n" for line in lines).encode())
    assert [(row.writer, row.step, row.values) for row in rows if "loss" in row.names] == [
        (name, n, (n / 10,)) for n in range(1, 5)
    ]


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        ([(0, 200, 3), (100, 200, 3), (0, 200, 4), (0, 200, 7)], [400, 500, 600, 1200]),
        ([(0, None, 0), (1, None, 0), (0, None, 1), (1, None, 1)], [0, 1, 2, 3]),
        ([(5, None, None), (10, None, None), (5, None, None)], [5, 10, 15]),
        (
            [(100, None, 1), (10, None, 2), (30, None, 4), (100, None, 1), (10, None, 2)],
            [100, 110, 130, 100, 110],
        ),
        ([(17, None, 1), (17, None, 2), (17, None, 3)], [17, 34, 51]),
        ([(17, None, 1), (17, None, 1), (17, None, 2)], [17, 17, 34]),
    ],
)
def test_places_within_epochs_count_on(lines, steps):
    laps = Laps()
    assert [laps.step(*line) for line in lines] == steps


def test_an_iteration_that_tells_its_step_is_an_epoch():
    reader = RecurringLines("log")
    places = [(1, 0), (1, 100), (2, 0), (2, 100), (3, 0)]
    lines = [f"iteration:{epoch} step:{step}/200, NER loss: 0.{step + epoch}" for epoch, step in places]
    rows = reader.read("".join(f"{line}\n" for line in lines).encode())
    assert [row.step for row in rows] == [0, 100, 200, 300, 400]
    assert [row.values[0] for row in rows] == [1, 1, 2, 2, 3]


def test_a_column_that_stays_0_counts_nothing_beside_one_that_counts():
    rows = [f"20260422_170916,{epoch},{1 / epoch:.4f},0" for epoch in range(1, 9)]
    table = Table("log")
    read = table.read("\n".join(["run_id,epoch,avg_loss,inf_batches", *rows, ""]).encode())
    assert [row.step for row in read] == [*range(1, 9)]


def test_a_sentence_ends_before_the_name_of_the_next_number():
    """ML-Agents prints it so, here of an environment whose name begins with a digit."""
    line = "[INFO] {}DBall. Step: {}. Time Elapsed: {} s. Mean Reward: {}. Std of Reward: {}. Training."
    slots = read_slots(line.split("{}"), frozenset()).slots
    assert [slot.name for slot in slots[1:]] == ["Step", "Time Elapsed", "Mean Reward", "Std of Reward"]


def rows_of(header, *rows):
    return Table("log").read("\n".join([header, *rows, ""]).encode())


def test_a_column_tells_of_which_training_a_row_is():
    methods = ("fedavg", "fedprox")
    read = rows_of(
        "method,round,test_acc,loss", *(f"{m},{n},0.{n},{1 / n:.3f}" for m in methods for n in range(1, 9))
    )
    assert {(row.label, row.record, row.names) for row in read} == {
        (m, number, (f"{m} test_acc", f"{m} loss")) for number, m in enumerate(methods)
    }
    assert [row.step for row in read] == [*range(1, 9)] * 2


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [("phase", "warm", "epoch"), ("set", "train", "epoch"), ("model", "mlp", "width")],
)
def test_a_column_that_tells_what_was_measured_names_it(name, text, count):
    """Without a counter a row may be the result of a whole training."""
    read = rows_of(f"{name},{count},loss,acc", *(f"{text},{n % 5},{1 / n:.3f},0.{n}" for n in range(1, 9)))
    assert {row.label for row in read} == {""}
    assert {row.names[-2:] for row in read} == {(f"{text} loss", f"{text} acc")}


def test_a_file_without_a_header_begins_with_what_it_is_named_after():
    table = Table("reward_log")
    lines = [f"{n},{-990 + n}.0,{-995 + n}.0,{0.99**n}" for n in range(1, 9)]
    rows = [*table.read("".join(f"{line}\n" for line in lines).encode()), *table.end()]
    assert {row.names for row in rows} == {("reward_log", "2", "3")}
    assert [row.values[0] for row in rows] == [-990 + n for n in range(1, 9)]


def test_what_pandas_numbers_the_rows_by_is_no_value_of_a_metric():
    metrics = ("Loss/Total (Train)", "Loss/KLD (Train)")
    rows = [(metric, n) for metric in metrics for n in range(8)]
    read = rows_of(
        ",metric,value,step,version", *(f"{i},{m},{9.5 - n},{n}.0,v_2" for i, (m, n) in enumerate(rows))
    )
    assert {row.names for row in read} == {(metric,) for metric in metrics}
    assert [row.step for row in read] == [*range(8)] * 2


def test_a_part_of_the_data_and_a_layer_belong_to_the_name_of_a_metric():
    rows = [f"{n},{part},loss,,{9.5 - n}\n{n},{part},norm,conv,{n}" for n in range(8) for part in PARTS]
    read = rows_of("epoch,input_type,metric_name,layer,value", *"\n".join(rows).split("\n"))
    names = {f"{part} {of}" for part in PARTS for of in ("loss", "norm conv")}
    assert {row.names for row in read} == {(name,) for name in names}
    assert [row.step for row in read if row.names == ("test loss",)] == [*range(8)]


def test_the_part_of_the_data_in_a_name_is_not_repeated():
    read = rows_of("key,value,step", *(f"{part}_loss,{9.5 - n},{n}" for n in range(8) for part in PARTS))
    assert {row.names for row in read} == {(f"{part}_loss",) for part in PARTS}


def test_who_earns_a_reward_beside_others_need_not_be_trained():
    methods = ("ppo", "random")
    read = rows_of(
        "algo,episode,mean_reward", *(f"{m},{n},{n * (m == 'ppo')}" for m in methods for n in range(1, 9))
    )
    assert {(row.label, row.names) for row in read} == {("", (f"{m} mean_reward",)) for m in methods}


def parts(data, cuts):
    """The data in pieces that end with a line."""
    whole = data[: end_of_lines(data)]
    ends = {end_of_lines(whole[: cut % (len(whole) + 1)]) for cut in cuts}
    places = sorted({0, len(whole), *ends})
    return [whole[a:b] for a, b in pairwise(places)], data[len(whole) :]


@pytest.mark.long
@pytest.mark.parametrize("reader", [RecurringLines, Table])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=TEXTS, cuts=CUTS)
def test_any_cut_and_any_restart_give_the_same_rows(reader, data, cuts):
    pieces, torn = parts(data, cuts)
    whole = reader("log")
    expected = whole.read(b"".join(pieces)) + whole.end(torn)
    again = reader("log")
    rows = []
    for piece in pieces:
        rows += again.read(piece)
        again = reader("log", json.loads(json.dumps(again.dump())))
    rows += again.end(torn)
    assert repr(rows) == repr(expected)


PIECES = [
    *(
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b",",
        b"|",
        b":",
        b"=",
        b"step ",
        b"epoch 3/9",
        b"loss",
        b"acc",
        b"nan",
        b"-inf",
    ),
    *(
        b"1",
        b"0.5",
        b"1e-3",
        b"12%",
        b"{",
        b"}",
        b'"loss": ',
        b"[",
        b"]",
        b"\xff",
        b"\x00",
        b"\x1b[1m",
        "é\u202e".encode(),
    ),
]

FORMS = (LineForm("step {step} loss={loss}"), LineForm("Epoch {epoch}/{*} acc {acc}"))


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [TextLog, partial(TextLog, is_table=True), partial(TextLog, forms=FORMS)],
    ids=["console", "table", "forms"],
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=TEXTS, cuts=CUTS, limit=st.sampled_from([1, 7, 1000]))
def test_a_log_that_grows_by_any_bytes_gives_the_same_points(make, data, cuts, limit):
    with tempfile.TemporaryDirectory() as folder:
        log = make(Path(folder) / "train.log")
        assert grown(log, data, cuts, limit) == grown(log, data, [], 10**6)


def grown(log, data, cuts, limit):
    """The points of each stream of a log that is written up to each cut and polled, with a restart after each
    poll.
    """
    points: dict[str, list[str]] = {}
    cursor = "{}"
    ends = [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for end in ends:
        log.path.write_bytes(data[:end])
        more = True
        while more:
            result = log.poll(json.loads(cursor), limit)
            cursor = json.dumps(result.cursor, allow_nan=False)
            take(points, result.chunks)
            more = result.more
    take(points, log.flush(json.loads(cursor)))
    log.path.unlink()
    return points


def take(points, chunks):
    for chunk in chunks:
        assert not chunk.restarted
        tags = [chunk.tags[at] for at in chunk.tag]
        columns = (tags, chunk.step.tolist(), chunk.value.tolist(), chunk.time.tolist())
        points.setdefault(chunk.stream, []).extend(map(repr, zip(*columns, strict=True)))


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@example(b"\x02\t:\nnan")
@given(st.binary(max_size=2000) | st.lists(st.sampled_from(PIECES), max_size=200).map(b"".join))
def test_any_bytes_are_numbered_rows_of_no_more_than_their_characters(data):
    """Each row has a value for each name and the number of its line, and no number comes from nowhere."""
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for reader in (RecurringLines("log"), Table("log")):
        rows = [*reader.read(data + b"\n"), *reader.end()]
        for row in rows:
            assert len(row.names) == len(row.values)
            assert all(isinstance(value, float) for value in row.values)
            assert all(name == name.strip() and "\n" not in name for name in row.names)
            assert 0 <= row.line <= lines
        assert sum(len(row.values) for row in rows) <= len(data)
    for series in tree.read(data, "log"):
        assert len(series.values) <= len(data)
    judgement = judge(data, "log.txt")
    assert judgement.kind is not None or not judgement.is_training
    assert judgement == judge(data, "log.txt"), "what a file is depends on its bytes alone"


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_take_linear_time(line):
    begin = time.process_time()
    RecurringLines("log").read((line + "\n").encode() * 20)
    assert time.process_time() - begin < 1.0


@pytest.mark.long
def test_the_state_is_bounded():
    reader = RecurringLines("log")
    for number in range(20000):
        name = "".join(chr(97 + (number // 26**k) % 26) for k in range(4))
        reader.read(f"{name} loss: 0.{number} step {number}\n".encode())
    assert len(json.dumps(reader.dump())) < 2_000_000


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("message", MESSAGES)
def test_what_a_logger_puts_before_a_message_changes_nothing(prefix, message):
    assert numbers_of(prefix + message) == numbers_of(message)


@pytest.mark.parametrize(("line", "expected"), NAMES)
def test_slots_have_the_names_that_people_read(line, expected):
    masked, numbers = mask(line)
    assert {name: numbers[at] for at, name in template(masked).values if name != "epoch"} == expected


@pytest.mark.parametrize("epoch", ["0.5", "nan", "inf", "1e300", "-1e300"])
def test_rows_that_wait_for_a_bar_can_be_kept(epoch):
    reader = RecurringLines("log")
    bar = " 10%|#         | {0}/90 [00:0{1}<00:09,  1.0it/s]\r"
    lines = [f"{bar.format(n * 10, n)}\n{{'loss': nan, 'epoch': {epoch}}}\n" for n in range(1, 8)]
    rows = reader.read("".join(lines).encode())
    again = RecurringLines("log", json.loads(json.dumps(reader.dump(), allow_nan=False)))
    rows += again.end()
    assert all(-(2**62) < row.step < 2**62 for row in rows)
    assert rows


def test_a_table_below_the_training_does_not_move_the_step_of_an_error():
    steps = [f"step {step} loss {1 / step:.3f}" for step in range(10, 400, 10)]
    table = [f"label_{row}  precision 0.{row}1  recall 0.{row}2" for row in range(1, 8)]
    reader = RecurringLines("log")
    reader.read("\n".join([*steps, *table, "NameError: x", ""]).encode())
    last = reader.printed[-1]
    assert (last.text, last.step) == ("NameError: x", 390)
