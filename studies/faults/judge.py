"""What sentinel and its peers say of the logs."""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sentinel.detectors.severity import Severity
from sentinel.sources.discovery import discover
from studies.faults.truth import Run

POINTS_AT_ONCE = 100_000
COMMON_NAMES = {"loss": "loss", "eval_loss": "eval_loss", "learning_rate": "lr", "grad_norm": "grad_norm"}
"""The names that every peer knows of the signals that it judges."""
COUNTERS = {"step", "epoch"}
"""What some loggers log beside the step; a peer may take it for the step."""


@dataclass(frozen=True)
class Alert:
    """An incident that a sink hears of by default, with its causes, the likeliest first."""

    detector: str
    step: int
    causes: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """What was said of a run.

    ``alerts`` are in the order of their steps, ``shown`` are the detectors whose incidents only a report
    shows, and ``peers`` is what each peer found: None where it could not judge the log.
    """

    run: Run
    last_step: int
    alerts: Sequence[Alert]
    shown: Sequence[str]
    peers: Mapping[str, Sequence[str] | None]

    @property
    def right(self) -> Alert | None:
        """The first alert that names the fault among its causes."""
        return next((one for one in self.alerts if {*one.causes} & {*self.run.catalogue}), None)

    @property
    def first(self) -> bool:
        """Whether the fault is the likeliest cause of an alert."""
        return any(one.causes[0] in self.run.catalogue for one in self.alerts if one.causes)

    @property
    def delay(self) -> float | None:
        """Time from the first step that shows the fault to the first alert, as a share of what is left."""
        if not self.alerts or self.last_step <= self.run.visible:
            return None
        return (self.alerts[0].step - self.run.visible) / (self.last_step - self.run.visible)


def median_delay(outcomes: Sequence[Outcome]) -> float | None:
    delays = [one.delay for one in outcomes if one.delay is not None]
    return median(delays) if delays else None


Replayed = Mapping[str, Any]
"""A log as `sentinel replay --format json` describes it."""


def replay(logs: Path, runs: Sequence[Run]) -> list[list[Replayed]]:
    """Replay everything; gives the logs of each run."""
    command = [sys.executable, "-m", "sentinel", "replay", str(logs), "--format", "json"]
    replayed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["runs"]
    return [[one for one in replayed if Path(one["path"]).is_relative_to(logs / run.path)] for run in runs]


def outcome(run: Run, replayed: Sequence[Replayed], peers: Mapping[str, Sequence[str] | None]) -> Outcome:
    """What was said of a run, all of whose logs were ``replayed``, and what each of the peers found."""
    incidents = [one for log in replayed for one in log["incidents"] if not one["inhibited_by"]]
    loud = [
        one
        for one in incidents
        if one["maturity"] == "stable" and Severity.named(one["severity"]) >= Severity.WARNING
    ]
    alerts = [Alert(one["detector"], one["fired_step"] or 0, one["catalogue"]) for one in loud]
    return Outcome(
        run=run,
        last_step=max(log["last_step"] or 0 for log in replayed),
        alerts=sorted(alerts, key=lambda alert: alert.step),
        shown=sorted({one["detector"] for one in incidents if one not in loud}),
        peers=peers,
    )


def export(run: Path, replayed: Sequence[Replayed], table: Path) -> None:
    """Write a run as a CSV file under the names of metrics that all peers know.

    So what they find does not depend on the formats that they read.
    """
    names = {
        tags[0]: COMMON_NAMES[signal]
        for log in replayed
        for signal, tags in log["signals"].items()
        if signal in COMMON_NAMES
    }
    rows: list[tuple[int, dict[str, float]]] = []
    for source in (found.source for found in discover([run]).runs):
        cursor: Mapping[str, Any] = {}
        while (batch := source.poll(cursor, POINTS_AT_ONCE)).chunks:
            cursor = batch.cursor
            for chunk in (chunk.flat for chunk in batch.chunks):
                for index, step, value in zip(
                    chunk.tag, chunk.step.tolist(), chunk.value.tolist(), strict=True
                ):
                    if not rows or rows[-1][0] != step:
                        rows.append((step, {}))
                    rows[-1][1][names.get(chunk.tags[index], chunk.tags[index])] = value
    columns = dict.fromkeys(tag for _, values in rows for tag in values if tag not in COUNTERS)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, ["step", *columns], extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**values, "step": step} for step, values in rows)
