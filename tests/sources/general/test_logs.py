"""Logs of no known format are found by their content, and data are not."""

import json
import time

import pytest
from typer.testing import CliRunner

from sentinel.cli.app import program
from sentinel.sources.base import flush
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import discover, unread_line
from sentinel.sources.general.logs import MAX_DOCUMENT
from sentinel.sources.general.nearest import nearest
from tests.sources.reader import Reader


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path):
    """The points of the only run there, its end included."""
    reader = Reader(path).poll()
    (run,) = reader.runs.values()
    cursor = json.loads(reader.cursors[run.id])
    points = [*reader.points]
    for chunk in flush(run.source, cursor):
        tags = [chunk.tags[number] for number in chunk.tag]
        points += zip(tags, chunk.step.tolist(), map(str, chunk.value.tolist()), strict=True)
    return points


CONSOLES = {
    "own loop": ([f"EPOCH[{n}/5] loss{0.5 / n:.3f}" for n in range(1, 6)], ("loss", 5, "0.1")),
    "days of the American order": (
        [f"10/23/2019 1{n}:15:34 - INFO - root - epoch {n} - recall: 0.{n}5" for n in range(1, 6)],
        ("recall", 5, "0.55"),
    ),
    "scores": (
        [f"train epoch {n} -- precision: 0.{n}5, recall: 0.{n}4, fscore: 0.{n}3" for n in range(1, 5)],
        ("fscore", 4, "0.43"),
    ),
    "Flower": (
        [
            f"INFO flwr | server.py:125 | fit progress: ({n}, nan, {{'accuracy': 0.1}}, {n}0.5)"
            for n in range(1, 6)
        ],
        ("loss", 5, "nan"),
    ),
    "losses of their own names": (
        [
            f"(epoch: {1 + n // 3}, iters: {n % 3 + 1}00, time: 0.082) D_A: 0.28{n} cycle_B: 4.1{n}"
            for n in range(6)
        ],
        ("cycle_B", 600, "4.15"),
    ),
    "frames": (
        [
            f"U {n} | F {n * 2048} | FPS 1200 | H 1.3{n} | pL 0.00{n} | vL 0.5{n} | rew: 0.{n}"
            for n in range(1, 6)
        ],
        ("rew", 5, "0.5"),
    ),
    "durations in words": (
        [
            f"epoch 1 batch {n}/1,245 processed {32 * n} batch-loss {n}.5 grad-norm 4{n}.9 "
            f"epoch-elapsed 0h0{n}m5{n}s total-elapsed {n}h0{n}m5{n}s"
            for n in range(1, 6)
        ],
        ("batch-loss", 5, "5.5"),
    ),
}


@pytest.mark.parametrize("name", CONSOLES)
def test_a_console_of_an_own_loop_is_read(tmp_path, name):
    lines, last = CONSOLES[name]
    write(tmp_path / "nohup.out", lines)
    points = [point for point in read(tmp_path) if point[0].split()[-1] == last[0]]
    assert (points[-1][1], points[-1][2]) == last[1:]
    assert len(points) == len(lines)


@pytest.mark.parametrize(
    ("line", "plan"),
    [
        ("Episode {n}/5000 (14 steps): Episode reward: 0.{n}", {"5000.0"}),
        ("Episode {n}/5000 step {n}000 reward: 0.{n}", set()),
        ("epoch {n}/20 step {n}00/2000 loss: 0.{n}", set()),
        ("step {n}/2000 loss: 0.{n}", {"2000.0"}),
    ],
)
def test_a_total_of_what_the_steps_are_is_the_plan(tmp_path, line, plan):
    write(tmp_path / "nohup.out", [line.format(n=n) for n in range(1, 20)])
    assert {value for tag, _, value in read(tmp_path) if tag == "max_steps"} == plan


ROWS = [f"Epoch {n} | gap: 0.{n}" for n in range(1, 6)]


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        ([f"INFO - Epoch {n}/20, Train Loss: 0.{n}" for n in range(1, 6)], {"num_epochs": 20}),
        (
            ["Args: Namespace(train_epochs=8, lr=0.1)", *(f"Epoch: {n} | gap: 0.{n}" for n in range(1, 6))],
            {"train_epochs": "8", "lr": "0.1"},
        ),
        (["==>Arguments:", "lr:0.01", "epochs:8", *ROWS], {"num_epochs": 8}),
        (["CONFIG A: lr=1e-4, epochs=8, warmup=0.1", *ROWS], {"num_epochs": 8}),
        (["Args: {'seed': 1, 'num_epochs': 8}", *ROWS], {"num_epochs": 8}),
        (["10:15:34 - INFO -   Total epochs = 8.0", *ROWS], {"num_epochs": 8}),
        (
            ["warmup epochs: 3", "ppo_epochs: 4", "n_epochs: 10", "epochs: 0.5", "Epochs: 5, loss: 2", *ROWS],
            {},
        ),
        ([f"Epoch {n}, Train Loss: 0.{n}" for n in range(1, 6)], {}),
        ([f"Epoch {n}/1000, Train Loss: 0.{n}" for n in range(1, 6)], {}),
    ],
    ids=[
        "counted",
        "arguments",
        "a setting a line",
        "settings on a line",
        "a dictionary",
        "behind the words of a logger",
        "other counts",
        "none",
        "far more than it takes",
    ],
)
def test_the_planned_epochs_of_a_console_are_known(tmp_path, lines, settings):
    write(tmp_path / "nohup.out", lines)
    (run,) = discover([tmp_path]).runs
    assert dict(run.source.poll({}, 10**6).config) == settings


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("Train: loss={} acc={} | Val: loss={} acc={}", ["Train loss", "Train acc", "Val loss", "Val acc"]),
        ("[train] loss {}, f1 {} [test] loss {}, f1 {}", ["train loss", "train f1", "test loss", "test f1"]),
        ("loss: {}, mae: {} - val: loss: {}, mae: {}", ["loss", "mae", "val loss", "val mae"]),
        ("train(loss={}, acc={}) val(loss={}, acc={})", ["train loss", "train acc", "val loss", "val acc"]),
        ("epoch {e}: train (loss={} acc={}) val (loss={} acc={})", ["loss", "acc", "val loss", "val acc"]),
        ("epoch {e}: Train -> mse {}, r2 {}; Val -> mse {}, r2 {}", ["mse", "r2", "Val mse", "Val r2"]),
    ],
)
def test_a_second_part_of_the_data_on_a_line_names_what_stands_behind_it(tmp_path, form, names):
    lines = [form.format(2 / n, n / 10, 3 / n, n / 20, e=n) for n in range(1, 6)]
    write(tmp_path / "nohup.out", [text for n in range(5) for text in (f"Epoch {n + 1}/5", lines[n])])
    last = {name: value for name, step, value in read(tmp_path) if step == 5 and name != "epoch"}
    assert last == dict(zip(names, ["0.4", "0.5", "0.6", "0.25"], strict=True))


