"""Files of printed lines: which count, and how they are read while they grow."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.runs.metadata import RunMetadata
from sentinel.runs.training_groups import is_same_training, trace_of
from sentinel.sources.base import Run
from sentinel.sources.console.log import ConsoleLog, find
from sentinel.sources.console.passages import MAX_LINE, ROW
from sentinel.sources.console.text import Text
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader
from tests.sources.wandb.log_writer import WandbLog

FIXTURES = Path(__file__).parents[1] / "fixtures" / "console"


def log(directory: Path, *lines: str, name: str = "train.log") -> Path:
    path = directory / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def loss(step: int, value: float = 1.0) -> str:
    return f"step {step}: loss {value}"


def read(path: Path, limit: int = 1000) -> Reader:
    reader = Reader(path)
    reader.runs = {run.id: run for run in [Run(path, "console", ConsoleLog(path))]}
    return reader.poll(limit)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("train.log", 1),
        ("slurm-12.out", 1),
        ("log_17.txt", 1),
        ("log_lr_0.010.txt", 1),
        ("stdout.txt", 1),
        ("notes.txt", 1),
        ("log.py", 0),
    ],
)
def test_names(tmp_path, name, found):
    log(tmp_path, loss(1), loss(2), name=name)
    assert len(discover([tmp_path]).runs) == found


def test_a_plan_that_is_printed_before_the_first_point_is_a_setting(tmp_path):
    """As transformers' Trainer, its logger and the scripts of diffusers print it."""
    path = log(
        tmp_path,
        "***** Running training *****",
        "  Num examples = 8,000",
        "[INFO|trainer.py:2134] 2024-05-01 10:00:00,000 >>   Gradient Accumulation steps = 2",
        "05/01/2024 10:00:00 - INFO - __main__ -   Total optimization steps = 1,500",
        "  Total optimization steps = many",
        loss(1),
        loss(2),
        "  Total optimization steps = 99",
    )
    batch = ConsoleLog(path).poll({}, 1000)
    assert batch.config == {"num_train_examples": 8000, "gradient_accumulation_steps": 2, "max_steps": 1500}
    assert ConsoleLog(path).poll({}, 7).config == batch.config


@pytest.mark.parametrize(
    ("lines", "config"),
    [
        (["Epoch 1/30", "loss 2.0"], {"num_epochs": 30}),
        (["Epoch [1/30], Step [5/90], Loss: 2.0"], {"num_epochs": 30}),
        (["Epoch: [0][5/90] Loss 2.0"], {}),
        (["epoch 31/30: loss 2.0"], {}),
        (
            ["2025-01-14 15:15:29 args = Namespace(epochs=50, lr=0.1, name='a b', resume=None, seed=[1])"],
            {"epochs": "50", "lr": "0.1", "name": "a b", "resume": "None"},
        ),
    ],
)
def test_the_number_of_epochs_may_be_printed_before_the_first_point(tmp_path, lines, config):
    path = log(tmp_path, *lines, loss(1), loss(2), "Epoch 2/40")
    batch = ConsoleLog(path).poll({}, 1000)
    assert batch.config == config


def test_one_metric_line_is_no_log(tmp_path):
    log(tmp_path, loss(1), "Epoch 3: loss 2.0", "done")
    assert not discover([tmp_path]).runs


def test_an_access_log_is_no_log_of_a_training(tmp_path):
    log(
        tmp_path,
        *['127.0.0.1 "GET /plot?epoch=7&loss=1&step=3 HTTP/1.1" 200 loss: 512'] * 9,
        name="access.log",
    )
    assert not discover([tmp_path]).runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "heading", ["Epoch {}/40:", "Epoch {}/40", "Epoch [{}/40]", "----- Epoch {}/40 -----"]
)
def test_metrics_below_the_epoch_that_begins(tmp_path, heading):
    lines = [
        text
        for epoch in (1, 2)
        for text in (
            heading.format(epoch),
            f"Train - Loss: 0.{epoch} | Acc: 75%",
            f"val Loss: 0.{epoch}5 Acc: 0.5",
        )
    ]
    path = log(tmp_path, *lines, name="training_log.txt")
    assert [run.path for run in discover([tmp_path]).runs] == [path]
    points = read(path).flush().points
    assert [point for point in points if point[1] == 1 and point[0] != "epoch"] == [
        ("Train Loss", 1, "0.1"), ("Train Acc", 1, "75.0"), ("val Loss", 1, "0.15"), ("val Acc", 1, "0.5"),
    ]  # fmt: skip
    assert ("Train Loss", 2, "0.2") in points


