"""What a run said last: files that say it is done, last rows and last lines."""

import json
import os

import pytest

from sentinel.runs.end_markers import done_file, last_words
from sentinel.sources.base import Ending, EndKind, Run
from sentinel.sources.console.log import ConsoleLog
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.json.lines import JsonLines
from sentinel.sources.location import Url

TRAINING = "".join(f"epoch {n}: loss 0.{900 - n}\n" for n in range(1, 31))
ENDS = [
    "End of training. Time consumed: 3:20:11",
    "Job end at 2024-03-01 11:12:13",
    "Experiment finished at 2024-03-01",
    "[2024-03-01 10:00:00] training finished",
    "Training complete in 3m 20s",
    "Finished Training",
    "Training time 0:10:22",
    "`Trainer.fit` stopped: `max_epochs=3` reached.",
    "Training completed. Do not forget to share your model on huggingface.co/models =)",
    "50 epochs completed in 0.123 hours.",
    "Optimizer stripped from runs/train/weights/last.pt, 6.2MB",
    "wandb: Run summary:",
    "Epoch 12: early stopping",
    "Early stopping at epoch 12",
    "Early stopping, best iteration is:",
    "stopping_early: wallclock_cap step:8000/20000",
    "Process finished with exit code 0",
    "saved final model to out/final.pt",
    "Saving the final checkpoint",
    "done",
    "All done!",
    "epoch : 20/20 loss: 0.31 acc: 0.97",
    "Epoch [20/20], Loss: 0.31",
    "100%|##########| 300/300 [01:02<00:00,  4.80it/s]",
    "100%|##########| 39695/39695 [10:02<00:00, 66.80it/s, loss=0.3]",
]
NO_ENDS = [
    "Epoch 3 training finished",
    "validation done",
    "Training done: 30%",
    "EarlyStopping counter: 3 out of 10",
    "Early stopping enabled with patience of 3",
    "Loading data... done",
    "saved checkpoint to out/step-300.pt",
    "Epoch 20/20",
    "Epoch [20/20], step [100/300], loss: 0.3",
    "epoch : 19/20 loss: 0.31",
    "95%|######### | 285/300 [01:02<00:03,  4.80it/s]",
    "test accuracy 0.97",
    "Process finished with exit code -1",
    "make: *** [train] Error 130",
]
OUTSIDE = [
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1359 got signal: 1",
    "KeyboardInterrupt",
    "KeyboardInterrupt:",
    "Detected KeyboardInterrupt, attempting graceful shutdown ...",
    "wandb: Ctrl + C detected. Stopping sweep.",
]
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    step()\n'
ROW = "{'loss': 0.31, 'grad_norm': 1.5, 'learning_rate': 0.0, 'epoch': 10.0}"