def test_an_evaluation_over_episodes_is_a_reward(tmp_path):
    lines = []
    for n in range(1, 6):
        lines += [f"Total T: {n}00{i} Episode Num: {n}{i} Reward: {n}.{i}" for i in range(1, 4)]
        lines += ["-" * 39, f"Evaluation over 10 episodes: {n}0.500", "-" * 39]
    write(tmp_path / "nohup.out", lines)
    rewards = [(step, value) for name, step, value in read(tmp_path) if name == "Evaluation reward"]
    assert rewards == [(int(f"{n}003"), f"{n}0.5") for n in range(1, 6)]


def test_metrics_in_another_language_are_read(tmp_path):
    lines = []
    for n in range(1, 6):
        lines += [f"INFO:__main__:Epoch {n}/5", f"INFO:__main__:  - 平均训练损失: 0.{n}"]
        lines += [f"INFO:__main__:  - 阈值 0.{at} 训练准确率: 0.{n}{at}" for at in (5, 7, 9)]
    write(tmp_path / "bert_training.log", lines)
    points = [point for point in read(tmp_path) if point[0] == "平均训练损失"]
    assert points == [("平均训练损失", n, f"0.{n}") for n in range(1, 6)]


def test_chinese_as_windows_writes_it_is_read_while_it_grows(tmp_path):
    rows = [f"当前轮次:{n}/50 | 当前损失值:{10 / n:.3f} | 当前准确率:{n}.25%\r\n" for n in range(1, 13)]
    content = "".join(["模型训练开始\r\n", *rows]).encode("gbk")
    path = tmp_path / "train_log.txt"
    path.write_bytes(content[:301])
    reader = Reader(tmp_path).poll()
    path.write_bytes(content)
    points = reader.poll().points
    assert [step for tag, step, _ in points if tag == "当前损失值"] == [*range(1, 13)]


def test_the_index_in_a_list_of_tuples_is_no_metric(tmp_path):
    lines = [
        f"[2026-01-01 06:31:{n:02},060][23170] Avg episode reward: [(0, '17{n}.2'), (1, '3{n}.5')]"
        for n in range(1, 13)
    ]
    write(tmp_path / "sf_log.txt", lines)
    last_values = {tag.split()[-1]: value for tag, _, value in read(tmp_path)}
    assert last_values == {"reward": "1712.2", "2": "312.5"}


