"""Which rows of a file share a stream."""

import json
from collections.abc import Sequence

from sentinel.sources.base import Chunk
from sentinel.sources.readers.measured_rows import Row, Streams

TRAIN, VALID, TEST = range(3)
NAMES = {TRAIN: ("train loss", "epoch"), VALID: ("val loss", "epoch"), TEST: ("val loss", "epoch")}


def row(record: int, step: int, line: int, value: float = 0.5, unit: str = "epoch above") -> Row:
    return Row(record, "", NAMES[record], (value, float(step)), step, unit, "", line)


def read(rows: Sequence[Row]) -> list[Chunk]:
    """The chunks of rows that come one at a time, with a restart of the reader after each."""
    chunks: list[Chunk] = []
    memory: dict[str, object] = {}
    for each in rows:
        streams = Streams("train.log", memory, restarted=False)
        chunks += streams.chunks([each])
        memory = json.loads(json.dumps(streams.memory()))
    return [*chunks, *Streams("train.log", memory, restarted=False).chunks([], is_end=True)]


def told(chunks: Sequence[Chunk]) -> dict[str, list[tuple[str, int]]]:
    """The tag and the step of each point but the epochs, by stream."""
    points: dict[str, list[tuple[str, int]]] = {}
    for chunk in chunks:
        tags = [chunk.tags[at] for at in chunk.tag]
        points.setdefault(chunk.stream, []).extend(
            (tag, int(step)) for tag, step in zip(tags, chunk.step, strict=True) if tag != "epoch"
        )
    return points


def test_lines_of_one_epoch_share_a_stream_in_their_order() -> None:
    """A template tells its first three lines at once, after those of the template above it."""
    first = [row(TRAIN, 1, 2), row(TRAIN, 2, 5), row(TRAIN, 3, 8)]
    then = [row(VALID, 1, 3), row(VALID, 2, 6), row(VALID, 3, 9)]
    points = told(read([*first, *then, row(TRAIN, 4, 11), row(VALID, 4, 12)]))
    assert points == {"train.log": [(NAMES[at][0], step) for step in range(1, 5) for at in (TRAIN, VALID)]}


def test_one_name_of_two_counters_is_of_two_streams() -> None:
    rows = [row(at, step, 3 * step + at) for step in range(1, 5) for at in (VALID, TEST)]
    assert list(told(read(rows))) == ["train.log", "train.log:1"]


def test_lines_that_count_something_else_do_not_wait() -> None:
    steps = [row(TRAIN, 1, 2, unit="step"), row(VALID, 1, 3, unit="step")]
    assert list(told(Streams("train.log", {}, restarted=False).chunks(steps))) == ["train.log", "train.log:1"]


def test_nobody_waits_for_a_loss_that_is_no_number() -> None:
    streams = Streams("train.log", {}, restarted=False)
    assert not streams.chunks([row(TRAIN, 1, 2)])
    assert told(streams.chunks([row(TRAIN, 2, 5, float("nan"))])) == {
        "train.log": [("train loss", 1), ("train loss", 2)]
    }


def test_a_counter_that_falls_behind_goes_on_in_a_stream_of_its_own() -> None:
    rows = [row(at, step, 3 * step + at) for step in range(1, 4) for at in (TRAIN, VALID)]
    late = [row(TRAIN, 4, 20), row(TRAIN, 6, 30), row(VALID, 5, 31)]
    assert told(read([*rows, *late]))["train.log:1"] == [("val loss", 5)]


def test_lines_below_one_counter_share_a_stream() -> None:
    """As where each metric of a round of federated training has a line of its own."""
    rows = [row(at, step, 3 * step + at, unit="step above") for step in range(1, 5) for at in (TRAIN, VALID)]
    points = told(read(rows))
    assert points == {"train.log": [(NAMES[at][0], step) for step in range(1, 5) for at in (TRAIN, VALID)]}


