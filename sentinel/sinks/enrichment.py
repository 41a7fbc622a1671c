"""Adds to a notification a link to the run, and the last checkpoint before the onset.

Both are looked up when it is sent, because a listing of a slow file system must not delay the watch.
"""

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sinks.checkpoints import last_checkpoint
from sentinel.sinks.notification import Notification

_MAX_LISTING_SECONDS = 5.0  # for the checkpoints of a run
_WANDB_RUN = lazy_pattern(r"wandb://([^/]+)/([^/]+)/([^/]+)")
_WANDB_CLOUD = {"", "https://api.wandb.ai"}  # values of WANDB_BASE_URL

_listing = threading.Lock()


def completed(notification: Notification, link: str, options: str = "") -> Notification:
    """Return the notification with its link, its checkpoint and the ``options`` of commands about it.

    ``link`` is a template with {run}, {path} and {step}.
    """
    run = notification.run
    path = notification.run.location
    incident = notification.incident
    checkpoints: list[str] = []
    onset = notification.first_onset or (incident.onset_step, incident.onset_time)
    if path and "://" not in path and incident.open:
        _run_within(_MAX_LISTING_SECONDS, lambda: checkpoints.append(last_checkpoint(path, *onset)))
    return replace(
        notification,
        link=_run_link(link, run.run, path, incident.onset_step),
        checkpoint=checkpoints[0] if checkpoints else "",
        options=options,
    )


def _run_link(template: str, run: str, path: str, step: int) -> str:
    """Return the template's link; without one, the run's page on a W&B server. Text from runs is quoted."""
    if template:
        values = {"run": quote(run, safe=""), "path": quote(path, safe=""), "step": str(step)}
        return re.sub(r"\{(run|path|step)\}", lambda name: values[name[1]], template)
    if match := _WANDB_RUN.fullmatch(path):
        base = os.environ.get("WANDB_BASE_URL", "").rstrip("/")
        entity, project, name = (quote(part, safe="") for part in match.groups())
        return f"{'https://wandb.ai' if base in _WANDB_CLOUD else base}/{entity}/{project}/runs/{name}"
    return ""


def _run_within(seconds: float, work: Callable[[], object]) -> None:
    """Do work that a file system may delay, and wait only so long. Do nothing while earlier work hangs."""

    def run() -> None:
        with suppress(OSError):
            work()
        _listing.release()

    if _listing.acquire(blocking=False):
        thread = threading.Thread(target=run, name="checkpoints", daemon=True)
        thread.start()
        thread.join(seconds)