TABLES = {
    "a comment header": (
        "loss.dat",
        ["# step, loss_train, loss_test", *(f"{n}00, {1 / n}, {2 / n}" for n in range(1, 6))],
        ("loss_test", 500, "0.4"),
    ),
    "lengths of episodes": (
        "train_log.csv",
        ["Episode,Score,Steps", *(f"{n},{n / 4},{100 - n * (-1) ** n}" for n in range(1, 9))],
        ("Score", 8, "2.0"),
    ),
    "only lengths": (
        "episode_rewards.csv",
        ["Episode,Total Steps", *(f"{n},{9 - n}.0" for n in range(8))],
        ("Total Steps", 7, "2.0"),
    ),
    "one column below epochs": (
        "train_log.txt",
        [
            line
            for n in range(3)
            for line in (f"Epoch {n}", f"{3 / (n + 1)}", f"{2 / (n + 1)}", "0.5", "0.25")
        ],
        ("train_log", 12, "0.25"),
    ),
    "no header": ("rewards.csv", [f"{n / 4}" for n in range(1, 7)], ("rewards", 6, "1.5")),
    "a header again": (
        "log.csv",
        ["update,return", *(f"{n},{n / 2}" for n in range(1, 5)), "update,return", "5,2.5", "6,3.0"],
        ("return", 6, "3.0"),
    ),
    "a header with commas above blanks": (
        "loss.dat",
        ["# step, loss_train, loss_test", *(f"{n}e+02 {1 / n} {2 / n}" for n in range(1, 6))],
        ("loss_test", 500, "0.4"),
    ),
    "a loss for each equation": (
        "loss.dat",
        [
            "# step, loss_train, loss_test, metrics_test",
            *(f"{n}e+02 {1 / n} 2.5 {2 / n} 3.5 0.{n}" for n in range(1, 6)),
        ],
        ("loss_test", 500, "3.9"),
    ),
    "cells with line breaks": (
        "reward_log.csv",
        [
            "episode,reward,q_value",
            *(f'{n},{n / 2},"tensor([0.5, 0.25,\n        0.125],\n       device=cpu)"' for n in range(1, 6)),
        ],
        ("reward", 5, "2.5"),
    ),
    "metrics beside those of held-out data": (
        "EXP1-0_SOFT.csv",
        ["loss,jac,val_loss,val_jac", *(f"{1 / n},0.{n},{2 / n},0.{n}" for n in range(1, 6))],
        ("val_loss", 5, "0.4"),
    ),
    "a header without the last name": (
        "log.txt",
        ["epoch\tlr\ttestAcc", *(f"{n}\t0.1\t7{n}.5\t6{n}.5" for n in range(5))],
        ("testAcc 2", 4, "64.5"),
    ),
    "a cell that the header leaves out": (
        "loss.tsv",
        ["EPOCH\tTRAIN_LOSS\tF1\tDEV_LOSS", *(f"{n}\t{1 / (n + 1)}\t\t_\t0.{n}" for n in range(5))],
        ("DEV_LOSS", 4, "0.4"),
    ),
    "a count with a point": (
        "scores.tsv",
        ["epoch\tval_loss", *(f"\t{n}.0000\t{1 / (n + 1)}" for n in range(5))],
        ("val_loss", 4, "0.2"),
    ),
    "rounds": (
        "federated.csv",
        ["rounds,accuracy_avg,accuracy_mime", *(f"{n},0.{n},0.{n}5" for n in range(1, 6))],
        ("accuracy_mime", 5, "0.55"),
    ),
    "dates and names without a header": (
        "training_metrics.csv",
        [f"2026-08-08T11:3{n}:46.6,{n},{9 / n},0.{n},0.5,0.25,{n}.npz" for n in range(1, 6)],
        ("3", 5, "0.5"),
    ),
    "a date that comes again": (
        "fl_metrics.csv",
        ["start,model,round,acc", *(f"2025-12-03 22:27:44,CNN,{n},0.{n}" for n in range(1, 6))],
        ("CNN acc", 5, "0.5"),
    ),
    "a switch names no series": (
        "fl_metrics.csv",
        ["round,secure,personal,acc", *(f"{n},False,none,0.{n}" for n in range(1, 6))],
        ("acc", 5, "0.5"),
    ),
    "metrics without a header": (
        "metrics.csv",
        [f"one,0.{n},{n * 7}" for n in range(1, 6)],
        ("one 1", 5, "0.5"),
    ),
    "printed lists": (
        "train.log",
        [f"[{n // 4}, {n % 4}, {1 / (n + 1)}]" for n in range(8)],
        ("train", 7, "0.125"),
    ),
    "printed tensors": (
        "PSNR.csv",
        [f"tensor({n}.5, device='cuda:0', grad_fn=<MulBackward0>)" for n in range(1, 6)],
        ("PSNR", 5, "5.5"),
    ),
    "statistics of what the name of the file says": (
        "scores.tsv",
        ["avg\tmin\tmax", *(f"{n}.5\t{n}.0\t{n}.75" for n in range(1, 6))],
        ("scores max", 5, "5.75"),
    ),
    "the part of the data that the name of the file says": (
        "train_label_error_rate.csv",
        ["iteration, error_rate", *(f"{n},{1 / n}" for n in range(1, 6))],
        ("train/error_rate", 5, "0.2"),
    ),
    "the part of the data that the name of a text says": (
        "val_loss_deeper.txt",
        [f"epoch: {n} iter: {n * 750} loss: {1 / n} accuracy: 0.{n}" for n in range(1, 6)],
        ("val/loss", 3750, "0.2"),
    ),
    "a text whose name says no metric": (
        "test_all.log",
        [f"epoch: {n} iter: {n * 750} loss: {1 / n} accuracy: 0.{n}" for n in range(1, 6)],
        ("loss", 3750, "0.2"),
    ),
    "a count and the time": (
        "results.csv",
        [f"{n},{n / 4},{90 - n},{1755339958 + n}" for n in range(6)],
        ("1", 5, "1.25"),
    ),
    "correlations of embeddings": (
        "similarity_evaluation_sts-dev_results.csv",
        ["epoch,steps,cosine_pearson,cosine_spearman", *(f"{n},-1,0.{n}25,0.{n}5" for n in range(5))],
        ("cosine_spearman", 4, "0.45"),
    ),
    "names of several words, as scikit-learn's boosting prints them": (
        "train.log",
        [
            "      Iter       Train Loss   Remaining Time ",
            *(f"{n:10} {1 / n:16.4f} {'1.23m':>16}" for n in range(1, 6)),
        ],
        ("Train Loss", 5, "0.2"),
    ),
    "bars": (
        "history.txt",
        ["epoch | loss | acc", *(f"{n} | {1 / n} | 0.{n}" for n in range(1, 6))],
        ("acc", 5, "0.5"),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_an_own_loop_is_read(tmp_path, name):
    file, lines, last = TABLES[name]
    write(tmp_path / file, lines)
    points = [point for point in read(tmp_path) if point[0] == last[0]]
    assert points[-1] == last


DOCUMENTS = {
    "exported by TensorBoard": (
        "train_loss.json",
        [[1700000000.5 + n, n * 10, 1 / n] for n in range(1, 6)],
        ("train_loss", 50, "0.2"),
    ),
    "epochs whose keys say so": (
        "results.json",
        {f"epoch_{n}": {"train_loss": 1 / n, "dev": {"accuracy": n / 8}} for n in range(1, 6)},
        ("dev/accuracy", 5, "0.625"),
    ),
    "objects of epochs, for both parts of the data": (
        "outcome.json",
        {
            "seed": 3,
            "epochs_log": {
                f"{part}_{n}": {"loss": 1 / n, "f1": n / 8}
                for n in range(1, 6)
                for part in ("train", "valid")
            },
        },
        ("valid/f1", 5, "0.625"),
    ),
    "rounds of clients": (
        "fedavg_metrics.json",
        {"algorithm": "avg", "round_metrics": [{"round_number": n, "accuracy": 1 / n} for n in range(1, 6)]},
        ("round_metrics/accuracy", 5, "0.2"),
    ),
    "curves of seeds": (
        "merged_curves.json",
        {"steps": [50, 60], "curves": {"0": [{"step": 50 + n, "em": n / 4} for n in range(4)]}},
        ("curves/0/em", 53, "0.75"),
    ),
    "rows below a name that says nothing of them": (
        "training_metrics.json",
        {"total_steps": 40, "steps": [{"step": 10 * n, "loss": 0.0, "reward": n / 8} for n in range(1, 5)]},
        ("reward", 40, "0.5"),
    ),
    "rows below such a name, beside lists of one metric": (
        "dpo_history.json",
        {
            "train_loss": [{"step": n, "loss": 1 / n} for n in range(1, 5)],
            "raw_log_history": [{"step": n, "loss": 1 / n, "rewards/margins": n / 4} for n in range(1, 5)],
        },
        ("rewards/margins", 4, "1.0"),
    ),
    "rows of two parts of the data": (
        "training_log.json",
        {
            "train_history": [{"epoch": n, "loss": 1 / n, "acc": n / 4} for n in range(1, 5)],
            "val_history": [{"epoch": n, "loss": 2 / n, "acc": n / 8} for n in range(1, 5)],
        },
        ("train_history/loss", 4, "0.25"),
    ),
    "lists of metrics": (
        "grpo_metrics.json",
        {"rewards_avg": [0.5, 0.25, 0.125], "val_accuracies": [0.5, 0.75, 0.875]},
        ("val_accuracies", 3, "0.875"),
    ),
    "lists of metrics beside one of what was seen": (
        "tracking.json",
        {"train_losses": [0.5, 0.25, 0.125], "val_losses": [0.75, 0.5, 0.25], "tokens_seen": [8, 16, 24]},
        ("val_losses", 3, "0.25"),
    ),
    "lists of losses of each step and of each epoch": (
        "t5_infos.json",
        {
            "train_losses": [0.5, 0.25, 0.125, 0.125, 0.0625],
            "eval_losses": [0.75, 0.5, 0.25],
            "trainable": "1 of 9",
        },
        ("eval_losses", 3, "0.25"),
    ),
    "lists of metrics beside one of times, below other results": (
        "results.json",
        {
            "model": "gpt2",
            "training_history": {
                "train_loss": [0.5, 0.25, 0.125],
                "eval_loss": [0.75, 0.5, 0.25],
                "epoch_times": [8.5, 8.25, 8.5],
            },
        },
        ("eval_loss", 3, "0.25"),
    ),
    "lists of metrics beside a confusion matrix of each epoch": (
        "cl_results.json",
        {
            "train_metrics": {"loss": [0.5, 0.25, 0.125]},
            "val_metrics": {"accuracy": [0.5, 0.75, 0.875], "confusion_matrix": [[[9, 1], [2, 8]]] * 3},
        },
        ("val_metrics/accuracy", 3, "0.875"),
    ),
    "lists of metrics below the names of methods, beside a matrix": (
        "fl_results.json",
        {
            method: {"f1_matrix": [[0.9, 0.1], [0.2, 0.8]], "loss": [0.5, 0.25, 0.125]}
            for method in ("iid", "non_iid")
        },
        ("non_iid/loss", 3, "0.125"),
    ),
    "metrics of Sacred, each with its steps": (
        "metrics.json",
        {
            f"{name}return_mean": {
                "steps": [100 * n for n in range(1, count)],
                "timestamps": [f"2023-01-01T10:00:0{n}.5" for n in range(1, count)],
                "values": [n / 4 for n in range(1, count)],
            }
            for name, count in (("", 9), ("test_", 5))
        },
        ("test_return_mean", 400, "1.0"),
    ),
    "errors of CatBoost": (
        "catboost_training.json",
        {
            "meta": {
                "learn_metrics": [{"name": "Logloss"}],
                "test_metrics": [{"name": "Logloss"}, {"name": "AUC"}],
            },
            "iterations": [{"learn": [1 / n], "test": [2 / n, n / 8], "iteration": n} for n in range(1, 5)],
        },
        ("test/AUC", 4, "0.5"),
    ),
    "a table of W&B, whose columns are named apart": (
        "reward_history.json",
        {"columns": ["step", "reward"], "data": [[10 * n, n / 4] for n in range(1, 5)]},
        ("reward", 40, "1.0"),
    ),
    "columns below a name that says nothing": (
        "ppo_metrics.json",
        {
            "config": {"gamma": 0.99},
            "history": {"env_steps": [10, 20, 30], "value_loss": [2.0, 1.0, 0.5], "heldout_sr": [0, 0, 1]},
        },
        ("value_loss", 30, "0.5"),
    ),
    "columns of both parts of the data, some with names that say nothing": (
        "metrics_unet.json",
        {
            "best": 0.5,
            "last": {"loss": 0.25},
            "history": {"train_loss": [1.0, 0.5, 0.25], "val_loss": [2.0, 1.0, 0.5], "val_prec": [0, 0, 1]},
        },
        ("val_loss", 3, "0.5"),
    ),
    "columns of the training": (
        "ppo_metrics.json",
        {"config": {"gamma": 0.99}, "train": {"loss": [2.0, 1.0, 0.5], "accuracy": [0.25, 0.5, 0.75]}},
        ("train/accuracy", 3, "0.75"),
    ),
    "curves of nothing but parts of the data, which fall": (
        "history.json",
        {"train": [2.5, 2.0, 1.75, 1.5], "val": [2.75, 2.25, 2.0, 2.0]},
        ("loss val", 4, "2.0"),
    ),
    "losses, by the name of the file alone": (
        "loss_history.json",
        {"lstm": [1.0, 0.5, 0.25, 0.125], "gru": [2.0, 1.0, 0.5, 0.25]},
        ("loss_history gru", 4, "0.25"),
    ),
    "rows of the parts of a loss, of each part of the data": (
        "loss_history.json",
        {
            part: [{"total": first / n, "box": first / 4 / n} for n in (1, 2, 4)]
            for part, first in (("train", 4.0), ("val", 8.0))
        },
        ("val/total", 3, "2.0"),
    ),
    "a key for each part of the data at each epoch": (
        "training_history.json",
        {
            f"{part}_epoch_{n}": {"tags_loss": 2 / n, "tags_f1": n / 8, "total_loss": first / n}
            for n in (1, 2, 4)
            for part, first in (("train", 4.0), ("val", 8.0))
        },
        ("val/total_loss", 4, "2.0"),
    ),
    "episodes of which it is told how long they were": (
        "training_metrics.json",
        {
            "training": [{"episode": n, "reward": n / 4, "steps": 40 - 3 * (n % 3)} for n in range(9)],
            "validation": [{"episode": n, "mean_reward": n / 8} for n in (0, 4, 8)],
        },
        ("training/reward", 8, "2.0"),
    ),
    "a list of numbers": ("losses.json", [1.0, 0.5, 0.25, 0.125], ("losses", 4, "0.125")),
    "clients": (
        "history.json",
        {"client_1": {"loss": [1.0, 0.5, 0.25]}, "client_2": {"loss": [2.0, 1.0, 0.5]}},
        ("client_2/loss", 3, "0.5"),
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_an_own_loop_is_read(tmp_path, name):
    file, document, last = DOCUMENTS[name]
    (tmp_path / file).write_text(json.dumps(document))
    points = [point for point in read(tmp_path) if point[0] == last[0]]
    assert points[-1] == last


@pytest.mark.parametrize(
    ("counts", "stated", "settings"),
    [
        ("epoch", {"epochs": 20}, {"epochs": 20}),
        ("episode", {"max_episodes": 500}, {"max_episodes": 500, "max_steps": 500}),
        ("step", {"num_episodes": 500}, {"num_episodes": 500}),
    ],
)
def test_a_document_states_its_settings(tmp_path, counts, stated, settings):
    rows = [{counts: n, "reward": n / 4} for n in range(1, 9)]
    document = {"config": stated, "training": rows, "validation": rows[::4]}
    (tmp_path / "training_metrics.json").write_text(json.dumps(document))
    (run,) = discover([tmp_path]).runs
    assert dict(run.source.poll({}, 10**6).config) == settings


@pytest.mark.parametrize(("condition", "totals"), [(0.0, {"loss_train"}), (2.5, {"loss_train", "loss_test"})])
def test_a_test_that_lacks_a_condition_has_no_total(tmp_path, condition, totals):
    rows = [f"{n}e+02 {1 / n} 2.5 {2 / n} {condition}" for n in range(1, 6)]
    (tmp_path / "loss.dat").write_text("\n".join(["# step, loss_train, loss_test", *rows, ""]))
    points = Reader(tmp_path).poll().points
    assert {tag for tag, *_ in points if "part" not in tag} == totals


def test_a_document_that_grows_gives_what_is_new(tmp_path):
    path = tmp_path / "losses.json"
    values = [1.0, 0.5, 0.25]
    path.write_text(json.dumps(values))
    reader = Reader(tmp_path).poll()
    path.write_text(json.dumps([*values, 0.125])[:-3])
    reader.poll()
    path.write_text(json.dumps([*values, 0.125]))
    assert reader.poll().points == [("losses", n, str(v)) for n, v in enumerate([*values, 0.125], 1)]
    assert not reader.restarts
    path.write_text(json.dumps([2.0, 1.0, 0.5]))
    assert reader.poll().points[4:] == [("losses", n, str(v)) for n, v in enumerate([2.0, 1.0, 0.5], 1)]
    assert reader.restarts == 1


def test_lines_that_are_being_rewritten_are_no_new_training(tmp_path):
    path = tmp_path / "stats.jsonl"
    lines = [json.dumps({"ep": n, "avg_ret": float(n)}) for n in range(30)]
    path.write_text("\n".join(lines))
    reader = Reader(tmp_path).poll()
    path.write_text("\n".join(lines[:12]))
    reader.poll()
    path.write_text("\n".join([*lines, json.dumps({"ep": 30, "avg_ret": 30.0})]))
    assert [point[1] for point in reader.poll().points] == [*range(31)]
    assert not reader.restarts
    path.write_text("\n".join(lines[:12]))
    reader.poll()
    assert len(reader.poll().points) == 31 + 12
    assert reader.restarts == 1


DATA = {
    "prices.csv": ["date,open,close", *(f"2026-01-0{n},{n}.5,{n}.25" for n in range(1, 9))],
    "iris.csv": ["sepal,petal,species", *(f"5.{n},1.{n},setosa" for n in range(9))],
    "train.csv": ["id,age,cost,loss", *(f"{n},{n * 7 % 90},{n * 3},0.{n}" for n in range(1, 9))],
    "predictions.csv": ["id,score", *(f"{n * 7919 % 1000},0.{n}" for n in range(1, 9))],
    "access.log": [f'127.0.0.1 "GET /run?epoch={n}&loss=1.{n} HTTP/1.1" 200 {n}' for n in range(1, 9)],
    "stackloss.csv": ["STACKLOSS,AIRFLOW", *(f"{n * 7 % 40},{n * 5 % 80}" for n in range(1, 9))],
    "gate_metrics.csv": [
        "source_index,sample_id,iou,loss",
        *(f"{n},sample_{n:03},0.{n},0.{n}5" for n in range(1, 9)),
    ],
    "summary_report.csv": [
        "scope,rounds,last_accuracy,best_accuracy",
        *(f"client {n},10,0.{n},0.{n}5" for n in range(1, 9)),
    ],
    "all_trials.csv": ["trial,step,eval_loss", *(f"{n},100,0.{n}" for n in range(1, 9))],
    "train_ids.txt": [f"{n * 7919 % 1000}" for n in range(1, 9)],
    "train_order.txt": [f"{n * 7919 % 1000}" for n in range(1, 9)],
    "sensitivity.csv": ["scenario,delay", *(f"case {n},{n}.5" for n in range(1, 9))],
    "pockets.txt": [
        f"{name}score: 0.{n}" for n in range(1, 6) for name in ("", "drug ", "charge ", "volume ")
    ],
    "sizes.txt": [f"  ({n}): GroupNorm(8, {n * 8}, eps=1e-0{n})" for n in range(1, 6)],
    "readings.csv": [f"{n},{n}.5,{1755339958 + n}" for n in range(1, 9)],
    "notes.txt": [f"{n}. Lower the loss to 0.{n} and try again" for n in range(1, 3)],
}


@pytest.mark.parametrize(
    "document",
    [
        {"train": [12, 7, 3, 44], "val": [9, 1, 5, 8]},  # what is in which part
        {"train": [0.5, 0.75, 0.875, 1.0], "val": [0.5, 0.625, 0.75, 0.75]},  # they may be anything
        {"train": [2.5, 2.0, 1.75], "val": [2.5, 2.25]},
    ],
)
def test_lists_of_parts_of_the_data_are_no_losses(tmp_path, document):
    (tmp_path / "history.json").write_text(json.dumps(document))
    assert not discover([tmp_path]).runs


def test_lists_that_were_printed_into_a_document_are_read(tmp_path):
    losses = [2.5, 2.0, float("nan"), 1.75, 1.5]
    document = {"training_loss": str(losses), "val_acc": "[0.25, 0.5, 0.5, 0.75, 0.75]", "args": "[a, b]"}
    (tmp_path / "history.json").write_text(json.dumps(document))
    points = read(tmp_path)
    assert [step for tag, step, _ in points if tag == "training_loss"] == [1, 2, 3, 4, 5]
    assert [value for tag, _, value in points if tag == "val_acc"] == ["0.25", "0.5", "0.5", "0.75", "0.75"]
    assert {tag for tag, _, _ in points} == {"training_loss", "val_acc"}


@pytest.mark.parametrize("name", DATA)
def test_data_are_no_run(tmp_path, name):
    write(tmp_path / name, DATA[name])
    assert not discover([tmp_path]).runs


def test_further_tables_of_metrics_beside_one_of_a_known_form_are_read(tmp_path):
    write(tmp_path / "baseline_metrics.csv", ["epoch,train_loss", *(f"{n},0.{n}" for n in range(1, 6))])
    write(
        tmp_path / "client_metrics.csv", ["phase,round,cid,acc", *(f"fit,{n},0,0.{n}" for n in range(1, 6))]
    )
    write(tmp_path / "global_metrics.csv", ["round,acc", *(f"{n},0.{n}" for n in range(1, 6))])
    write(tmp_path / "predictions.csv", ["round,acc", *(f"{n},0.{n}" for n in range(1, 6))])
    runs = discover([tmp_path]).runs
    assert [run.path.stem for run in runs] == ["baseline_metrics", "client_metrics", "global_metrics"]


def test_what_a_tracker_says_of_itself_is_no_run(tmp_path):
    (tmp_path / "debug-internal.log").write_text("{}\n")
    lines = [f"config: {{'epochs': {n}00, 'max_lr': 0.{n}, 'loss_weight': 0.{n}5}}" for n in range(1, 6)]
    write(tmp_path / "debug.log", lines)
    assert not discover([tmp_path], are_over=True).runs


@pytest.mark.parametrize("key", ["params", "config"])
def test_rows_that_state_their_own_settings_are_trainings(tmp_path, key):
    rows = [{"step": n, "eval_loss": n / 8, key: {"lr": n / 100}} for n in range(1, 9)]
    (tmp_path / "results.json").write_text(json.dumps({"n": 8, "all": rows}))
    assert not discover([tmp_path]).runs
    (tmp_path / "results.json").write_text(json.dumps({"n": 8, "all": [row | {key: {}} for row in rows]}))
    assert discover([tmp_path]).runs, "they are alike"


def test_a_document_of_puzzles_is_no_run(tmp_path):
    grid = [[n, n % 5] for n in range(9)]
    document = {f"{n:04x}f1{n:02x}": [grid] for n in range(4)} | {f"{n:08x}": [grid] for n in range(400)}
    (tmp_path / "training_solutions.json").write_text(json.dumps(document))
    assert not discover([tmp_path]).runs


@pytest.mark.parametrize(("name", "is_read"), [("history_adam.json", True), ("train_adam.json", False)])
def test_a_large_document_is_read_where_it_is_called_a_history(tmp_path, name, is_read):
    steps = [{"seconds": 1.5, "memory": 5000 + n % 7, "step": n, "of": "a step" * 20} for n in range(6000)]
    document = {"options": {"lr": 1e-3}, "loss": [4 - n / 2000 for n in range(6000)], "stats": steps}
    (tmp_path / name).write_text(json.dumps(document))
    assert (tmp_path / name).stat().st_size > MAX_DOCUMENT
    assert bool(discover([tmp_path]).runs) is is_read


def test_many_tables_of_metrics_are_runs_and_many_tables_of_data_are_none(tmp_path):
    for number in range(30):
        lines = ["round,test_accuracy", *(f"{n},0.{n}" for n in range(1, 6))]
        write(tmp_path / f"eval_metrics_{number}.csv", lines)
        write(tmp_path / f"readings_{number}.csv", lines)
    assert len(discover([tmp_path]).runs) == 30


def test_a_log_beside_one_of_a_known_format_is_left_to_it(tmp_path):
    write(tmp_path / "metrics.jsonl", (json.dumps({"step": n, "loss": 1 / n}) for n in range(1, 6)))
    write(tmp_path / "console.log", CONSOLES["own loop"][0])
    assert [run.format for run in discover([tmp_path]).runs] == ["jsonl"]


def test_what_lies_in_the_directory_of_a_run_is_a_part_of_it(tmp_path):
    run = tmp_path / "run-1"
    (run / "plots" / "metrics").mkdir(parents=True)
    (run / "trainer_state.json").write_text(
        json.dumps({"log_history": [{"step": n, "loss": 1 / n} for n in range(1, 5)], "global_step": 4})
    )
    write(run / "plots" / "loss.csv", ["step,loss", *(f"{n},{1 / n}" for n in range(1, 5))][:1])
    write(run / "plots" / "train_loss.txt", [f"{1 / n}" for n in range(1, 9)])
    assert [each.format for each in discover([tmp_path]).runs] == ["trainer_state"]


def test_one_line_of_a_log_that_is_over_is_enough_where_a_person_names_it(tmp_path):
    path = write(
        tmp_path / "evaluation.log", ["Loading the model", "Epoch 3: test accuracy: 0.914, f1: 0.88"]
    )
    assert not discover([path]).runs
    (run,) = discover([path], are_over=True).runs
    (chunk,) = flush(run.source, run.source.poll({}, 10).cursor)
    assert 0.88 in chunk.value


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("log.txt", ["training", "Epoch: [0][50/333] Time 0.951 (0.989) Loss 0.3506 (0.5085)"]),
        ("training_history.csv", ["accuracy,loss,val_accuracy,val_loss", "0.5,1.25,0.5,1.5"]),
    ],
)
def test_one_line_of_a_log_that_is_over_is_enough(tmp_path, file, lines):
    write(tmp_path / file, lines)
    assert not discover([tmp_path]).runs
    assert len(discover([tmp_path], are_over=True).runs) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("train_opt.txt", "lr: 0.0002 in epoch 1"),
        ("debug.log", "config: {'epochs': 20, 'max_lr': 0.5, 'sigma': 0.25}"),
        ("notes.txt", "epoch 3 loss 0.5 was the best one"),
    ],
)
def test_one_line_of_settings_is_no_log(tmp_path, file, line):
    write(tmp_path / file, ["training", line])
    assert not discover([tmp_path], are_over=True).runs


