"""Tables with a column for each part of the data, as AllenNLP prints one an epoch."""

from sentinel.sources.recurring.lines import RecurringLines
from tests.sources.recurring.restarting import rows_after_restarts

EPOCHS = 8
LOGGED = "2019-04-19 22:31:04,519 - INFO - allennlp.training.tensorboard_writer - "


def printed(epoch):
    yield f"2019-04-19 22:31:04,500 - INFO - allennlp.training.trainer - Epoch {epoch}/19\n"
    yield f"{LOGGED}                    Training |  Validation\n"
    yield f"{LOGGED}accuracy        |     0.{40 + epoch}  |     0.{30 + epoch}\n"
    yield f"{LOGGED}cpu_memory_MB   |  2578.380  |       N/A\n"
    yield f"{LOGGED}loss            |     1.{50 - epoch}  |     1.{60 + epoch}\n"
    yield "2019-04-19 22:31:05,088 - INFO - allennlp.training.trainer - Epoch duration: 00:00:43\n"


LINES = [line.encode() for epoch in range(EPOCHS) for line in printed(epoch)]


def test_each_number_has_the_part_of_its_column():
    reader = RecurringLines()
    rows = reader.read(b"".join(LINES)) + reader.end()
    by_epoch = {}
    for row in rows:
        by_epoch.setdefault(row.step, {}).update(zip(row.names, row.values, strict=True))
    assert sorted(by_epoch) == list(range(EPOCHS))
    assert by_epoch[3]["training_accuracy"] == 0.43
    assert by_epoch[3]["validation_accuracy"] == 0.33
    assert by_epoch[3]["validation_loss"] == 1.63


def test_a_restart_within_a_table_loses_nothing():
    reader = RecurringLines("train")
    assert rows_after_restarts(LINES) == reader.read(b"".join(LINES))


def test_a_line_below_the_table_is_read_as_it_is():
    below = [b"step %d | loss 0.%d | 0.5\n" % (step, 90 - step) for step in range(8)]
    names = {name for row in RecurringLines().read(b"".join(LINES + below)) for name in row.names}
    assert not any(name.startswith("training_step") for name in names)
