"""A state that a release wrote is read by this version: its incidents, its decisions and what its runs told.

`releases/VERSION.sql` is the dump of such a state: `watch --once` on a log whose loss is NaN from step 50 on.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.runs.log import Remembered
from sentinel.runs.state_codec import unpacked
from sentinel.sources.discovery import discover
from sentinel.storage.store import Store

SCHEMAS = {"0.1.0": 7}
"""The schema of the state of each release."""

HERE = Path(__file__).parent


def test_every_release_is_kept():
    assert {file.stem for file in (HERE / "releases").glob("*.sql")} == SCHEMAS.keys()


@pytest.mark.parametrize("release", SCHEMAS)
def test_the_state_of_a_release_is_read(tmp_path, release):
    with closing(sqlite3.connect(tmp_path / "sentinel.sqlite")) as database:
        database.executescript((HERE / "releases" / f"{release}.sql").read_text(encoding="utf-8"))
        database.execute(f"PRAGMA user_version = {SCHEMAS[release]}")
    with Store(tmp_path) as store:
        (incident,) = store.incidents(open_only=True)
        assert (incident.detector, incident.fired_step) == ("non-finite-metric", 50)
        assert incident.open
        assert {one.sent for one in store.decisions()} == {True}
        assert [page.incident for page in store.feedback.pages(0.0)] == [incident.id]
        state = store.run_state(incident.run)
    told = Remembered.of(unpacked(state)).facts
    assert (told.points, told.last_step) == (60, 59)
    assert_restores_or_begins_anew(state, tmp_path)


def assert_restores_or_begins_anew(state: bytes, place: Path):
    """A state of another layout is left alone, so that the log is read anew."""
    (place / "log.jsonl").write_text('{"step": 1, "loss": 1.0}\n')
    pipeline = Pipeline(all_detectors().values(), {}, {})
    tracker = pipeline.track(discover([place / "log.jsonl"]).runs[0], "train")
    restored = tracker.restore(state)
    assert tracker.log.facts.points == (60 if restored else 0)
