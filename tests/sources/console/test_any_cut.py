"""However a log is cut, and whichever of its lines are looked at, it gives the same points."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sentinel.sources.base import Run, flush
from sentinel.sources.console import text as console_text
from sentinel.sources.console.log import ConsoleLog
from tests.sources.reader import Reader

pytestmark = pytest.mark.long

PIECES = [
    "step {n}: loss 0.{n}, lr 1e-4\n",
    "Epoch {n}/40:\n",
    "Train - Loss: 0.{n} | Acc: 75%\n",
    "Val set:\n",
    " Accuracy: 0.{n}\n",
    "loss: 0.{n} acc: 0.25\n",
    "Epoch(train) [{n}][ 50/99]  loss: 0.{n}\n",
    "[{n}/9] loss: 1.{n}\n",
    "{{'loss': 0.{n}, 'epoch': 0.{n}}}\n",
    "{{'loss': 0.{n}, 'epoch': 0.{n}}}",
    "{{'eval_loss': 0.{n}, 'epoch': 0.{n}}}\n",
    "{{'train_runtime': 5.{n}, 'epoch': 2.0}}\n",
    "\r 50%|#####     | {n}/40 [00:01<00:03,  3.0it/s]",
    "\r 60%|######    | 1{n}/40 [00:01<00:03,  3.0it/s]",
    "\r 10%|#         | {n}/8 [00:01<00:03,  3.0it/s]",
    "\rEpoch {n}:  50%|#####     | {n}/9 [00:01<00:03, 1.0it/s, loss=0.{n}]",
    "\rEpoch 2: 100%|##########| 9/9 [00:01<00:03, 1.0it/s, loss=0.{n}]\n",
    "\rSteps:  50%|#####     | {n}/40 [00:01<00:03, 1.0it/s, step_loss=0.{n}]",
    "\rloss: 0.{n}:  50%|#####     | {n}/40 [00:01<00:03, 1.0it/s]",
    "\rloss: 1.{n}: 100%|##########| 9/9 [00:01<00:00, 1.0it/s]\n",
    "\rValidating: 100%|##########| {n}/{n} [00:01<00:00, 1.0it/s, loss=1.{n}]\n",
    "\r          \r",
    "  0%|          | 0/40 [00:00<?, ?it/s]\n",
    " 70%|#######   | 2{n}/40 [00:01<00:03,  3.0it/s]\n",
    " 70%|#######   | 2{n}/40 [00:01<00:03,  3.0it/s]\r\n",
    " 80%|########  | {n}/8 [00:01<00:00,  3.0s/it]\n",
    "-----------------\n",
    "| loss    | 0.{n} |\n",
    "| total_timesteps | {n} |\n",
    "epoch     train_loss  valid_loss  accuracy  time\n",
    "{n}         0.834567    0.712345    0.712300  00:12\n",
    "     Epoch  gpu_mem    box_loss\n",
    "       {n}/9    2.15G       0.{n}:  50%|##### | 4/9 [00:02<00:00,  3.5it/s]\r",
    "       {n}/9    2.15G       0.{n}: 100%|######| 9/9 [00:02<00:00,  3.5it/s]\n",
    "       {n}/9    2.15G       0.{n}: 100% ━━━━━━ 9/9 3.5it/s 2.3s\n",
    "   Class   Images   Box(P   mAP50): 100%|######| 4/4 [00:01<00:00,  3.5it/s]\n",
    "     all       12     0.5     0.{n}\n",
    "Result for PPO_{n}:\n",
    "  info:\n",
    "    loss: 0.{n}\n",
    "  timesteps_total: {n}\n",
    "[batch={n}/60]:\n",
    "\t Train loss/train/total: 0.{n}\n",
    "[rank1]: step {n}: loss 0.{n}\n",
    "\x1b[32mstep\x1b[0m {n}: loss 0.{n}\r\n",
    "WARNING: value {n} of the test is out of range\n",
    "Traceback (most recent call last):\n",
    "Total optimization steps = {n}0\n",
    "nothing in particular\n",
    "\n",
    "\r\n",
]
BARS_AND_ROWS = [piece for piece in PIECES if "%|" in piece or "{{" in piece or piece.endswith(":\n")]
texts = st.sampled_from([PIECES, BARS_AND_ROWS]).flatmap(
    lambda pieces: st.lists(st.tuples(st.sampled_from(pieces), st.integers(1, 9)), max_size=24).map(
        lambda drawn: "".join(piece.format(n=n) for piece, n in drawn).encode()
    )
)


def reader(path: Path) -> Reader:
    """Read a log as a console, for which a search may choose another reader by its first lines."""
    found = Reader(path.with_name("nothing"))
    run = Run(path, "console", ConsoleLog(path))
    found.runs = {run.id: run}
    return found


def left(read: Reader) -> list[tuple[str, int, str]]:
    """The tag, the step and the value of each point that the end of the log makes sure."""
    chunks = [
        chunk for run in read.runs.values() for chunk in flush(run.source, json.loads(read.cursors[run.id]))
    ]
    return sorted(
        (chunk.tags[tag], step, str(value))
        for chunk in chunks
        for tag, step, value in zip(
            *(getattr(chunk, n).tolist() for n in ("tag", "step", "value")), strict=True
        )
    )


@settings(max_examples=150, deadline=None)
@example(b"{'loss': 0.1, 'epoch': 0.1}step 1: loss 0.1, lr 1e-4\n", [27], 1)
@given(texts, st.lists(st.integers(0, 1500), max_size=6), st.integers(1, 4))
def test_any_cut_gives_the_same_points(tmp_path_factory, text, cuts, limit):
    path = tmp_path_factory.mktemp("cut") / "train.printed"
    path.write_bytes(text)
    at_once = reader(path).poll()
    whole = sorted(at_once.points)
    path.write_bytes(b"")
    pieces = reader(path)
    for cut in (*sorted(cuts), len(text)):
        path.write_bytes(text[:cut])
        pieces.poll(limit)
    assert sorted(pieces.points) == whole
    assert left(pieces) == left(at_once)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_what_is_passed_over_tells_nothing(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("passed") / "train.log"
    path.write_bytes(text)
    fast = ConsoleLog(path).poll({}, 10_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console_text, "may_count", lambda lines, _: [*range(len(lines))])
        patch.setattr(console_text, "redrawn", lambda *_: set())
        slow = ConsoleLog(path).poll({}, 10_000)
    assert repr(fast.chunks) == repr(slow.chunks)
    assert [(one.text, one.step) for one in fast.lines] == [(one.text, one.step) for one in slow.lines]
    assert (fast.cursor, fast.config) == (slow.cursor, slow.config)