def test_what_stands_behind_long_bars_is_a_log(tmp_path):
    states = "\r".join(f"{n}%|##| {n}/100 [00:09<00:00, 61.9it/s]" for n in range(1, 101))
    lines = [f"{states * 20}epoch  {n} | train_loss: {1 / n} | test_loss: {2 / n}" for n in range(1, 6)]
    write(tmp_path / "train.log", lines)
    assert [point for point in read(tmp_path) if point[0] == "test_loss"][-1][2] == "0.4"


def test_what_an_evaluation_says_of_each_sample_is_no_curve(tmp_path):
    lines = []
    for epoch in range(1, 6):
        lines += [f"INFO - Sample {n}, pixAcc: 9{n}.5%, mIoU: 3{n}.5%" for n in range(1, 6)]
        lines.append(f"INFO - Epoch: {epoch} Average: pixAcc: 8{epoch}.5%, mIoU: 4{epoch}.5%")
    write(tmp_path / "evaluation.log", lines)
    points = [point for point in read(tmp_path) if "pixAcc" in point[0]]
    assert [(step, value) for _, step, value in points] == [(n, f"8{n}.5") for n in range(1, 6)]


def test_what_an_evaluation_says_of_each_class_is_no_curve(tmp_path):
    lines = []
    for epoch in range(1, 6):
        lines += [f"Epoch {epoch}", f"loss: 0.{95 - epoch}"]
        lines += [f"class {n:02}: #TP={40 * n}, #FP={9 * n}, IoU=0.{8 - n}1" for n in range(8)]
        lines.append(f"mean IoU: 0.{30 + epoch}")
    write(tmp_path / "train.log", lines)
    points = [point for point in read(tmp_path) if "IoU" in point[0]]
    assert points == [("mean IoU", n, f"0.{30 + n}") for n in range(1, 6)]