def test_losses_below_an_epoch_are_read_beside_its_bars(tmp_path):
    bar = "Training: 100%|█| 9/9 [00:01<00:00, 9.0it/s, loss=0.{0}]"
    epoch = "Epoch {0}/3\n" + bar + "\ntrain_loss: 0.{0}5, val_loss: 0.{0}9"
    found = read(log(tmp_path, *map(epoch.format, (3, 2, 1)))).points
    assert [one for one in found if one[0] == "val_loss"] == [
        ("val_loss", 9 * n, f"0.{4 - n}9") for n in (1, 2, 3)
    ]


def test_the_test_of_an_epoch_belongs_to_the_last_step(tmp_path):
    path = log(
        tmp_path,
        *(f"Train Epoch: 1 [{i}/60000 ({i // 600}%)]\tLoss: 0.5" for i in (0, 640)),
        "Test set: Average loss: 0.0521, Accuracy: 9836/10000 (98%)",
    )
    points = [point for point in read(path).flush().points if point[0].startswith("Test")]
    assert points == [("Test Average loss", 640, "0.0521"), ("Test Accuracy", 640, "0.9836")]


@pytest.mark.parametrize("stamp", ["", "10/23/2019 10:13:34 - INFO - __main__ -   ", "INFO:tensorflow:"])
def test_the_results_of_an_evaluation_below_their_heading_belong_to_the_last_step(tmp_path, stamp):
    """The examples of BERT and of transformers print a result a line."""
    path = log(
        tmp_path,
        *(f'{stamp}{{"learning_rate": 2e-05, "loss": 0.5, "step": {step}}}' for step in (10, 20)),
        f"{stamp}***** Eval results  *****",
        *(
            f"{stamp}  {name} = {value}"
            for name, value in (("acc", 0.85), ("global_step", 20), ("loss", 0.5))
        ),
        f"{stamp}  eval_loss = 0.625",
        f"{stamp}Saving model checkpoint to output, seed = 42",
        f"{stamp}  acc = 0.99",
    )
    points = [point for point in read(path).flush().points if point[0] not in ("loss", "learning_rate")]
    assert points == [("eval_acc", 20, "0.85"), ("eval_loss", 20, "0.625")]