def test_what_stands_below_the_batches_of_a_training_is_of_their_stream() -> None:
    """A template tells its first lines late, when the batches have gone on."""
    batches = [row(TRAIN, step, step, unit="step") for step in range(1, 10)]
    evaluations = [row(VALID, step, step, unit="step above") for step in (3, 6, 9)]
    points = told(read([*batches, *evaluations, row(TRAIN, 10, 10, unit="step")]))
    assert [*points] == ["train.log"]
    assert [step for names, step in points["train.log"] if "val loss" in names] == [3, 6, 9]


def batch(step: int, line: int) -> Row:
    """A batch of an epoch of ten."""
    return Row(TRAIN, "", ("loss", "epoch"), (0.5, 1.0 + (step - 1) // 10), step, "step", "", line)


def summary(epoch: int, steps: int, line: int) -> Row:
    """What a line of its own counter tells of an epoch of so many steps."""
    return Row(VALID, "", NAMES[VALID], (0.5, float(epoch)), epoch * steps, "step", "", line)


def test_lines_that_sum_up_the_batches_of_an_epoch_are_of_their_stream() -> None:
    """As long-term forecasters print them, with the number of the batches: "Epoch: 2, Steps: 10 | ..."."""
    batches = [batch(step, step) for step in range(2, 31, 2)]
    summaries = [summary(epoch, 10, line) for epoch, line in ((1, 11), (2, 22), (3, 33))]
    points = told(read([*batches, *summaries]))
    assert [*points] == ["train.log"]
    assert [step for name, step in points["train.log"] if name == "val loss"] == [10, 20, 30]


def test_lines_that_count_the_batches_of_an_evaluation_are_of_another_stream() -> None:
    batches = [batch(step, step) for step in range(2, 31, 2)]
    summaries = [summary(epoch, 2, line) for epoch, line in ((1, 11), (2, 22), (3, 33))]
    assert list(told(read([*batches, *summaries]))) == ["train.log", "train.log:1"]


def test_what_stands_below_batches_and_has_their_names_is_of_another_stream() -> None:
    batches = [row(VALID, step, step, unit="step") for step in range(1, 10)]
    evaluations = [row(TEST, step, step, unit="step above") for step in (3, 6, 9)]
    assert list(told(read([*batches, *evaluations]))) == ["train.log", "train.log:1"]


def test_what_stands_below_batches_and_goes_back_alone_is_of_another_stream() -> None:
    """Rows of a table between the batches and an evaluation were taken for its counter."""
    batches = [row(TRAIN, step, step, unit="step") for step in range(1, 10)]
    evaluations = [row(VALID, step, line, unit="step above") for line, step in ((3, 3), (6, 6), (9, 1))]
    points = told(read([*batches, *evaluations]))
    assert [step for names, step in points["train.log"] if "val loss" in names] == [3, 6]
    assert [step for _, step in points["train.log:1"]] == [1]


def test_epochs_and_other_counters_do_not_share_a_stream() -> None:
    rows = [
        row(at, step, 3 * step + at, unit=unit)
        for step in range(1, 5)
        for at, unit in ((TRAIN, "epoch above"), (VALID, "step above"))
    ]
    assert list(told(read(rows))) == ["train.log", "train.log:1"]


def test_lines_that_take_turns_share_a_stream() -> None:
    rows = [row(at, step, 3 * step + at, unit="row") for step in range(1, 6) for at in (TRAIN, VALID)]
    points = told(read(rows))
    assert points == {"train.log": [(NAMES[at][0], step) for step in range(1, 6) for at in (TRAIN, VALID)]}


def test_a_line_that_is_seldom_beside_others_has_a_stream_of_its_own() -> None:
    often = [row(TRAIN, step, 2 * step, unit="row") for step in range(1, 9)]
    seldom = [row(VALID, 1, 3, unit="row"), row(VALID, 2, 15, unit="row")]
    rows = sorted([*often, *seldom], key=lambda each: each.line)
    assert list(told(read(rows))) == ["train.log", "train.log:1"]