def test_a_training_that_counts_its_samples_has_a_curve(tmp_path):
    write(tmp_path / "train.log", [f"samples {n * 64}, loss {1 / n}" for n in range(1, 6)])
    assert [value for tag, _, value in read(tmp_path) if tag == "loss"][-1] == "0.2"


def test_the_place_in_a_program_is_no_metric(tmp_path):
    lines = []
    for n in range(1, 6):
        lines.append(f"2026-01-18 16:32:0{n}.236 | DEBUG    | __main__:accuracy_reward:112 - answer {n}")
        lines.append(f"I0604 21:38:0{n}.000 861 solver.cpp:222] Iteration {n}00, loss = 0.{n}")
    write(tmp_path / "train.log", lines)
    assert {tag for tag, _, _ in read(tmp_path)} == {"loss"}


@pytest.mark.parametrize("place", ["INFO - main.py - train - 52", "main - <module> - 52 - INFO"])
def test_a_line_of_source_between_dashes_hides_no_step(tmp_path, place):
    lines = [f"2026-01-18 16:32:0{n},236 - {place} - [train] epoch:0 {n}/9 loss:0.{n}" for n in range(1, 6)]
    write(tmp_path / "train.log", lines)
    points = read(tmp_path)
    assert {tag for tag, _, _ in points} == {"loss", "epoch"}
    assert [step for tag, step, _ in points if tag == "loss"] == [1, 2, 3, 4, 5]