def test_what_powershell_wrote(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes("".join(f"{loss(step)}\r\n" for step in (1, 2, 3)).encode("utf-16"))
    assert [run.path for run in discover([tmp_path]).runs] == [path]
    assert read(path).points == [("loss", step, "1.0") for step in (1, 2, 3)]


@pytest.mark.parametrize(
    "line", ["[{}]\ttrain-logloss:0.25", " {}: 2.5, 2.25 avg loss, 0.001 rate, 1.2 seconds, 64 images"]
)
def test_a_round_is_no_process(tmp_path, line):
    path = log(tmp_path, *(line.format(step) for step in (1, 2, 3)))
    reader = read(path)
    assert {step for _, step, _ in reader.points} == {1, 2, 3}
    assert len(reader.batch.chunks) == 1


@pytest.mark.slow
def test_metrics_far_from_the_beginning_are_found(tmp_path):
    log(tmp_path, *["nothing"] * 50_000, loss(1), loss(2))
    assert len(discover([tmp_path]).runs) == 1


def test_another_log_of_the_directory_comes_first(tmp_path):
    path = log(tmp_path, loss(1), loss(2))
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n')
    assert [run.format for run in discover([tmp_path]).runs] == ["jsonl"]
    assert [run.format for run in discover([path]).runs] == ["console"]


CRASH = 'Traceback (most recent call last):\n  File "{}", line 4, in <module>\nRuntimeError: no space\n'


@pytest.mark.parametrize(
    ("code", "runs"), [("/home/me/train.py", 1), ("/lib/torch/nn/functional.py", 1), ("/srv/web/app.py", 0)]
)
def test_a_training_that_crashed_before_its_first_metric_is_a_run(tmp_path, code, runs):
    (tmp_path / "job.err").write_text(f"loading data\n{CRASH.format(code)}")
    assert len(discover([tmp_path]).runs) == runs


def test_a_program_that_python_cannot_read_is_a_run_that_crashed(tmp_path):
    """Above such an error stands no heading of a traceback."""
    lines = [
        '  File "/home/me/train_dpo.py", line 406',
        "    logger.info(f'a')",
        "IndentationError: unexpected indent",
    ]
    log(tmp_path, "phase 1", *lines, "phase 1 is over")
    assert len(discover([tmp_path]).runs) == 1


def test_a_crash_beside_metrics_is_no_run_of_its_own(tmp_path):
    (tmp_path / "job.err").write_text(CRASH.format("train.py"))
    path = log(tmp_path, loss(1), loss(2), name="job.out")
    assert [run.path for run in discover([tmp_path]).runs] == [path]
    record = tmp_path / "run-20260101_000000-abc"
    (record / "files").mkdir(parents=True)
    (record / "files" / "output.log").write_text(CRASH.format("train.py"))
    WandbLog(record / "run-abc.wandb").history({"_step": 1, "loss": 1.0})
    assert [run.path for run in discover([record]).runs] == [record]


def test_many_texts_are_data(tmp_path):
    for number in range(21):
        log(tmp_path, loss(1), loss(2), name=f"{number}.txt")
    assert not discover([tmp_path]).runs


def test_output_of_wandb_is_a_log_of_its_run(tmp_path):
    """wandb writes its record in blocks of 32 KiB, so what the training printed is there long before."""
    run = tmp_path / "run-20260101_000000-abc"
    (run / "files").mkdir(parents=True)
    path = log(run / "files", loss(1), loss(2), name="output.log")
    assert [run.path for run in discover([tmp_path]).runs] == [path]
    record = WandbLog(run / "run-abc.wandb")
    for step in range(1, 9):
        record.history({"_step": step, "loss": 1.0})
    found = discover([tmp_path]).runs
    assert [each.path for each in found] == [run, path]
    assert is_same_training(*(trace_of(each.id, RunMetadata()) for each in found))


def test_steps_come_from_the_bar_that_follows(tmp_path):
    path = tmp_path / "train.log"
    record = "{'loss': 1.0, 'epoch': 0.5}"
    path.write_text(
        f"Map: 100%|██| 99/99 [00:00<00:00, 9it/s]\n\r  0%|  | 0/40 [00:00<?, ?it/s]"
        f"\r      \r{record}\n\r 25%|▎ | 10/40 [00:01<00:03]\r 50%|█ | 4/8 [00:01<00:03]\r   "
        f"\r{{'eval_loss': 2.0, 'epoch': 0.5}}\n\r 25%|▎ | 10/40 [00:01<00:03]\r100%|██| 8/8 [00:01<00:00]"
        f"\r      \r{record}\n\r 50%|█ | 20/40 [00:01<00:03]\r    \r{record}\nTraining completed\n"
        "{'train_runtime': 3.0, 'epoch': 0.5}\n100%|██| 40/40 [00:01<00:00]\n"
    )
    points = [(tag, step) for tag, step, _ in read(path).points if tag not in ("epoch", "max_steps")]
    assert points == [("loss", 10), ("eval_loss", 10), ("loss", 20), ("loss", 20), ("train_runtime", 20)]
    assert ("max_steps", 10, "40.0") in read(path).points


@pytest.mark.slow
def test_a_block_of_metrics_below_their_step(tmp_path):
    path = log(
        tmp_path,
        "\t Train loss: 9.0",
        "[batch=2/60]:",
        "\t Train loss/train/total: 1.5",
        "\t Train lr-Adam/group0: 0.0006",
        '\t Train note: "none"',
        "[Eval batch=1/1] Eval on eval data:",
        "\t Eval metrics/eval/CrossEntropy: nan",
        "[batch=4/60]:",
        "\t Train loss/train/total: 1.25",
        "Saved.",
        "\t size: 5",
    )
    expected = [
        ("Train loss/train/total", 2, "1.5"),
        ("max_steps", 2, "60.0"),
        ("Train lr-Adam/group0", 2, "0.0006"),
        ("Eval metrics/eval/CrossEntropy", 2, "nan"),
        ("Train loss/train/total", 4, "1.25"),
        ("max_steps", 4, "60.0"),
    ]
    assert read(path).points == expected
    assert read(path, limit=1).points == expected
    assert len(discover([tmp_path]).runs) == 1


def test_a_block_below_a_line_with_its_time(tmp_path):
    path = log(
        tmp_path,
        "2026-01-01 00:00:05.500\tlocalhost:0\tconsole_logger:71\tINFO\t[step=8/100,epoch=1,eta=1m]",
        "    train/CE loss=1.802",
        "    train/PPL=6.06",
        "    throughput/device/flopsPS=7.564B",
        "2026-01-01 00:00:06.500\tlocalhost:0\tconsole_logger:64\tINFO\t[step=9/???,epoch=1]",
    )
    (chunk,) = ConsoleLog(path).poll({}, 100).chunks
    assert [chunk.tags[tag] for tag in chunk.tag] == ["epoch", "train/CE loss", "max_steps", "train/PPL"]
    assert set(chunk.step) == {8}
    assert set(chunk.time) == {1767225605.5}


def test_a_block_that_counts_batches_of_an_epoch(tmp_path):
    blocks = [f"[epoch={e}][batch={b}/2]:\n\t Train loss: {e}.{b}" for e in (1, 2) for b in (1, 2)]
    found = [(step, value) for tag, step, value in read(log(tmp_path, *blocks)).points if tag == "Train loss"]
    assert found == [(1, "1.1"), (2, "1.2"), (3, "2.1"), (4, "2.2")]


def test_a_record_that_waits_for_its_step_survives(tmp_path):
    bar = "\r 50%|█ | {}/40 [00:01<00:03]\r"
    path = log(tmp_path, bar.format(10), "{'loss': nan, 'grad_norm': inf, 'epoch': 0.5}")
    reader = read(path)
    assert not reader.points
    path.write_text(path.read_text() + bar.format(20) + "\n")
    assert reader.poll().points[:2] == [("loss", 20, "nan"), ("grad_norm", 20, "inf")]


@pytest.mark.slow
def test_records_without_a_bar_are_counted(tmp_path):
    path = log(tmp_path, "hello", *["{'loss': 1.0, 'epoch': 0.5}"] * 3)
    assert [step for tag, step, _ in read(path).points if tag == "loss"] == [1, 2, 3]


def test_what_a_bar_overwrote_is_no_line(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "".join(
            f"Epoch {e} loss: 9: 50%|█ | 1/2 [0<0]\rEpoch {e} loss: {e}: 100%|█| 2/2 [0<0]\n" for e in (1, 2)
        )
    )
    assert [p for p in read(path).points if p[0] == "loss"] == [("loss", 1, "1.0"), ("loss", 2, "2.0")]


def test_a_postfix_of_a_bar(tmp_path):
    bar = "Epoch {0}: 100%|█████| 10/10 [00:01<00:00, 10.0it/s, v_num=0, train_loss=2.{0}]"
    path = log(tmp_path, bar.format(1), bar.format(2))
    assert [p for p in read(path).points if p[0] == "train_loss"] == [
        ("train_loss", 1, "2.1"),
        ("train_loss", 2, "2.2"),
    ]


def test_colours_line_ends_and_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(
        b"\x1b[32mstep\x1b[0m 1: \x1b[1mloss 2.5\x1b[0m\r\n\xff\xfe step 2\r\nstep 2: loss 2.0\r\n"
    )
    assert read(path).points == [("loss", 1, "2.5"), ("loss", 2, "2.0")]


def test_each_process_is_a_stream(tmp_path):
    path = log(tmp_path, *(f"[rank{rank}]: {loss(step, rank)}" for step in (1, 2) for rank in (0, 1)))
    chunks = ConsoleLog(path).poll({}, 100).chunks
    assert [(c.stream, c.step.tolist(), c.value.tolist()) for c in chunks] == [
        ("train.log:[rank0]", [1, 2], [0.0, 0.0]),
        ("train.log:[rank1]", [1, 2], [1.0, 1.0]),
    ]


def test_lines_have_their_time(tmp_path):
    path = log(
        tmp_path,
        f"[2026-01-01 00:00:00,500] {loss(1)}",
        f"[2026-13-01 00:00:00] {loss(2)}",
        "RuntimeError: oh",
    )
    batch = ConsoleLog(path).poll({}, 100)
    assert batch.chunks[0].time[0] == 1767225600.5
    assert math.isnan(batch.chunks[0].time[1])
    assert [line.text for line in batch.lines] == [ROW, "RuntimeError: oh"]


@pytest.mark.slow
def test_a_table_is_one_record_however_it_is_cut(tmp_path):
    rule = "-" * 40
    table = [
        rule,
        "| rollout/  |  |",
        "|    ep_rew_mean | 21.4 |",
        "| time/ |  |",
        "|    total_timesteps | {0} |",
        "| other | 1 |",
        rule,
    ]
    path = log(tmp_path, *(row.format(n) for n in (2048, 4096) for row in table))
    expected = [
        (tag, n, v) for n in (2048, 4096) for tag, v in (("rollout/ep_rew_mean", "21.4"), ("other", "1.0"))
    ]
    assert [run.format for run in discover([tmp_path]).runs] == ["console"]
    assert read(path).points == expected
    assert read(path, limit=1).points == expected


@pytest.mark.slow
def test_a_table_that_counts_nothing_is_none(tmp_path):
    rule = "+-----+-----+"
    log(tmp_path, *[rule, "| lr | 0.1 |", "| loss | 1 |", rule] * 3)
    assert not discover([tmp_path]).runs


@pytest.mark.slow
def test_a_long_line_is_skipped_and_bars_without_end_are_read(tmp_path):
    path = log(tmp_path, loss(1), "x" * (2 * MAX_LINE), loss(2))
    reader = read(path)
    assert [p[1] for p in reader.points] == [1, 2]
    assert reader.read_issues == [f"{path} at byte 17: a line is longer than 1 MiB and was skipped"]
    bars = "".join(f"\r {i % 100}%|█ | {i}/99999 [00:01<00:03, 1.0it/s]" for i in range(60_000))
    path.write_text(f"{bars}\r   \r{{'loss': 1.0, 'epoch': 0.5}}\nbye\n")
    reader = read(path)
    assert ("loss", 59_999, "1.0") in reader.points
    assert not reader.read_issues


@pytest.mark.slow
def test_each_shape_is_found_in_what_a_library_printed():
    expected = {
        "hf_trainer.log": ({"loss", "grad_norm", "learning_rate", "eval_loss", "max_steps"}, 10),
        "hf_trainer_no_bar.log": ({"loss", "grad_norm", "learning_rate"}, 6),
        "keras.log": ({"loss", "accuracy", "val_loss", "val_accuracy"}, 6),
        "keras_bar.log": ({"loss", "accuracy", "val_loss", "val_accuracy"}, 6),
        "sb3_ppo.log": ({"rollout/ep_rew_mean", "train/approx_kl", "train/loss"}, 256),
    }
    for name, (tags, last) in expected.items():
        [run] = discover([FIXTURES / name]).runs
        batch = run.source.poll({}, 10_000)
        [chunk] = batch.chunks
        assert run.format == "console"
        assert tags <= set(chunk.tags)
        assert chunk.step.max() == last


@pytest.mark.slow
def test_the_lines_of_keras_follow_a_heading(tmp_path):
    line = "16/16 - 0s - 7ms/step - loss: %s"
    path = log(tmp_path, "Epoch 1/9", line % 0.5, line % 0.1, "Epoch 2/9", "saved", line % 0.25, line % 0.1)
    expected = [("loss", 1, "0.5"), ("epoch", 1, "1.0"), ("loss", 2, "0.25"), ("epoch", 2, "2.0")]
    assert read(path).points == read(path, 1).points == expected


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.binary(max_size=60)
        | st.sampled_from([b"\n", b"\r", b"step 1: loss 2\n", b"-----\n", b"| a | 1 |\n", b"\x1b"]),
        max_size=30,
    ),
    st.integers(1, 5),
)
def test_any_file_is_read_alike_in_pieces(tmp_path_factory, pieces, limit):
    path = tmp_path_factory.mktemp("any") / "train.log"
    path.write_bytes(b"".join(pieces))
    assert read(path).points == read(path, limit).points


