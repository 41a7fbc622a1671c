import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.base import Run
from sentinel.sources.console import LONGEST_LINE, Console, find
from sentinel.sources.console_lines import parse
from sentinel.sources.discovery import discover
from tests.sources.reading import Reader

FIXTURES = Path(__file__).parent / "fixtures" / "console"

LINES = {
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
    "iter 100: loss 3.2, time 12.5ms, mfu 3.25%": {"step": 100.0, "loss": 3.2, "time": 12.5, "mfu": 0.0325},
    "step 250: train loss 2.1111, val loss 2.3": {"step": 250.0, "train loss": 2.1111, "val loss": 2.3},
    "step 00010/05000 (0.20%) | loss: 8.125 | dt: 123.45ms | tok/sec: 1,234,567 | total time: 1.2m": {
        "step": "00010/05000", "loss": 8.125, "dt": 123.45, "tok/sec": 1234567.0,
    },
    "[2023-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2, "
    "lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]": {
        "step": 10.0, "skipped_steps": 2.0, "lr": 9.65e-06, "mom": 0.9,
    },
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768": {
        "loss_scale": 32768.0,
    },
    "[2019-03-10 22:38:48.630]  Step    11 [0.783 sec/step, loss = 0.87162 (mel : 0.3743 + lin : 0.49732)]": {
        "step": 11.0, "loss": 0.87162, "mel": 0.3743, "lin": 0.49732,
    },
    "(epoch: 1, iters: 100, time: 0.327, data: 5.460) G_GAN: 1.198 D_real: 0.903": {
        "epoch": 1.0, "iter": 100.0, "time": 0.327, "data": 5.46, "G_GAN": 1.198, "D_real": 0.903,
    },
    "Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.00 (  0.1)": {
        "epoch": 0.0, "iter": 10.0, "Time": 0.5, "Loss": 6.9, "Acc@1": 0.0,
    },
    "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  LR: 1.000e-06": {
        "epoch": 0.0, "iter": 50.0, "Loss": 6.9, "LR": 1e-6,
    },
    "[01/01 12:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.5  lr: 0.0002 max_mem: 1234M": {
        "step": 19.0, "total_loss": 1.5, "lr": 0.0002,
    },
    "2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 2.0e-04  eta: 1 day, 2:00:00"
    "  loss: 1.5": {"epoch": 1.0, "iter": 50.0, "lr": 2e-4, "loss": 1.5},
    "step:1 - actor/pg_loss:np.float64(0.25) - timing_s/gen:12.5": {
        "step": 1.0, "actor/pg_loss": 0.25, "timing_s/gen": 12.5,
    },
    "Epoch [2/10], Step [100/500], Loss: 0.5": {"epoch": 2.0, "iter": 100.0, "Loss": 0.5},
    "Epoch: [7/1001] Loss: 7.3048 Acc: 12.50%": {"epoch": 7.0, "Loss": 7.3048, "Acc": 0.125},
    "2024-01-01 10:00:00,000 - INFO - train.py:96 - Step 10: loss=tensor(0.5, device='cuda:0'), lr=1e-4": {
        "step": 10.0, "loss": 0.5, "lr": 1e-4,
    },
}  # fmt: skip

TEXTS = [
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
]


def log(directory: Path, *lines: str, name: str = "train.log") -> Path:
    path = directory / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def loss(step: int, value: float = 1.0) -> str:
    return f"step {step}: loss {value}"


def read(path: Path, limit: int = 1000) -> Reader:
    reader = Reader(path)
    reader.runs = {run.id: run for run in [Run(path, "console", Console(path))]}
    return reader.poll(limit)


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


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("train.log", 1),
        ("slurm-12.out", 1),
        ("log_17.txt", 1),
        ("stdout.txt", 1),
        ("notes.txt", 0),
        ("log.py", 0),
    ],
)
def test_names(tmp_path, name, found):
    log(tmp_path, loss(1), loss(2), name=name)
    assert len(discover([tmp_path]).runs) == found


def test_one_metric_line_is_no_log(tmp_path):
    log(tmp_path, loss(1), "Epoch 3: loss 2.0", "done")
    assert not discover([tmp_path]).runs


def test_metrics_far_from_the_beginning_are_found(tmp_path):
    log(tmp_path, *["nothing"] * 50_000, loss(1), loss(2))
    assert len(discover([tmp_path]).runs) == 1