def test_a_number_between_dashes_is_that_of_its_name(tmp_path):
    write(tmp_path / "train.log", [f"INFO - epoch - {n} - loss - {n} - acc - 0.{n}" for n in range(1, 6)])
    assert [(step, value) for tag, step, value in read(tmp_path) if tag == "loss"][-1] == (5, "5.0")


def test_lines_without_metrics_are_passed_on_with_the_step_before(tmp_path):
    lines = [f"EPOCH[{n}/5] loss{0.5 / n:.3f}" for n in range(1, 5)]
    write(tmp_path / "train.out", [*lines, "CUDA out of memory"])
    (run,) = discover([tmp_path]).runs
    said = [*run.source.poll({}, 1000).lines]
    assert (said[-1].text, said[-1].step) == ("CUDA out of memory", 4)


def test_names_without_an_ending(tmp_path):
    rows = [f"Epoch {n}/9 loss: 0.{n} acc: 0.5{n}" for n in range(1, 6)]
    of_sockeye = [f"{n}\tepoch={n}\tbleu-val=0.{n}\tperplexity-train={9 / n}" for n in range(1, 6)]
    data = [f"{n} dog 0.{n}" for n in range(1, 6)]
    for name, lines in {
        "a/train_model_20240131": rows,
        "b/2024-01-31_10-00-00": rows,
        "c/metrics": of_sockeye,
        "d/pairs_20240131": data,
        "e/weights_20240199": rows,
        "f/loss": rows,
    }.items():
        (tmp_path / name).parent.mkdir()
        write(tmp_path / name, lines)
    read_names = {run.path.parent.name for run in discover([tmp_path]).runs}
    assert read_names == {"a", "b", "c"}


