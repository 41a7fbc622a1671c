"""What probes measure of a training without PyTorch. This needs no PyTorch."""

import logging

import numpy as np
import pytest

import sentinel
from sentinel.probes.discovery import probe_sets

WITHOUT_TORCH = sorted(name for name, kind in probe_sets().items() if not kind.needs_torch)


def rows_of(batches, evaluation=None, **training):
    """The rows that a probe writes of a training with arrays of NumPy."""
    rows = []
    write = lambda _, row: rows.append(row)  # noqa: E731
    with sentinel.probe(None, (), to=write, every=10, sets="cheap", **training) as probe:
        for batch in batches:
            probe.step(batch=batch, loss=0.5)
        if evaluation is not None:
            probe.evaluate(batch=evaluation, boxes=(10, 3))
    return rows


def images(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 8, 3, 5, 5)).astype(np.float32)


def test_the_sets_of_batches_measure_and_the_others_say_once_what_they_need(caplog):
    with caplog.at_level(logging.WARNING), sentinel.probe(None, (), to=print, sets="cheap") as probe:
        assert probe.sets == WITHOUT_TORCH
    (record,) = caplog.records
    assert record.getMessage().startswith("these probes are off, as they need a model of torch: carried_grad")


def test_inputs_are_measured():
    batches = images(21)
    *_, row = rows_of(batches)
    assert abs(row["data/input_mean"]) < 0.2
    assert row["data/input_max"] == batches[20].max()
    assert {f"data/input_mean/{channel}" for channel in range(3)} <= row.keys()
    *_, evaluated = rows_of(batches, evaluation=255 * batches[0])
    assert evaluated["data/eval_input_shift"] > 5
    assert evaluated["eval/boxes_kept"] == 0.3


@pytest.mark.slow
def test_batches_that_come_again_are_seen_whatever_their_type_and_layout():
    batches = images(80)
    for seen in batches, (255 * batches).astype(np.uint8), np.moveaxis(batches, 2, -1):
        assert rows_of(seen)[-1]["data/batches_again"] == 0
        assert rows_of(seen.repeat(2, 0))[-1]["data/batches_again"] == 0.5


def test_a_hash_of_a_batch_is_the_same_in_each_process():
    (row,) = rows_of(np.arange(32.0).reshape(1, 4, 8))
    assert row["data/batch_hash"] == 13852772


def test_padding_and_masked_labels_are_counted():
    batch = {"attention_mask": np.array([[1, 1, 0, 0]]), "labels": np.array([[-100, 5, -100, -100]])}
    (row,) = rows_of([batch])
    assert row["data/pad_fraction"] == 0.5
    assert row["data/valid_tokens"] == 2
    assert row["data/masked_label_fraction"] == 0.75
    assert row["data/batches_all_masked"] == 0


def test_a_replay_buffer_is_measured():
    (row,) = rows_of(images(1), replay=[1, 2])
    assert row["rl/replay_size"] == 2


def test_arrays_that_hold_no_numbers_are_passed_over(caplog):
    (row,) = rows_of([np.array([["a", "b"] * 8]), np.array([[None] * 16])])
    assert "data/batch_hash" not in row
    assert "is off: " not in caplog.text
