"""Restores what was recorded of a run."""

import logging
from functools import partial

from sentinel.alerts.store import Store
from sentinel.guard import Guard
from sentinel.pipeline import Pipeline
from sentinel.sources.base import Run
from sentinel.text import clean_text
from sentinel.tracking import Tracker

_log = logging.getLogger(__name__)


def restored(pipeline: Pipeline, store: Store, run: Run, name: str) -> Tracker:
    """A tracker from the last commit of the run; if that cannot be used, from the start of its log."""
    tracker, state, guard = pipeline.track(run, name), store.run_state(run.id), Guard()
    if state is not None:
        guard(run, "restoring", partial(tracker.restore, state))
    if run.id not in guard.failures:
        return tracker
    _log.error(
        "%s: its saved state cannot be used, so its log is read from the start: %s",
        clean_text(name),
        guard.failures[run.id],
    )
    return pipeline.track(run, name)