def test_what_looks_like_a_log_and_is_not_read_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a" / "train.log", [f"batch of {n} images loaded" for n in range(9)])
    write(tmp_path / "a" / "notes.txt", ["Buy milk"])
    write(tmp_path / "b" / "nohup.out", CONSOLES["own loop"][0])
    found = discover([tmp_path])
    assert [run.path.name for run in found.runs] == ["nohup.out"]
    (issue,) = found.unread
    assert issue.path == tmp_path / "a" / "train.log"
    assert issue.problem.startswith("no line of numbers comes again; nearest came “")
    assert unread_line(found.unread) == (
        "1 more file looks like a log and holds no numbers that sentinel understands: train.log; "
        "`sentinel runs --unread` shows why"
    )
    assert unread_line(()) == ""
    assert unread_line(found.unread * 7, more="").startswith("7 files look like logs and hold no numbers")


def test_a_listing_shows_why_a_file_is_not_read(tmp_path):
    write(tmp_path / "train.log", [f"batch of {n} images loaded" for n in range(9)])
    result = CliRunner().invoke(program(), ["runs", "--unread", str(tmp_path)])
    assert result.output.replace("\n", "") == (
        f"{tmp_path}/train.log: no line of numbers comes again; nearest came “batch of 8 images loaded” (9 "
        "times): no word in it names a metric"
        "1 file looks like a log and holds no numbers that sentinel understands"
        '`[[console]] line = "loss {loss} at {step}"` in sentinel.toml has such lines read; '
        "`sentinel check-config` tries it"
    )


@pytest.mark.parametrize(
    ("lines", "lack"),
    [
        (["hello", "world"], "no line holds a number"),
        (
            ["reading 3 files", "loss 0.5 for now"],
            "nearest came “loss 0.5 for now” (once): it does not come again",
        ),
        (["flow 1", "flow 2", "flow 3"], "nearest came “flow 3” (3 times): no word in it names a metric"),
        (
            ["password=abcdefghijk loss 1"],
            "nearest came “password=*** loss 1” (once): it does not come again",
        ),
    ],
)
def test_the_line_that_came_nearest(lines, lack):
    assert nearest(lines) == lack


QQ = [f"2026-01-02 03:04:{n:02} run qq {n / 4} after {n}0!" for n in range(1, 9)]


def test_a_form_that_a_person_names_is_read(tmp_path):
    write(tmp_path / "train.log", QQ)
    forms = (LineForm("{time} run qq {qq} after {step}"),)
    assert not discover([tmp_path]).runs
    for place in (tmp_path, tmp_path / "train.log"):
        (run,) = discover([place], forms=forms).runs
        (chunk,) = run.source.poll({}, 1000).chunks
        assert list(chunk.tags) == ["qq"]
        assert chunk.step.tolist() == [n * 10 for n in range(1, 9)]
        assert chunk.value.tolist() == [n / 4 for n in range(1, 9)]
        assert (chunk.time > 1.7e9).all()


def test_printed_times_are_local_unless_the_log_names_a_zone(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        stamps = {
            "local": "2026-01-01 09:00:0{}",
            "named": "2026-01-01 00:00:0{} UTC",
            "offset": "2026-01-01 01:00:0{}+01:00",
        }
        for name, stamp in stamps.items():
            (tmp_path / name).mkdir()
            write(
                tmp_path / name / "my.log",
                [f"{stamp.format(n)} step {n} gamma loss 0.{n}" for n in range(1, 9)],
            )
            assert Reader(tmp_path / name).poll().times[:2] == [1767225601.0, 1767225602.0]
        result = CliRunner().invoke(program(), ["runs", "--details", str(tmp_path / "local")])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "2026-01-01 00:00:01 UTC to 2026-01-01 00:00:08 UTC" in " ".join(result.output.split())
    assert "this machine's local time (JST, +0900)" in " ".join(result.output.split())


def test_a_form_comes_before_a_known_one(tmp_path):
    lines = [f"step {n} loss {n / 4} of gamma {n / 8}" for n in range(1, 9)]
    write(tmp_path / "train.log", lines)
    (run,) = discover([tmp_path], forms=(LineForm("step {step} {*} gamma {gamma}"),)).runs
    (chunk,) = run.source.poll({}, 1000).chunks
    assert list(chunk.tags) == ["gamma"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("step {step}", "names no metric"),
        ("{a}{b}", "nothing between"),
        ("{a} {b", "without the other"),
        ("a {} b {c}", "name of its own"),
        ("{a} {a}", "name of its own"),
        ("{a}" * 200, "more than 500"),
    ],
)
def test_a_form_that_no_line_has_is_refused(line, problem):
    with pytest.raises(ValueError, match=problem):
        LineForm(line)


@pytest.mark.parametrize("line", ["{a} x {*} y {b}", "{a} {b}", "x {*} {a} {*} {b}"])
@pytest.mark.parametrize("text", ["1" * 8000, "1 x " * 2000, "x 1 " * 2000, " " * 8000, "1." * 4000])
def test_a_form_takes_linear_time(line, text):
    begin = time.process_time()
    LineForm(line).numbers(text)
    assert time.process_time() - begin < 0.5


def test_check_config_tries_a_form_on_the_files(tmp_path):
    write(tmp_path / "train.log", QQ)
    config = tmp_path / "sentinel.toml"
    config.write_text(
        f"paths = [{json.dumps(str(tmp_path))}]\n"
        '[[console]]\nline = "qq {qq} after {step}"\n[[console]]\nline = "zz {zz}"\n',
        encoding="utf-8",
    )
    result = CliRunner().invoke(program(), ["check-config", str(config)])
    output = " ".join(result.output.split())
    assert "8 of 8 lines at the beginning and the end of" in output
    assert "the last says qq 2.0, step 80" in output
    assert "'zz {zz}' (`console`): no line of the 1 text below `paths` has this form" in output


def test_a_crash_before_the_first_number_is_a_run(tmp_path):
    frames = [f'  File "/home/me/model.py", line {n}, in call\n    return fn(x)' for n in range(200)]
    lines = ["using torch 2.9", "Traceback (most recent call last):", *frames, "ValueError: no such layer"]
    write(tmp_path / "slurm.out", lines)
    (run,) = discover([tmp_path]).runs
    batch = run.source.poll({}, 1000)
    assert not batch.chunks
    assert batch.lines[-1].text == "ValueError: no such layer"


def test_a_crash_in_a_file_of_a_training_is_a_run(tmp_path):
    error = [
        "reading the table",
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "OSError: no",
    ]
    write(tmp_path / "training_output.log", error)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "output.log", error)
    (run,) = discover([tmp_path]).runs
    assert run.source.poll({}, 1000).lines[-1].text == "OSError: no"


@pytest.mark.parametrize(
    "last",
    [
        "2026-01-01 10:00:00,000 - ERROR - Error during fine-tuning: out of memory (allocated: 17.5 GiB)",
        "train_lm.py: error: argument --fp16: expected one of yes/no",
    ],
)
def test_a_crash_without_a_traceback_is_a_run(tmp_path, last):
    launches = [f"using torch 2.{n}\nreading {n} of 3 files\n{last}" for n in range(3)]
    write(tmp_path / "train.log", launches)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "train.log", [*launches, "waiting for the next one"])
    (run,) = discover([tmp_path]).runs
    assert run.source.poll({}, 1000).lines[-1].text == last


