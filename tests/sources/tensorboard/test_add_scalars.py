"""The curves that ``add_scalars`` of torch writes, each in a directory of its own."""

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from sentinel.sources.tensorboard.add_scalars import names_of_curve

STEPS = 60


def _write(folder, tag, curve):
    writer = EventFileWriter(str(folder))  # that of torch
    for step in range(STEPS):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=curve(step))])
        writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=summary))
    writer.close()


def _signals(folder, **curves):
    """The signals of each run, by its name, of a training that draws these curves in one plot."""
    _write(folder, "accuracy", lambda step: 0.9 - 0.5 * 0.9**step)
    for name, curve in curves.items():
        _write(folder / f"Loss_{name}", "Loss", curve)
    logs = [run.run_pipeline.log for run in replay([folder], Config(), lambda *_: None).runs]
    return {
        log.name: {str(key): [*tags] for key, tags in log.understanding().signals.items()} for log in logs
    }


def test_one_of_several_losses_is_not_that_of_the_training(tmp_path):
    signals = _signals(tmp_path, pull=lambda _: 1.0, push=lambda step: 1 + step / 20)
    assert signals["Loss_pull"] == signals["Loss_push"] == {}


def test_networks_that_play_against_each_other_have_their_names(tmp_path):
    signals = _signals(tmp_path, G=lambda step: 1 + step / 50, D=lambda step: 0.7 - step / 200)
    assert signals["Loss_G"] == {"generator_loss": ["Loss/G"]}
    assert signals["Loss_D"] == {"discriminator_loss": ["Loss/D"]}


def test_parts_of_the_data_keep_their_names(tmp_path):
    signals = _signals(tmp_path, train=lambda step: 2 * 0.95**step, val=lambda step: 2.1 * 0.95**step)
    assert signals["Loss_train"].keys() == {"loss", "eval_loss"}


@pytest.mark.parametrize(
    ("directory", "name"),
    [("Loss_G", "Loss/G"), ("Loss", "Loss"), ("Loss_", "Loss"), ("fold_1", "Loss"), ("Losses_G", "Loss")],
)
def test_only_a_directory_of_the_plot_names_the_curve(tmp_path, directory, name):
    assert names_of_curve(tmp_path / directory, ["Loss"]) == [name]
    assert names_of_curve(tmp_path / f"plots_{directory}", ["plots/Loss"]) == [f"plots/{name}"]
