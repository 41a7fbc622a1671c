"""What one printed line says."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.console import shapes as console_shapes
from sentinel.sources.console.lines import begun_epoch, parse, uncounted
from sentinel.sources.console.splits import of_part
from sentinel.sources.console.text import MAX_LINE
from sentinel.sources.readers.records import is_metrics

LINES = {
    "epoch 1 step 10 train loss 0.5 lr 1e-3": {"epoch": 1.0, "iter": 10.0, "train loss": 0.5, "lr": 0.001},
    "Epoch 1, loss 0.69, train accuracy: 54.67%": {"epoch": 1.0, "loss": 0.69, "train accuracy": 0.5467},
    "[Epoch 1/200] [Batch 5/938] [D loss: 0.5, acc: 75.0%] [G loss: 0.7]": {
        "epoch": 1.0, "iter": "5/938", "D loss": 0.5, "acc": 0.75, "G loss": 0.7,
    },
    "step 3: rewards=[0,1], loss=0.5, lr=[0.001, 0.002]": {"step": 3.0, "loss": 0.5, "lr": 0.001},
    " 17: 2.305, 2.25 avg loss, 0.001 rate, 1.2 seconds, 1088 images": {
        "step": 17.0, "batch_loss": 2.305, "loss": 2.25, "learning_rate": 0.001,
    },
    "[12]\ttrain-logloss:0.25\tvalidation_0-logloss:0.5": {
        "step": 12.0, "train-logloss": 0.25, "validation_0-logloss": 0.5,
    },
    "[12]\ttraining's binary_logloss: 0.25\tvalid_0's binary_logloss: 0.5": {
        "step": 12.0, "training binary_logloss": 0.25, "valid_0 binary_logloss": 0.5,
    },
    "12:\tlearn: 0.25\ttest: 0.5\tbest: 0.5 (12)\ttotal: 50ms\tremaining: 49s": {
        "step": 12.0, "learn": 0.25, "test": 0.5, "best": 0.5, "total": 0.05, "remaining": 49.0,
    },
    "{'loss': 1.2, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.1}": {
        "loss": 1.2, "grad_norm": math.nan, "learning_rate": 5e-05, "epoch": 0.1,
    },
    "{'loss': '2.303', 'learning_rate': '5e-05', 'epoch': '0.1'}": {
        "loss": 2.303, "learning_rate": 5e-05, "epoch": 0.1,
    },
    "{'loss': 1.0, 'global_step/max_steps': '5/100', 'elapsed_time': '1m 2s', 'memory(GiB)': 3.5}": {
        "loss": 1.0, "global_step/max_steps": "5/100", "memory(GiB)": 3.5,
    },
    '2023-01-01 10:00:00 | INFO | train_inner | {"epoch": 1, "loss": "9.1", "num_updates": "100"}': {
        "epoch": 1.0, "loss": 9.1, "step": 100.0,
    },
    "INFO Step 100/500: {'loss': 2.345, 'lr': 0.0001}": {"loss": 2.345, "lr": 0.0001, "step": "100/500"},
    "Ep. 3: loss_train 2.27 loss_val 2.41": {"loss_train": 2.27, "loss_val": 2.41, "epoch": 3.0},
    "Cost after iteration 100: 0.69": {"Cost": 0.69, "step": 100.0},
    "epoch=3 nll=2.27 bpd=3.28": {"nll": 2.27, "bpd": 3.28, "epoch": 3.0},
    "episode: 3/500, score: 20, e: 0.98": {"score": 20.0, "e": 0.98, "step": "3/500"},
    "Episode 100\tAverage Score: 0.75\tEpsilon: 0.05": {
        "Average Score": 0.75, "Epsilon": 0.05, "step": 100.0,
    },
    "Episode 12\tLast reward: 23.00\tAverage reward: 12.34": {
        "Last reward": 23.0, "Average reward": 12.34, "step": 12.0,
    },
    "2020-01-01 10:00:00 | INFO | train | epoch 001 | loss 9.1 | ppl 370 | num_updates 100 | lr 5e-07": {
        "epoch": 1.0, "loss": 9.1, "ppl": 370.0, "step": 100.0, "lr": 5e-07,
    },
    "Step 1 | loss:1.5 lr:2e-5 tokens_per_second_per_gpu:1234.5": {
        "step": 1.0, "loss": 1.5, "lr": 2e-5, "tokens_per_second_per_gpu": 1234.5,
    },
    " iteration      100/    1000 | consumed samples:         6400 | elapsed time per iteration (ms): 1.2 | "
    "learning rate: 1.0E-04 | lm loss: 2.1E+00 | loss scale: 65536.0 | number of skipped iterations:   0 |": {
        "step": "100/1000", "consumed samples": 6400.0, "elapsed time per iteration (ms)": 1.2,
        "learning rate": 1e-4, "lm loss": 2.1, "loss scale": 65536.0, "number of skipped iterations": 0.0,
    },
    " samples/sec: 2.3 | iteration      100/  320000 | flops per GPU: 1.0TFLOPS | lm_loss: 1.0E+01 |": {
        "step": "100/320000", "samples/sec": 2.3, "lm_loss": 10.0,
    },
    " validation loss at iteration 1000 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | ": {
        "step": 1000.0, "lm loss validation": 2.5, "lm loss validation ppl": 12.0,
    },
    "Epoch 3: val mAP@0.5:0.95: 0.41, mAP@0.5: 0.7": {
        "val mAP@50_95": 0.41, "mAP@0.5": 0.7, "epoch": 3.0,
    },
    "Epoch 3 | loss: 0.3 | mAP50-95: 0.4": {"loss": 0.3, "mAP50-95": 0.4, "epoch": 3.0},
    "iter 100: loss 3.2, time 12.5ms, mfu 3.25%": {"step": 100.0, "loss": 3.2, "time": 0.0125, "mfu": 0.0325},
    "step 250: train loss 2.1111, val loss 2.3": {"step": 250.0, "train loss": 2.1111, "val loss": 2.3},
    "step 00010/05000 (0.20%) | loss: 8.125 | dt: 123.45ms | tok/sec: 1,234,567 | total time: 1.2m": {
        "step": "00010/05000", "loss": 8.125, "dt": 0.12345, "tok/sec": 1234567.0,
    },
    "[2023-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2, "
    "lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]": {
        "step": 10.0, "skipped_steps": 2.0, "lr": 9.65e-06, "mom": 0.9,
    },
    "[timer.py:264:stop] epoch=0/micro_step=200/global_step=100, RunningAvgSamplesPerSec=5713.18, "
    "CurrSamplesPerSec=6123.04, MemAllocated=0.39GB, MaxMemAllocated=0.4GB": {
        "step": 100.0, "RunningAvgSamplesPerSec": 5713.18, "CurrSamplesPerSec": 6123.04,
        "MemAllocated": 0.39, "MaxMemAllocated": 0.4,
    },
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768": {
        "loss_scale": 32768.0,
    },
    "[2019-03-10 22:38:48.630]  Step    11 [0.783 sec/step, loss = 0.87162 (mel : 0.3743 + lin : 0.49732)]": {
        "step": 11.0, "loss": 0.87162, "mel": 0.3743, "lin": 0.49732,
    },
    "[metric][batch=12]: loss/train/total: 1.3672 ": {"step": 12.0, "loss/train/total": 1.3672},
    "Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.00 (  0.1)": {
        "epoch": 0.0, "iter": "10/5005", "Time": 0.5, "Loss": 6.9, "Acc@1": 0.0,
    },
    "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  LR: 1.000e-06": {
        "epoch": 0.0, "iter": "50/1251", "Loss": 6.9, "LR": 1e-6,
    },
    "[01/01 12:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.5  lr: 0.0002 max_mem: 1234M": {
        "step": 19.0, "total_loss": 1.5, "lr": 0.0002,
    },
    "2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 2.0e-04  eta: 1 day, 2:00:00"
    "  loss: 1.5": {"epoch": 1.0, "iter": "50/7330", "lr": 2e-4, "loss": 1.5},
    "2023/01/01 10:00:00 - mmengine - INFO - Epoch(val)  [1][10/10]    accuracy/top1: 90.6  time: 0.1": {
        "epoch": 1.0, "accuracy/top1": 90.6, "time": 0.1,
    },
    "2023/01/01 10:00:00 - mmengine - INFO - Iter(val) [10/10]    accuracy/top1: 90.6": {
        "accuracy/top1": 90.6,
    },
    "2020-01-01 10:00:00 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 0.778 | ppl 1.71"
    " | num_updates 104": {"valid_loss": 0.778, "valid_ppl": 1.71, "step": 104.0, "epoch": 2.0},
    "2020-01-01 10:00:00,123 epoch 1 - iter 6/18 - loss 1.34385651 - time (sec): 0.36 - lr: 0.200000": {
        "loss": 1.34385651, "time (sec)": 0.36, "lr": 0.2, "epoch": 1.0, "iter": "6/18",
    },
    "16/16 - 0s - 7ms/step - accuracy: 0.5039 - loss: 0.8104": {"accuracy": 0.5039, "loss": 0.8104},
    "16/16 ━━━━━━━━━━ 1s 7ms/step - loss: 0.8104 - val_loss: 0.81": {"loss": 0.8104, "val_loss": 0.81},
    "1875/1875 [==============================] - 5s 2ms/step - loss: 0.29": {"loss": 0.29},
    "step:1 - actor/pg_loss:np.float64(0.25) - timing_s/gen:12.5": {
        "step": 1.0, "actor/pg_loss": 0.25, "timing_s/gen": 12.5,
    },
    "step:1 - actor/pg_loss:0.025 - actor/lr:0.000": {"step": 1.0, "actor/pg_loss": 0.025},
    "step:1 - actor/pg_loss:0.025 - actor/lr:0.000000": {
        "step": 1.0, "actor/pg_loss": 0.025, "actor/lr": 0.0,
    },
    "{'loss': tensor(0.5, device='cuda:0'), 'eval_f1': np.float64(0.75), 'n': torch.Size([2]), 'step': 3}": {
        "loss": 0.5, "eval_f1": 0.75, "step": 3.0,
    },
    'INFO metrics_tag: {"step": 3, "metrics": {"actor/pg_loss": 0.5, "critic/score/mean": 0.25}}': {
        "step": 3.0, "metrics/actor/pg_loss": 0.5, "metrics/critic/score/mean": 0.25,
    },
    "Step 5: reward (higher is better): 0.5, loss (lower is better) : 0.25": {
        "step": 5.0, "reward": 0.5, "loss": 0.25,
    },
    "Epoch [2/10], Step [100/500], Loss: 0.5": {"epoch": 2.0, "iter": "100/500", "Loss": 0.5},
    "Epoch: [7/1001] Loss: 7.3048 Acc: 12.50%": {"epoch": 7.0, "Loss": 7.3048, "Acc": 0.125},
    "2024-01-01 10:00:00,000 - INFO - train.py:96 - Step 10: loss=tensor(0.5, device='cuda:0'), lr=1e-4": {
        "step": 10.0, "loss": 0.5, "lr": 1e-4,
    },
    "validate step: 40  loss:  0.9926  memory:  0.00GiB(0.00%)  tps: 782": {
        "step": 40.0, "val loss": 0.9926, "val memory": 0.0, "val tps": 782.0,
    },
}  # fmt: skip

TEXTS = [
    "step 3 reduce the loss by 2 percent",
    "epoch 1 step 10 loss 0.5 lr 1e-3 saved to best.pt",
    "[hyperparameter]: batch=12: 3 ",
    "[stdout]: [batch=1/60]: loss/train/total: 1.3672",
    "Mean reward per episode 23, loss: 3.0",
    "saved at step 5: {'path': 'x', 'size': 5}",
    "Resuming from step 1000 with {'lr': 0.1, 'batch_size': 32}",
    "Max steps: 1000, lr: 0.1",
    "Number of steps: 1000, learning rate: 0.1",
    "Patched hyperparams: embed_dim=64, epochs=1",
    "Training complete in 1360s | loss=1.3449, ponder=3.0",
    "{'learning_rate': 0.1, 'epochs': 10}",
    "{'loss': 1.2, 'epoch': 0.1",
    "{'epoch': 0.1}",
    "  decoder out (5 frames):  400",
    "Step 1: No new books to download this iteration.",
    "100%|█████| 40/40 [00:41<00:00,  1.04s/it]",
    "merged: 'a' -> 'b'",
    "Epoch 1/6",
    " 1/16 ━━━━━━━━━━━━━━━━━━━━ 1s 72ms/step - accuracy: 0.5312 - loss: 0.8190",
]


@pytest.mark.parametrize("line", LINES)
def test_a_metric_line(line):
    found = parse(line)
    assert found is not None
    assert {name: str(value) for name, value in found[1].items()} == {
        n: str(v) for n, v in LINES[line].items()
    }


@pytest.mark.parametrize("line", TEXTS)
def test_other_text(line):
    assert parse(line) is None


@pytest.mark.long  # many examples
@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\n\r")
        | st.sampled_from("'\"{}:=|,[]()\\ \t%-+.01eE"),
        max_size=300,
    )
)
def test_any_line_is_none_or_a_step_with_metrics(line):
    for text in (line, f"step 1: {line}", f"{{'step': 1, {line}", f"epoch 1 {line} loss=1"):
        if found := parse(text):
            shape, record = found
            assert shape
            assert is_metrics(record)
            assert len(record) > 1
            assert parse(text) == found


@pytest.mark.long
@given(
    st.dictionaries(
        st.from_regex(r"[a-z_/ \'\"\\\\é]{1,12}", fullmatch=True), st.floats() | st.integers(), min_size=1
    ),
    st.sampled_from([repr, json.dumps]),
    st.sampled_from(["", " }", " and 'more'"]),
)
def test_any_printed_dictionary(metrics, printed, rest):
    _, found = parse(f"{printed({'step': 1, **metrics})}{rest}")
    assert list(map(str, found.values())) == list(map(str, map(float, [1, *metrics.values()])))


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a ",
        "'",
        '"',
        "\\'",
        "{'",
        "1,",
        "=1",
        "a=",
        "step 1 ",
        "epoch[",
        "|",
        "| ",
        "\t",
        " ",
        "\x1b[",
        "\x1b]",
        "1%|",
        "(",
        "a.",
        "-",
    ],
)
def test_the_cost_of_a_line_is_linear(unit):
    line = (unit * MAX_LINE)[: MAX_LINE // 2]
    for text in (line, f"step 1: {line}", f"{{'step': 1, '{line}", f"(epoch: 1, iters: 1, {line}"):
        parse(text)  # were it quadratic, this would not come to an end
    begun_epoch(line)
    of_part(f"train {line}")
    uncounted(f"loss {line}")


def test_names_of_the_shapes_are_their_own():
    text = Path(console_shapes.__file__).read_text()
    names = re.findall(r'Shape\(\s*"([^"]+)"', text)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("cost", ["nan.0", "-nan.0", "inf.0", "nan", "-inf"])
def test_a_metric_in_a_shape_may_be_no_number_with_a_point(cost):
    _, record = parse(f"Ep. 1 : Up. 10 : Sen. 1,000 : Cost {cost} : Time 1.5s")
    assert not math.isfinite(record["Cost"])