def test_a_file_is_looked_at_again_when_it_changed(tmp_path, monkeypatch):
    looks = []
    real = Text.parse
    monkeypatch.setattr(Text, "parse", lambda *args: looks.append(args) or real(*args))
    path = tmp_path / "train.log"
    path.write_text("step: 1, nothing yet\n")
    assert not list(find(tmp_path, ["train.log"]))
    looks.clear()
    assert not list(find(tmp_path, ["train.log"]))
    assert not looks
    with path.open("a") as file:
        file.write("step: 1, loss: 2.5\nstep: 2, loss: 2.4\n")
    assert list(find(tmp_path, ["train.log"]))
    path.write_text("nothing\n")
    assert not list(find(tmp_path, ["train.log"]))


@pytest.mark.slow
def test_the_bar_of_an_epoch_is_a_point_when_it_is_full():
    """Lightning draws the bar of an epoch anew behind its validation, and keeps old values until then."""
    path = FIXTURES / "lightning.log"
    found = {
        tag: [(step, float(v)) for name, step, v in read(path).points if name == tag]
        for tag in ("train_loss_step", "train_loss_epoch", "val_loss")
    }
    assert found == {
        "train_loss_step": [(0, 0.252), (1, 0.00329), (2, 6.17e-05), (3, 1.67e-06)],
        "train_loss_epoch": [(0, 1.24), (1, 0.0167), (2, 0.000309), (3, 7.26e-06)],
        "val_loss": [(0, 0.0612), (1, 0.00107), (2, 2.4e-05), (3, 6.69e-07)],
    }


