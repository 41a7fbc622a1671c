"""The message types that are read from wandb's modules are those that wandb has."""

import pytest
from wandb.proto import wandb_internal_pb2

from sentinel.sources.wandb import messages as wandb_messages
from sentinel.sources.wandb.messages import message_type


@pytest.mark.parametrize("name", ["Record", "HistoryRecord", "HistoryItem"])
def test_they_are_described_as_wandb_describes_them(name):
    ours = message_type(name).DESCRIPTOR
    theirs = getattr(wandb_internal_pb2, name).DESCRIPTOR
    assert ours.file.serialized_pb == theirs.file.serialized_pb
    assert ours.full_name == theirs.full_name


def test_what_wandb_writes_is_read():
    record = wandb_internal_pb2.Record(num=7)
    record.history.item.add(nested_key=["a", "b"], value_json="0.5")
    read = message_type("Record").FromString(record.SerializeToString())
    assert read.num == 7
    assert list(read.history.item[0].nested_key) == ["a", "b"]


def test_of_a_wandb_with_other_modules_all_is_imported(tmp_path, monkeypatch):
    (tmp_path / "v9").mkdir()
    (tmp_path / "v9" / "wandb_base_pb2.py").write_text("DESCRIPTOR = None\n")
    for other in (tmp_path, tmp_path / "gone"):
        monkeypatch.setattr(wandb_messages, "_proto", lambda other=other: other)
        wandb_messages._pool.cache_clear()
        assert message_type.__wrapped__("Record") is wandb_internal_pb2.Record
    wandb_messages._pool.cache_clear()
