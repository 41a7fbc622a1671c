"""Arrays of numbers that take several lines, as NumPy prints them below a training's batches."""

import numpy as np

from sentinel.sources.recurring.lines import RecurringLines
from tests.sources.recurring.restarting import rows_after_restarts

RNG = np.random.default_rng(0)
EPOCHS = 8


def printed(epoch):
    """What a training of a segmenter prints in an epoch, and below it the IoU of each class."""
    for batch in range(0, 40, 10):
        yield f"Epoch: [{epoch}/30] Iter:[{batch}/40], lr: [0.01], Loss: {3 - epoch / 10 - batch / 1000:.4f}"
    overlaps = RNG.random(19)
    yield from f"0 {overlaps} {overlaps.mean():.4f}".split("\n")
    yield from f"Loss: {2 - epoch / 10:.3f}, MeanIU:  {epoch / 10:.4f}, IoU {overlaps}".split("\n")
    yield from str(overlaps).split("\n")


LINES = [f"{line}\n".encode() for epoch in range(EPOCHS) for line in printed(epoch)]


def test_its_numbers_count_nothing_and_are_no_rows():
    reader = RecurringLines("train")
    rows = reader.read(b"".join(LINES)) + reader.end()
    of_evaluations = {"Loss by step above", "MeanIU"}
    assert {name for row in rows for name in row.names} == {"epoch", "lr", "Loss"} | of_evaluations
    scores = {row.step: row.values[row.names.index("MeanIU")] for row in rows if "MeanIU" in row.names}
    assert scores == {40 * epoch + 30: epoch / 10 for epoch in range(EPOCHS)}


def test_a_restart_within_one_loses_nothing():
    assert rows_after_restarts(LINES) == RecurringLines("train").read(b"".join(LINES))


def test_a_line_behind_one_that_never_ends_is_read():
    lines = [b"[0.1 0.2 0.3\n", b" 0.4 0.5 0.6\n", *(b"step %d loss 0.%d\n" % (n, 90 - n) for n in range(8))]
    rows = RecurringLines("train").read(b"".join(lines))
    assert [row.step for row in rows] == [*range(8)]
