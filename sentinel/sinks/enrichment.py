"""What a notification says beyond the incident: a link to the run, and the last checkpoint before the onset.

Both are looked up when it is sent, because a listing of a slow file system must not hold up the watch.
"""

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from sentinel.sinks.base import Notification
from sentinel.sinks.checkpoints import last_checkpoint

_MAX_LISTING_SECONDS = 5.0
_WANDB_RUN = re.compile(r"wandb://([^/]+)/([^/]+)/([^/]+)")
_WANDB_CLOUD = {"", "https://api.wandb.ai"}

_listing = threading.Lock()


def completed(notification: Notification, link: str, options: str = "") -> Notification:
    """Return the notification with its link, its checkpoint and the ``options`` of commands about it.

    ``link`` is a template with {run}, {path} and {step}.
    """
    run = notification.run
    place = notification.run.location
    incident = notification.incident
    saved: list[str] = []
    onset = notification.first_onset or (incident.onset_step, incident.onset_time)
    if place and "://" not in place and incident.open:
        _within(
            _MAX_LISTING_SECONDS,
            lambda: saved.append(last_checkpoint(place, *onset)),
        )
    return replace(
        notification,
        link=_link(link, run.run, place, incident.onset_step),
        checkpoint=saved[0] if saved else "",
        options=options,
    )


def _link(template: str, run: str, place: str, step: int) -> str:
    """Return the link of the template; without one, the page of a run on a W&B server. Text from runs is
    quoted.
    """
    if template:
        values = {"run": quote(run, safe=""), "path": quote(place, safe=""), "step": str(step)}
        return re.sub(r"\{(run|path|step)\}", lambda name: values[name[1]], template)
    if match := _WANDB_RUN.fullmatch(place):
        base = os.environ.get("WANDB_BASE_URL", "").rstrip("/")
        entity, project, name = (quote(part, safe="") for part in match.groups())
        return f"{'https://wandb.ai' if base in _WANDB_CLOUD else base}/{entity}/{project}/runs/{name}"
    return ""


def _within(seconds: float, work: Callable[[], object]) -> None:
    """Do what a file system may hold up, and wait only so long; nothing while the last one still hangs."""

    def run() -> None:
        with suppress(OSError):
            work()
        _listing.release()

    if _listing.acquire(blocking=False):
        thread = threading.Thread(target=run, name="checkpoints", daemon=True)
        thread.start()
        thread.join(seconds)