@pytest.mark.slow  # many pieces
@pytest.mark.parametrize("name", ["lightning.log", "tqdm_steps.log"])
@pytest.mark.parametrize("piece", [1, 97, 2000])
def test_a_bar_that_arrives_in_pieces_shows_the_same(tmp_path, name, piece):
    text = (FIXTURES / name).read_bytes()
    path = tmp_path / "train.log"
    path.write_bytes(text)
    expected = read(path).points
    path.write_bytes(text[:1])
    reader = read(path)
    for end in range(piece, len(text) + piece, piece * (40 if piece == 1 else 1)):
        path.write_bytes(text[:end])
        reader.poll()
    path.write_bytes(text)
    reader.poll()
    assert reader.points == expected


def test_a_bar_on_lines_of_its_own_counts_batches(tmp_path):
    """A training that prints amid the epoch ends the line of its bar."""
    bar = "Epoch {}: {}%|█ | {}/100 [00:01<00:03, 1.0it/s, loss={}]"
    states = [(0, 5, 3.0), (0, 9, 2.5), (0, 7, 9.0), (0, 100, 2.0), (1, 3, 1.5), (1, 100, "nan.0")]
    path = log(tmp_path, *(bar.format(e, n, n, v) + "tensor([0.0])" for e, n, v in states))
    expected = [(5, "3.0"), (9, "2.5"), (100, "2.0"), (103, "1.5"), (200, "nan")]
    assert [(step, value) for tag, step, value in read(path).points if tag == "loss"] == expected


