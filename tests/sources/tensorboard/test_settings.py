"""Settings in event files, as the frameworks' own writers put them there."""

import json

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto
from tensorboardX import SummaryWriter

from sentinel.sources.tensorboard.event_files import EventFiles

ARGUMENTS = {"max_steps": 500, "warmup_steps": 50, "output_dir": "out", "fsdp": []}


def read(directory, limit=1000):
    """Points and settings in their order."""
    cursor = {}
    found = []
    more = True
    while more:
        batch = EventFiles(directory).poll(cursor, limit)
        cursor = json.loads(json.dumps(batch.cursor))
        more = batch.more
        assert not batch.read_issues
        for chunk in batch.chunks:
            found += [dict(chunk.config)] if chunk.config else []
            found += [(chunk.tags[t], s) for t, s in zip(chunk.tag, chunk.step.tolist(), strict=True)]
    return found


def text(tag, content):
    tensor = make_tensor_proto(np.array([content.encode()], dtype=object))
    return Summary.Value(tag=tag, metadata=text_metadata.create_summary_metadata("", ""), tensor=tensor)


def scalar(step):
    return step, Summary.Value(tag="loss", simple_value=1.0)


def write(directory, *values):
    writer = EventFileWriter(str(directory))
    for step, value in values:
        writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=[value])))
    writer.close()


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_arguments_that_transformers_logs_precede_the_points(tmp_path, limit):
    arguments = text("args/text_summary", json.dumps(ARGUMENTS, indent=2))
    model = text("model_config/text_summary", '{"hidden_size": 8, "max_steps": 3}')
    write(tmp_path, (0, arguments), (0, model), scalar(1), scalar(2))
    told = {"max_steps": 500, "warmup_steps": 50, "output_dir": "out"}
    told_of_model = {"model_config.hidden_size": 8, "model_config.max_steps": 3}
    *settings, first, second = read(tmp_path, limit)
    assert [first, second] == [("loss", 1), ("loss", 2)]
    assert {k: v for one in settings for k, v in one.items()} == told | told_of_model


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_settings_keep_their_place_among_the_points(tmp_path, limit):
    later = text("hyperparameters", "|param|value|\n|-|-|\n|max_steps|9|\n|env_id|CartPole|")
    write(tmp_path, scalar(0), scalar(1), (1, later), scalar(2), scalar(3))
    config = {"max_steps": "9", "env_id": "CartPole"}
    assert read(tmp_path, limit) == [("loss", 0), ("loss", 1), config, ("loss", 2), ("loss", 3)]


def test_hparams_as_tensorboardx_writes_them(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_hparams(
            {"lr": 0.1, "bias": True, "name": "x"}, {"hparam/loss": 1.0}, name="inner", global_step=3
        )
    found = read(tmp_path / "inner")
    assert {"lr": 0.1, "bias": True, "name": "x"} in found


@pytest.mark.parametrize(
    "prose", ["a sample: |x|", "{broken", "[1, 2]", "", "| a | b |\n| - |", "{" * 10_000]
)
def test_prose_is_no_setting(tmp_path, prose):
    write(tmp_path, (0, text("generated/text_summary", prose)), scalar(1))
    assert read(tmp_path) == [("loss", 1)]