def test_a_crash_that_powershell_redirected_is_a_run(tmp_path):
    lines = [
        "using torch 2.9",
        "python : Traceback (most recent call last):",
        "At line:1 char:1",
        "+ python train.py > train.log 2>&1",
        '  File "C:\\me\\train.py", line 4, in <module>',
        "    main()",
        "ValueError: the input has 3 channels, and the layer was made ",
        "for 4 of them",
    ]
    (tmp_path / "train.log").write_bytes("\r\n".join([*lines, ""]).encode("utf-16"))
    (run,) = discover([tmp_path]).runs
    batch = run.source.poll({}, 1000)
    assert [line.text for line in batch.lines][-2:] == lines[-2:]


def test_a_crash_that_a_notebook_printed_is_a_run(tmp_path):
    heading = "ValueError                                Traceback (most recent call last)"
    cells = [f"Cell In[{n}], line 3\n      1 import torch\n----> 3 main()\n" for n in range(8)]
    write(tmp_path / "train_results.txt", ["-" * 75, heading, *cells, "ValueError: no such layer"])
    (run,) = discover([tmp_path]).runs
    batch = run.source.poll({}, 1000)
    assert batch.lines[-1].text == "ValueError: no such layer"


def test_a_traceback_that_a_program_survived_is_no_crash(tmp_path):
    error = ["import torch", "Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: x"]
    write(tmp_path / "service.log", [*error, *["all is well again"] * 400])
    assert not discover([tmp_path]).runs


def test_what_lies_above_the_directory_of_a_run_tells_of_it(tmp_path):
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "trainer_state.json").write_text(
        json.dumps({"log_history": [{"step": n, "loss": 1 / n} for n in range(1, 5)], "global_step": 4})
    )
    write(tmp_path / "nohup.out", CONSOLES["own loop"][0])
    assert [run.format for run in discover([tmp_path]).runs] == ["trainer_state"]


def test_names_and_numbers_of_a_document_fit_the_rest(tmp_path):
    values = [1.0, float("nan"), 10**400, 2**63]
    rows = {"\ud800": {"loss": values, "epoch": [1, 2, 3, 10**30]}}
    (tmp_path / "history.json").write_text(json.dumps(rows))
    points = Reader(tmp_path).poll().points
    assert {tag for tag, _, _ in points} == {"?/loss", "?/epoch"}
    assert all(abs(step) < 2**62 for _, step, _ in points)


def test_the_metrics_of_an_evaluation_that_counts_nothing_are_a_log(tmp_path):
    lines = [
        f"{name}: 0.{number}{place}"
        for number in range(1, 6)
        for place, name in enumerate(("sensitivity", "accuracy", "recall", "auc"))
    ]
    write(tmp_path / "svm.log", lines)
    assert [point for point in read(tmp_path) if point[0] == "auc"] == [
        ("auc", number, f"0.{number}3") for number in range(1, 6)
    ]


def test_json_lines_of_episodes_without_a_step_are_a_log_and_those_with_texts_are_data(tmp_path):
    rows = [json.dumps({"length": 150 + n, "reward": n / 10}) for n in range(1, 6)]
    write(tmp_path / "stats.jsonl", rows)
    assert ("reward", 5, "0.5") in read(tmp_path)
    (tmp_path / "stats.jsonl").unlink()
    write(tmp_path / "episodes.jsonl", [json.dumps({"prompt": "a", "reward": n / 10}) for n in range(1, 6)])
    assert not discover([tmp_path]).runs


@pytest.mark.parametrize("separator", [";", ", "])
def test_a_row_of_rewards_is_a_series(tmp_path, separator):
    values = [f"{n}.5" for n in range(40)]
    row = separator.join(value.replace(".", ",") if separator == ";" else value for value in values)
    (tmp_path / "rewards.csv").write_text(row)
    assert read(tmp_path)[-1] == ("rewards", 40, "39.5")
    (tmp_path / "rewards.csv").rename(tmp_path / "inputs.csv")
    assert not discover([tmp_path]).runs


def test_a_bar_that_only_carriage_returns_end_is_a_log_when_nothing_grows(tmp_path):
    states = [f"eval: {n}%|#| {n}/100 [00:{n}<00:09, 2.1s/q, score=0.{n}]" for n in range(10, 40)]
    (tmp_path / "eval.log").write_text("\r".join(states))
    assert discover([tmp_path], are_over=True).runs


def test_a_column_that_pandas_numbers_has_the_name_of_the_file(tmp_path):
    write(tmp_path / "loss.csv", [",0", *(f"{n},{1 / (n + 1)}" for n in range(8))])
    assert {tag for tag, _, _ in read(tmp_path)} == {"loss"}


def test_the_only_column_of_fractions_has_the_name_of_the_file(tmp_path):
    write(tmp_path / "loss.txt", [f"{(7 * n) % 13:06} {1 / (n + 1)}" for n in range(20)])
    assert "loss" in {tag for tag, _, _ in read(tmp_path)}


def test_epochs_count_where_the_steps_within_them_do_not(tmp_path):
    header = "epoch,steps,cosine_pearson,cosine_spearman"
    write(
        tmp_path / "similarity_evaluation_sts-dev_results.csv",
        [header, *(f"{n},-1,{0.5 + n / 50},{0.5 + n / 60}" for n in range(12))],
    )
    points = [(step, value) for tag, step, value in read(tmp_path) if tag == "cosine_pearson"]
    assert len({step for step, _ in points}) == 12
    assert points == sorted(points)


def test_numbers_before_a_traceback_are_read(tmp_path):
    error = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "ValueError: no"]
    write(tmp_path / "train_model.log", [*(f"{1 / n}" for n in range(1, 9)), *error])
    assert len(read(tmp_path)) == 8


def test_a_learning_rate_that_was_rounded_away_is_none(tmp_path):
    write(tmp_path / "train.log", [f"took {n}.5s | acc {n / 8} | lr 0.000" for n in range(1, 6)])
    assert {tag for tag, _, _ in read(tmp_path)} == {"took", "acc"}


def test_the_direction_of_a_metric_is_no_name(tmp_path):
    form = "chosen_last_scores (higher is better) : {}.5, acc (higher is better) : 0.{}"
    write(tmp_path / "train.log", [form.format(n, n) for n in range(1, 6)])
    assert read(tmp_path)[-2:] == [("chosen_last_scores", 5, "5.5"), ("acc", 5, "0.5")]


def test_a_deviation_in_a_table_is_no_part_of_the_number(tmp_path):
    table = "=== Rollout {0} ===\n| Metric | Value |\n|---|---|\n| Reward Mean | 0.{0} ± 0.25 |"
    write(tmp_path / "train.log", [table.format(n) for n in range(1, 6)])
    assert ("Reward Mean", "0.5") in {(tag, value) for tag, _, value in read(tmp_path)}