def test_the_bars_of_training_and_validation_are_told_apart(tmp_path):
    bars = (
        "Epoch {0}/9 [Train]: 100%|█| 9/9 [00:01<00:00, 9it/s, loss={0}.5]\n"
        "Epoch {0}/9 [Val]: 100%|█| 2/2 [00:00<00:00, 9it/s, loss={0}.7]"
    )
    path = log(tmp_path, bars.format(1), bars.format(2))
    losses = [p for p in read(path).points if p[0] != "epoch"]
    assert losses == [("loss", 1, "1.5"), ("val/loss", 1, "1.7"), ("loss", 2, "2.5"), ("val/loss", 2, "2.7")]


@pytest.mark.slow
def test_a_bar_of_steps_shows_each_step():
    """tqdm draws a new count with the old metrics first."""
    assert [run.format for run in discover([FIXTURES / "tqdm_steps.log"]).runs] == ["console"]
    losses = [
        (step, float(v)) for tag, step, v in read(FIXTURES / "tqdm_steps.log").points if tag == "step_loss"
    ]
    assert losses == [(step, float(f"{1 / step:.3g}")) for step in range(1, 41)]


def test_a_bar_of_steps_that_begins_again_goes_on(tmp_path):
    bar = "\rTraining:  50%|█ | {0}/3 [00:01<00:03, 1.0it/s, loss={1}, val_loss={2}]"
    states = [(1, 5, 9), (2, 4, 9), (3, 3, 9), (1, 2, 8), (2, 1, 8)]
    path = tmp_path / "train.log"
    path.write_text("".join(bar.format(*state) for state in states) + "\n")
    points = read(path).points
    assert [p for p in points if p[0] == "loss"] == [("loss", n, f"{6 - n}.0") for n in range(1, 6)]
    assert [p for p in points if p[0] == "val_loss"] == [("val_loss", 1, "9.0"), ("val_loss", 4, "8.0")]