TORCHRUN = """\
E1124 03:10:24.795000 566 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) \
local_rank: 2 (pid: 616) of binary: /env/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-24_03:10:24
  host      : node
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 614)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 614
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-24_03:10:24
  host      : node
  rank      : 2 (local_rank: 2)
  exitcode  : {code} (pid: 616) {name}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def plain(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"step": n, "loss": 1.0}) + "\n" for n in range(5)))
    return Run(path, "jsonl", JsonLines(path))


@pytest.fixture
def run(tmp_path):
    return plain(tmp_path / "run" / "metrics.jsonl")


@pytest.mark.parametrize("line", [*ENDS, *OUTSIDE])
def test_a_last_line_that_says_so_is_the_end(tmp_path, run, line):
    beside = run.path.with_name("train.log")
    beside.write_text(f"{TRAINING.replace('epoch', 'it')}{line}\nbye\n")
    outcome = "preempted" if line in OUTSIDE else "finished"
    assert last_words(run).outcome == outcome
    assert repr(line)[1:20] in last_words(run).evidence
    console = tmp_path / "console.log"
    console.write_text(beside.read_text())
    assert last_words(Run(console, "console", ConsoleLog(console))).outcome == outcome


def test_the_last_batch_of_the_last_epoch_is_the_end(run):
    beside = run.path.with_name("train.log")
    lines = [f"Epoch:[1/1]({at}/300), loss: 0.{900 - at}" for at in range(100, 301, 50)]
    beside.write_text("\n".join(lines[:-1]))
    assert last_words(run) is None
    beside.write_text("\n".join(lines))
    assert last_words(run).outcome == "finished"


def test_a_traceback_that_a_signal_ended_is_no_crash(run):
    run.path.with_name("train.log").write_text(f"{TRAINING}{TRACEBACK}{OUTSIDE[0]}\n")
    assert last_words(run).outcome == "preempted"


@pytest.mark.parametrize("line", NO_ENDS)
def test_a_line_about_less_than_the_run_is_no_end(run, line):
    run.path.with_name("train.log").write_text(f"{TRAINING}{line}\n")
    assert last_words(run) is None


def test_what_is_printed_again_and_again_is_no_end(run):
    for line in ("training finished", "100%|####| 300/300 [01:02<00:00,  4.80it/s]"):
        run.path.with_name("train.log").write_text(f"{line}\nstep 300\n" * 3)
        assert last_words(run) is None
        assert last_words(run, attempts=3), "each attempt ended so"


def test_a_bar_that_is_whole_at_the_end_of_an_epoch_is_no_end(run):
    bar = "Epoch 3: 100%|####| 300/300 [01:02<00:00,  4.80it/s]"
    run.path.with_name("train.log").write_text(f"{bar}\n")
    assert last_words(run) is None


def test_a_bar_of_all_steps_is_whole_beside_rows_that_tell_their_epoch(run):
    beside = run.path.with_name("train.log")
    beside.write_text(f"  Num Epochs = 10\n{ROW}\n100%|####| 2170/2170 [22:28<00:00,  1.61it/s]")
    assert last_words(run).outcome == "finished"


def epochs(lines, count=10, total=10, begin=1):
    return "".join(line.format(n=n, of=total) for n in range(begin, count + begin) for line in lines)


HEAD = "Epoch {n}/{of}: 900it [07:06, 2.1it/s]\n"
TRAINED = "Train loss: 0.3\n"
TESTED = "Test loss: 0.4\n"


@pytest.mark.parametrize(
    ("printed", "ends"),
    [
        (epochs([HEAD, TRAINED, TESTED]), True),
        (epochs([HEAD, TRAINED, TESTED], 9), False),
        (epochs([HEAD, TRAINED, TESTED]).removesuffix(TESTED), False),
        (epochs([HEAD]), False),
        (epochs(["Epoch [{n}/{of}], Batch [50/60], Loss: 0.2\n", "Epoch [{n}/{of}], Loss: 0.2\n"]), True),
        (epochs(["Epoch [{n}/{of}], Batch [50/60], Loss: 0.2\n"]), False),
        (epochs(["EPOCH : {n}/ {of} | Loss : 0.2\n"], begin=0) + "model saved\n", True),
        (epochs(["EPOCH : {n}/ {of} | Loss : 0.2\n"], 9), False),
    ],
)
def test_the_last_epoch_ends_when_it_has_the_lines_of_the_one_before(run, printed, ends):
    run.path.with_name("train.log").write_text(printed)
    assert bool(last_words(run)) is ends


def test_an_error_counts_without_the_line_break_behind_it(run):
    beside = run.path.with_name("train.log")
    beside.write_text(f"{TRAINING}100%|####| 40/40 [00:30<00:00,  1.36it/s]\n{TRACEBACK}NameError: no x")
    assert last_words(run).outcome == "crashed"
    assert "NameError: no x" in last_words(run).evidence
    beside.write_text(f"{TRACEBACK}NameError: no x\n{TRAINING * 3}")
    assert last_words(run) is None, "it went on"
    beside.write_text(f"{TRAINING}{TRACEBACK}")
    assert last_words(run).outcome == "crashed", "nothing followed for a while, so the rest was lost"


def test_words_with_much_after_them_are_not_the_last(run):
    run.path.with_name("train.log").write_text("training finished\n" + "step\n" * 60)
    assert last_words(run) is None


def test_output_that_is_older_than_the_log_does_not_speak_of_its_end(run):
    beside = run.path.with_name("train.log")
    beside.write_text("warm start: training finished\n")
    os.utime(beside, (0, os.stat(run.path).st_mtime - 3600))
    assert last_words(run) is None


def test_a_file_says_that_a_run_is_done(tmp_path, run):
    marker = done_file(run)
    assert marker == run.path.with_name("metrics.jsonl.done")
    for mark in (marker, run.path.with_name(".done")):
        assert last_words(run) is None
        mark.touch()
        assert last_words(run).evidence == f"{mark.name} lies beside its log"
        os.utime(mark, (0, os.stat(run.path).st_mtime - 3600))
        assert last_words(run) is None, "it was made before the run went on"
    mark.touch()
    other = plain(run.path.with_name("other.jsonl"))
    assert last_words(other) is None, "which of the two logs is done?"
    directory = Run(run.path.parent, "tensorboard", run.source)
    assert done_file(directory) == mark
    assert last_words(directory).outcome == "finished"
    assert done_file(Run(Url("memory", ("a",)), "memory", run.source)) is None


@pytest.mark.parametrize("expected", [True, 1, "true"])
def test_a_last_row_says_that_a_run_is_done(run, expected):
    for row, ends in (
        ({"step": 5, "done": False}, False),
        ({"step": 6, "done": expected}, True),
        ({}, False),
    ):
        with run.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        assert bool(last_words(run)) is ends
    with run.path.open("a") as file:
        file.write(json.dumps({"done": expected}) + "\n")
    assert last_words(run), "alone"


def test_rows_that_all_say_done_mean_something_else(run):
    run.path.write_text('{"step": 1, "done": true}\n' * 3)
    assert last_words(run) is None


def test_a_last_row_of_a_table_says_it(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("step,loss,done\n1,2.0,0\n2,1.9,True\n")
    run = Run(log, "csv", CsvLog(log))
    assert last_words(run).evidence == "its last row has `done: true`"
    log.write_text("step,loss,done\n1,2.0,0\n2,1.9,0\n")
    assert last_words(run) is None


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe\x00", b"{" * 5000, b'"' * 100, b"\0" * 300])
def test_what_cannot_be_read_says_nothing(run, damaged):
    for name in ("metrics.jsonl", "train.log", "log.csv"):
        run.path.with_name(name).write_bytes(damaged)
    assert last_words(run) is None
    table = run.path.with_name("log.csv")
    assert last_words(Run(table, "csv", CsvLog(table))) is None


@pytest.mark.parametrize(
    ("code", "name", "outcome", "how"),
    [
        ("3", "", EndKind.CRASHED, "exited with status 3"),
        ("-9", " (SIGKILL)", EndKind.CRASHED, "was killed by SIGKILL"),
        ("-15", " (SIGTERM)", EndKind.PREEMPTED, "was killed by SIGTERM"),
        ("-63", "", EndKind.CRASHED, "was killed by signal 63"),
    ],
)
def test_torchrun_says_which_rank_failed_first(run, code, name, outcome, how):
    table = TORCHRUN.format(code=code, name=name)
    run.path.with_name("train.log").write_text(f"{TRAINING}{table}")
    assert last_words(run) == Ending(
        outcome, f"torchrun printed that rank 2 (process 616) {how}", inferred=True
    )
    run.path.with_name("train.log").write_text(f"{TRAINING}{table}{TRAINING * 2}")
    assert last_words(run) is None, "it went on"
    run.path.with_name("train.log").write_text(f"{TRAINING}{table.partition('exitcode')[0]}")
    assert last_words(run) is None, "the table is cut"


def test_a_full_bar_that_is_drawn_once_more_is_one(run):
    states = [(80, "00:50"), (90, "00:55"), (100, "01:00"), (100, "01:04")]
    bars = [f"{n}%|###| {n}/100 [{elapsed}<00:00, 1.5it/s]" for n, elapsed in states]
    run.path.with_name("train.log").write_text("\n".join([*bars[:3], "saving the checkpoint", bars[3], ""]))
    assert last_words(run).outcome == "finished"
    run.path.with_name("train.log").write_text("\n".join([*bars, *bars, ""]))
    assert last_words(run) is None, "each of many bars"


def test_an_error_whose_traceback_bars_overwrote(run):
    last = "ValueError: the file is closed"
    run.path.with_name("train.log").write_text(f"{TRAINING}{'x' * 90}\r{last}, line 476, in __exit__\n")
    assert last_words(run).outcome == "crashed"
    run.path.with_name("train.log").write_text(f"{last}, skipped\n{TRAINING}")
    assert last_words(run) is None


@pytest.mark.parametrize(
    "last",
    [
        "2026-01-01 10:00:00 - ERROR - Training failed: 1",
        "train_lm.py: error: unrecognized arguments: --lr",
        "[2026-01-01 10:00:00,123] [ERROR] [launch.py:325:sigkill_handler] ['python', 'train.py'] exits with",
        "Process finished with exit code 1",
        "srun: error: node12: task 0: Exited with exit code 1",
        "make: *** [Makefile:12: train] Error 1",
        "ERROR conda.cli.main_run:execute(49): `conda run python train.py` failed. (See above for error)",
        "Segmentation fault (core dumped)",
        "run.sh: line 3: 2211 Segmentation fault (core dumped) python train.py",
        "python: can't open file 'train.py': [Errno 2] No such file or directory",
        "Process finished with exit code -1073740791 (0xC0000409)",
    ],
)
def test_an_error_that_was_printed_without_its_traceback(run, last):
    beside = run.path.with_name("train.log")
    beside.write_text(f"{TRAINING}{last}\n")
    assert (last_words(run).outcome, last in last_words(run).evidence) == ("crashed", True)
    beside.write_text(f"{TRAINING}{last}\n{TRAINING}")
    assert last_words(run) is None


def test_the_last_of_each_hundredth_epoch_counted_from_zero(run):
    rows = [f"EPOCH: {n:5}/ 1001 | Loss: 0.{n:04}" for n in range(0, 1001, 100)]
    run.path.with_name("train.log").write_text("\n".join([*rows, "learned rate: 8.7", "model saved", ""]))
    assert last_words(run).outcome == "finished"
    run.path.with_name("train.log").write_text("\n".join([*rows[:-1], "model saved", ""]))
    assert last_words(run) is None


def test_a_long_evaluation_after_an_early_stop(run):
    stopped = "stopping_early: wallclock_cap step:6799/20000"
    after = [f"chunk [{n}/80] bpb={1 / n:.3f}" for n in range(1, 80)]
    run.path.with_name("train.log").write_text("\n".join([TRAINING, stopped, *after, ""]))
    assert last_words(run) == Ending(EndKind.FINISHED, f"it printed {stopped!r}", inferred=True)
    run.path.with_name("train.log").write_text("\n".join([TRAINING, stopped, *after, TRAINING]))
    assert last_words(run) is None, "the training went on"
