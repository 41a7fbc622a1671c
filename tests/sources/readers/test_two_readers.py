"""A log is read on by the reader that began, though the next search takes it for a log of another kind."""

import json

import pytest

from sentinel.sources.discovery import discover
from sentinel.sources.general import logs
from tests.sources.writers import WRITERS

STEPS = 20


@pytest.mark.parametrize("name", ["console", "csv", "json"])
@pytest.mark.parametrize("is_general", [False, True])
def test_a_log_is_read_on_by_the_reader_that_began(tmp_path, name, is_general):
    """A training saves its log while a search looks at it, so the search takes it for one of no format."""
    writer = WRITERS[name]()
    writer.start(tmp_path)
    for step in range(STEPS):
        writer.log(step, {"train/loss": 2 - step / 100, "val/loss": 2 - step / 200})
    (known,) = discover([tmp_path]).runs
    general = logs.run_in(known.path, is_over=False)
    assert general.id == known.id
    first, second = (general, known) if is_general else (known, general)
    begun = first.source.poll({}, 1000)
    for step in range(STEPS, 2 * STEPS):
        writer.log(step, {"train/loss": 2 - step / 100, "val/loss": 2 - step / 200})
    writer.close()
    rest = second.source.poll(json.loads(json.dumps(begun.cursor)), 1000)
    left = [*rest.chunks, *second.source.flush(rest.cursor)]
    steps = [int(step) for chunk in [*begun.chunks, *left] for step in chunk.flat.step]
    assert sorted(set(steps)) == list(range(2 * STEPS))
    assert len(steps) == 2 * len(set(steps))
    assert not any(chunk.restarted for chunk in left)