def test_a_bar_that_counts_something_else_is_no_training(tmp_path):
    bar = "\r{0}:  50%|█ | {1}/9 [00:01<00:03, 1.0it/s, loss=1.0]"
    path = tmp_path / "train.log"
    path.write_text(
        "".join(bar.format(name, n) for name in ("Validation", "Map", "Sampling") for n in (1, 2, 3))
    )
    assert not discover([path]).runs


def test_a_late_value_of_which_the_bar_showed_nothing_is_not_lost(tmp_path):
    """A log that keeps the full bars alone shows each validation with the next epoch."""
    bar = "Epoch {0}: 100%|█| 9/9 [00:01<00:03, 1.0it/s, loss={0}.5{1}]"
    lines = [
        bar.format(0, ""),
        bar.format(0, ", val_loss=9"),
        *(bar.format(n, f", val_loss={9 - n}") for n in (1, 2)),
    ]
    points = read(log(tmp_path, *lines)).points
    assert [p for p in points if p[0] == "val_loss"] == [("val_loss", n, f"{9 - n}.0") for n in (0, 1, 2)]


OVERFLOW = (
    "[2023-04-18 08:48:09,105] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 "
    "Skipping step. Attempted loss scale: 32768, reducing to 16384"
)
STEP_OF_DEEPSPEED = (
    "[2023-04-18 08:48:09,378] [INFO] [logging.py:96:log_dist] [Rank 0] step={0}, skipped=2, lr=[1e-05], "
    "mom=[(0.9, 0.95)]"
)


def tags(path: Path) -> set[str]:
    reader = Reader(path)
    return {tag for tag, *_ in reader.poll(1000).points}


def test_the_metrics_of_a_program_are_read_beside_what_deepspeed_prints(tmp_path):
    """DeepSpeed-Chat tells the reward on a line of its own, below that of the step."""
    lines = [
        line
        for step in range(1, 9)
        for line in (
            OVERFLOW,
            f"epoch: 0|step: {step}|ppo_ep: 1|act_loss: 0.2{step}|cri_loss: 0.1{step}|unsuper_loss: 0.0",
            f"average reward score: 0.{step}1",
            STEP_OF_DEEPSPEED.format(step),
        )
    ]
    assert {"act_loss", "average reward score", "skipped"} <= tags(log(tmp_path, *lines))


def test_a_known_form_is_looked_for_behind_what_deepspeed_prints(tmp_path):
    """Its lines tell nothing of how a program prints its metrics."""
    lines = [OVERFLOW, OVERFLOW, *(f"{{'loss': 0.{step}, 'epoch': {step}.0}}" for step in range(1, 9))]
    path = log(tmp_path, *lines)
    (run,) = discover([path]).runs
    assert not run.source.is_general
    assert "loss" in tags(path)


def test_that_deepspeed_begins_at_step_0_is_no_step_of_the_lines_below(tmp_path):
    lines = [STEP_OF_DEEPSPEED.format(0), *(f"{{'loss': 0.{n}, 'epoch': 0.{n}}}" for n in range(1, 9))]
    points = read(log(tmp_path, *lines)).points
    assert [step for tag, step, _ in points if tag == "loss"] == [*range(1, 9)]


def test_a_log_of_deepspeed_alone_has_its_own_reader(tmp_path):
    path = log(tmp_path, OVERFLOW, OVERFLOW, *map(STEP_OF_DEEPSPEED.format, range(1, 9)))
    assert {"loss_scale", "skipped_steps"} <= tags(path)
