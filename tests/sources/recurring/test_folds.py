"""Cross-validation with Keras: its bars tell no epoch, the titles above do."""

from sentinel.sources.recurring.lines import RecurringLines
from tests.sources.recurring.restarting import rows_after_restarts

EPOCHS = 3


def _fold(examples):
    for epoch in range(1, EPOCHS + 1):
        yield f"Epoch {epoch}/{EPOCHS}\n"
        for batch in (32, 64, examples):
            yield f"{batch}/{examples} [====>....] - ETA: 0s - loss: {1 / (epoch * batch):.4f}\n"


LINES = [line.encode() for examples in (90, 96) for line in _fold(examples)]


def test_steps_begin_anew_with_each_fold():
    rows = RecurringLines("train").read(b"".join(LINES))
    assert [row.step for row in rows] == [
        examples * epoch + batch
        for examples in (90, 96)
        for epoch in range(EPOCHS)
        for batch in (32, 64, examples)
    ]


def test_the_fold_is_known_after_a_restart():
    assert rows_after_restarts(LINES) == RecurringLines("train").read(b"".join(LINES))
