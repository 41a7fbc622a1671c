"""`sentinel status`: show what the state directory holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel.cli.options import ConfigFile, StateDir, configuration
from sentinel.clock import SystemClock

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sentinel.alerts.incident import Incident
    from sentinel.alerts.store import RunRow, Store

_RUNS_SHOWN = 20
_UNDELIVERED_SHOWN = 20
_DECISIONS_SHOWN = 20
_OUTAGE_SECONDS = 120.0
"""A watch records every ten seconds that it looked; a long read or a long `poll_seconds` may delay it."""

_Section = tuple[str, Sequence[str], Iterable[Sequence[str]]]


def status(config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """Show runs, incidents, deliveries, decisions and health."""
    from rich.console import Console

    from sentinel.alerts.store import Store

    console = Console(highlight=False)
    place = configuration(config, state_dir).state_dir
    with Store(place, create=False) as store:
        for title, columns, rows in _sections(store, place, SystemClock().now()):
            console.print(_table(title, columns, list(rows)), "")


def _sections(store: Store, place: Path, now: float) -> Iterable[_Section]:
    from sentinel.alerts.database import watching_process
    from sentinel.text import duration_text

    def ago(then: float) -> str:
        return f"{duration_text(max(0.0, now - then))} ago"

    def words(value: Any) -> str:
        if not isinstance(value, dict):
            return str(value)
        told = (f"{k[:-3]} {ago(v)}" if k.endswith("_at") else f"{k} {v}" for k, v in value.items())
        return ", ".join(told).replace("_", " ")

    runs = store.runs()
    yield (
        f"Runs: {len(runs)}",
        ("last read", "format", "path", "state", "evidence"),
        [(ago(run.updated), run.format, run.path, *_stands(store, run, now)) for run in runs[:_RUNS_SHOWN]],
    )
    yield (
        "Judging stopped",
        ("since", "path", "why"),
        [(ago(stop.since), stop.path, stop.reason) for stop in store.stops.all().values()],
    )
    yield (
        "Open incidents",
        ("severity", "detector", "state", "since step", "run", "summary"),
        [
            (i.severity.name.lower(), i.detector, _state(i), str(i.onset_step), i.run, i.summary)
            for i in sorted(store.incidents(open_only=True), key=lambda i: -i.severity)
        ],
    )
    count = store.outbox.undelivered_count()
    yield (
        f"Undelivered: {count}" if count else "Undelivered",
        ("sink", "incident", "tries", "next", "error"),
        [
            (
                entry.sink,
                entry.incident,
                str(entry.attempts),
                "given up" if entry.failed else f"in {duration_text((entry.next_attempt or now) - now)}",
                entry.error or "",
            )
            for entry in store.outbox.undelivered(_UNDELIVERED_SHOWN)
        ],
    )
    yield (
        "Latest decisions",
        ("when", "sink", "event", "decision", "detector", "run"),
        [
            (ago(d.at), d.sink, d.event, d.reason, d.detector, d.run)
            for d in store.decisions(_DECISIONS_SHOWN)
        ],
    )
    yield (
        "Silences",
        ("id", "run", "detector", "for", "reason"),
        [(s.id, s.run, s.detector, duration_text(s.until - now), s.reason) for s in store.silences(now)],
    )
    health = store.health()
    parts = [(key, words(value)) for key, value in health.items()]
    looks = [value["looked_at"] for value in health.values() if isinstance(value, dict)]
    silent = now - max(looks, default=now)
    if silent > _OUTAGE_SECONDS and (process := watching_process(place)):
        parts.append((f"process {process}", f"watches, but recorded nothing for {duration_text(silent)}"))
    yield "Health", ("part", "health"), parts


def _stands(store: Store, run: RunRow, now: float) -> tuple[str, str]:
    """The state of a run and the evidence for it."""
    from sentinel.runs.log import Remembered
    from sentinel.runs.state import silent_seconds, standing
    from sentinel.sources.places import Url

    try:
        kept = Remembered.of(store.run_state(run.id) or b"")
    except ValueError:
        return (
            "unknown",
            "its saved state cannot be decoded; a watch reads its log from the start",
        )
    silent = silent_seconds(Url.parse(run.path) or Path(run.path), kept.facts.last_time, now)
    stands = standing(kept.ending, silent, kept.facts.lost_after_seconds)
    return stands.state.value, stands.evidence


def _state(incident: Incident) -> str:
    explained = f", explained by {incident.inhibited_by}" if incident.inhibited_by else ""
    return f"{incident.state}{explained}"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """The rows under a title. Cells are plain text, because run names are untrusted."""
    from rich.table import Table
    from rich.text import Text

    from sentinel.text import clean_text

    if not rows:
        return Text.assemble((title, "bold"), ("" if title.endswith("0") else ": none", "dim"))
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean_text(cell)) for cell in row))
    return table