def test_another_log_of_the_directory_comes_first(tmp_path):
    path = log(tmp_path, loss(1), loss(2))
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n')
    assert [run.format for run in discover([tmp_path]).runs] == ["jsonl"]
    assert [run.format for run in discover([path]).runs] == ["console"]


def test_output_of_wandb_counts_where_the_record_is_missing(tmp_path):
    run = tmp_path / "run-20260101_000000-abc"
    (run / "files").mkdir(parents=True)
    log(run / "files", loss(1), loss(2), name="output.log")
    assert list(find(run / "files", ["output.log"]))
    (run / "run-abc.wandb").write_bytes(b"")
    assert list(find(run / "files", ["output.log"]))
    (run / "run-abc.wandb").write_bytes(b":W&B")
    assert not list(find(run / "files", ["output.log"]))


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


def test_a_record_that_waits_for_its_step_survives(tmp_path):
    bar = "\r 50%|█ | {}/40 [00:01<00:03]\r"
    path = log(tmp_path, bar.format(10), "{'loss': nan, 'grad_norm': inf, 'epoch': 0.5}")
    reader = read(path)
    assert not reader.points
    path.write_text(path.read_text() + bar.format(20) + "\n")
    assert reader.poll().points[:2] == [("loss", 20, "nan"), ("grad_norm", 20, "inf")]


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
    chunks = Console(path).poll({}, 100).chunks
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
    batch = Console(path).poll({}, 100)
    assert batch.chunks[0].time[0] == 1767225600.5
    assert math.isnan(batch.chunks[0].time[1])
    assert [line.text for line in batch.lines] == ["RuntimeError: oh"]


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


def test_a_table_that_counts_nothing_is_none(tmp_path):
    rule = "+-----+-----+"
    log(tmp_path, *[rule, "| lr | 0.1 |", "| loss | 1 |", rule] * 3)
    assert not discover([tmp_path]).runs


def test_a_long_line_is_skipped_and_bars_without_end_are_read(tmp_path):
    path = log(tmp_path, loss(1), "x" * (2 * LONGEST_LINE), loss(2))
    reader = read(path)
    assert [p[1] for p in reader.points] == [1, 2]
    assert reader.complaints == [f"{path} at byte 17: a line is longer than 1 MiB and was skipped"]
    bars = "".join(f"\r {i % 100}%|█ | {i}/99999 [00:01<00:03, 1.0it/s]" for i in range(60_000))
    path.write_text(f"{bars}\r   \r{{'loss': 1.0, 'epoch': 0.5}}\nbye\n")
    reader = read(path)
    assert ("loss", 59_999, "1.0") in reader.points
    assert not reader.complaints


def test_each_shape_is_found_in_what_a_library_printed():
    expected = {
        "hf_trainer.log": ({"loss", "grad_norm", "learning_rate", "eval_loss", "max_steps"}, 10),
        "hf_trainer_no_bar.log": ({"loss", "grad_norm", "learning_rate"}, 6),
        "sb3_ppo.log": ({"rollout/ep_rew_mean", "train/approx_kl", "train/loss"}, 256),
    }
    for name, (tags, last) in expected.items():
        [run] = discover([FIXTURES / name]).runs
        batch = run.source.poll({}, 10_000)
        [chunk] = batch.chunks
        assert run.format == "console"
        assert tags <= set(chunk.tags)
        assert chunk.step.max() == last


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\n\r")
        | st.sampled_from("'\"{}:=|,[]()\\ \t%-+.01eE"),
        max_size=300,
    )
)
def test_any_line_is_read(line):
    for text in (line, f"step 1: {line}", f"{{'step': 1, {line}", f"epoch 1 {line} loss=1"):
        parse(text)


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
    line = (unit * LONGEST_LINE)[: LONGEST_LINE // 2]
    for text in (line, f"step 1: {line}", f"{{'step': 1, '{line}", f"(epoch: 1, iters: 1, {line}"):
        parse(text)  # were it quadratic, this would not come to an end


def test_names_of_the_shapes_are_their_own():
    text = Path(find.__code__.co_filename).with_name("console_lines.py").read_text()
    names = re.findall(r'Shape\(\s*"([^"]+)"', text)
    assert len(names) == len(set(names))
