"""Documents of numbers, one for each epoch, are one log."""

import json
import os

import pytest

from tests.sources.reader import Reader


def write(directory, name, **values):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(json.dumps(values))


@pytest.fixture
def allennlp(tmp_path):
    """What AllenNLP writes for each epoch."""
    for epoch in range(11):
        numbers = {"training_loss": 1 / (epoch + 1), "validation_loss": epoch / 8, "best_epoch": 0}
        times = {"training_duration": "0:07:35.75", "peak_cpu_memory_MB": 1580.6}
        write(tmp_path, f"metrics_epoch_{epoch}.json", epoch=epoch, **numbers, **times)
    write(tmp_path, "metrics.json", best_epoch=0, training_loss=0.1, validation_loss=1.25)
    return tmp_path


def losses(reader, tag="validation_loss"):
    return [(step, float(value)) for name, step, value in reader.points if name == tag]


def test_documents_are_read_in_the_order_of_their_numbers(allennlp):
    assert losses(Reader(allennlp).poll()) == [(epoch, epoch / 8) for epoch in range(11)]


def test_the_name_gives_the_step_where_the_document_has_none(tmp_path):
    for step in (500, 1500, 1000):
        write(tmp_path, f"eval_step_{step}.json", accuracy=step / 2000)
    assert losses(Reader(tmp_path).poll(), "eval/accuracy") == [(500, 0.25), (1000, 0.5), (1500, 0.75)]


def test_each_kind_of_name_is_a_stream(tmp_path):
    for epoch in range(3):
        write(tmp_path, f"train_epoch{epoch}.json", loss=1.0 - epoch / 4)
        write(tmp_path, f"val_epoch{epoch}.json", loss=1.0 + epoch / 4)
    reader = Reader(tmp_path).poll()
    assert losses(reader, "loss") == [(0, 1.0), (1, 0.75), (2, 0.5)]
    assert losses(reader, "val/loss") == [(0, 1.0), (1, 1.25), (2, 1.5)]


@pytest.mark.parametrize(
    "names", [["metrics_epoch_3.json"], ["config_1.json", "config_2.json"], ["step_1.json", "epoch_2.json"]]
)
def test_what_stands_alone_is_no_log(tmp_path, names):
    for name in names:
        write(tmp_path, name, loss=1.0)
    assert not Reader(tmp_path).poll().points


def test_settings_for_each_step_are_no_log(tmp_path):
    for step in range(3):
        write(tmp_path, f"step_{step}.json", width=64, depth=step)
    assert not Reader(tmp_path).poll().points


def test_a_broken_document_is_named_and_the_others_are_read(allennlp):
    (allennlp / "metrics_epoch_4.json").write_text(
        '{"validation_loss": oops, "epoch": 4, "training_loss": 0.1}'
    )
    reader = Reader(allennlp).poll().poll()
    assert [step for step, _ in losses(reader)] == [0, 1, 2, 3, *range(5, 11)]
    assert len(reader.read_issues) == 1
    assert reader.read_issues[0].startswith(f"{allennlp / 'metrics_epoch_4.json'} at line 1: ")


def test_documents_that_an_earlier_training_left_do_not_count(allennlp):
    reader = Reader(allennlp).poll()
    an_hour_ago = os.stat(allennlp).st_mtime - 3600
    for path in allennlp.glob("metrics_epoch_*"):
        os.utime(path, (an_hour_ago, an_hour_ago))
    for epoch in range(2):
        write(allennlp, f"metrics_epoch_{epoch}.json", epoch=epoch, training_loss=1.0, validation_loss=2.0)
        reader.poll()
    assert losses(reader)[11:] == [(0, 2.0), (1, 2.0)]
    assert reader.restarts == 1
    assert losses(Reader(allennlp).poll()) == [(0, 2.0), (1, 2.0)]


def test_documents_that_a_copy_brings_late_are_read(allennlp):
    late = allennlp / "metrics_epoch_2.json"
    text = late.read_text()
    late.unlink()
    reader = Reader(allennlp).poll()
    late.write_text(text)
    reader.poll()
    assert losses(reader)[10:] == [(epoch, epoch / 8) for epoch in range(11)]
