"""Timelines in a compact notation: one character is one judged row.

`.` clean, `i` info, `w` warning, `c` critical, `|` a restart of the run, blanks for reading only.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.detectors import api
from sentinel.detectors.api import Cause, Detector, History, Maturity, Variant
from sentinel.detectors.signals import Signal
from sentinel.incidents.incident import Change
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.incidents.verdict_merge import Key, Segment, Verdict

RUN = "jsonl:/runs/a"
SEVERITY = {".": 0, "i": 1, "w": 2, "c": 3}
START = 1_700_000_000.0


CLASSES = {
    "kl-blowup": (Cause.POLICY, (Cause.POLICY, Cause.REWARD)),
    "length-drift": (Cause.POLICY, (Cause.POLICY, Cause.REWARD)),
    "entropy-collapse": (Cause.POLICY, (Cause.REWARD,)),
    "reward-zero-std": (Cause.REWARD, ()),
    "loss-scale-collapse": (Cause.SCALER, (Cause.SCHEDULE, Cause.LOSS_SHAPE)),
    "lr-schedule-mismatch": (Cause.SCHEDULE, (Cause.LOSS_SHAPE,)),
    "flat-loss-at-init": (Cause.LOSS_SHAPE, ()),
    "loss-spike": (Cause.LOSS_SHAPE, ()),
    "loss-divergence": (Cause.DIVERGENCE, (Cause.GRADIENT_SIZE,)),
    "exploding-grad-norm": (Cause.GRADIENT_SIZE, (Cause.DIVERGENCE,)),
    "non-finite-metric": (
        Cause.NUMERICS,
        (Cause.LOSS_SHAPE, Cause.EVALUATION, Cause.POLICY, Cause.REWARD, Cause.CRASH),
    ),
    "zero-gradient": (Cause.NO_GRADIENT, (Cause.LOSS_SHAPE,)),
    "resume-discontinuity": (Cause.RESUME, (Cause.LOSS_SHAPE,)),
    "crash": (Cause.CRASH, tuple(cause for cause in Cause if cause is not Cause.NUMERICS)),
    "stall": (Cause.STALL, (Cause.LOSS_SHAPE, Cause.SPEED, Cause.EVALUATION)),
}
"""What each detector finds, and what its findings explain."""


@api.detector(
    judges=(Signal.LOSS,),
    history=History(),
    variants={"bad": Variant("{tag} is at {level:.1f}", ("R2", "R1"))},
)
def anything(points):
    """A rule that nobody asks: the verdicts of timelines are written down."""
    return points


def detector(name: str, maturity: Maturity = Maturity.STABLE, hold: int = 2, clear: int = 10) -> Detector:
    cause, silences = CLASSES[name]
    return replace(
        anything, name=name, maturity=maturity, hold=hold, clear=clear, cause=cause, inhibits=silences
    )


def tracker(*preview: str, **counts: int) -> IncidentTracker:
    """A book of the detectors above; ``counts`` are the ``hold`` and the ``clear`` of all of them."""
    maturity = dict.fromkeys(preview, Maturity.PREVIEW)
    return IncidentTracker(RUN, {n: detector(n, maturity.get(n, Maturity.STABLE), **counts) for n in CLASSES})


def rows(
    line: str, detector: str = "kl-blowup", tag: str = "kl", stream: str = "s", first: int = 0
) -> list[list[Verdict]]:
    """The verdicts of a line, each a stretch of its own.

    Row n stands at step 10 n of its attempt, second 60 n and position n.
    """
    verdicts: list[list[Verdict]] = []
    attempt = 1
    index = first
    for mark in line.replace(" ", ""):
        if mark == "|":
            attempt = attempt + 1
            index = 0
            continue
        position = first + len(verdicts)
        verdict = Verdict(
            key=Key(RUN, stream, attempt, tag, detector),
            signal="kl",
            index=index,
            step=10 * index,
            time=START + 60.0 * position,
            position=position,
            severity=SEVERITY[mark],
            variant="bad" if mark != "." else None,
            evidence={"level": float(index)},
        )
        verdicts.append([verdict])
        index += 1
    return verdicts


def changed(verdicts: Sequence[Segment], **fields: Any) -> list[Segment]:
    """The same verdicts with other fields."""
    return [[msgspec.structs.replace(v, **fields) for v in stretch] for stretch in verdicts]


def by_position(verdicts: Sequence[Segment]) -> Iterator[list[Segment]]:
    """The verdicts cut as finely as polls can."""
    ordered = sorted(verdicts, key=lambda rows: rows[0].position)
    return (list(group) for _, group in groupby(ordered, key=lambda rows: rows[0].position))


def stretches(verdicts: Sequence[Segment]) -> list[Segment]:
    """The same verdicts in stretches that are as long as can be."""
    by_key: dict[Key, list[list[Verdict]]] = {}
    for (verdict,) in sorted(verdicts, key=lambda rows: rows[0].position):
        segments = by_key.setdefault(verdict.key, [])
        last = by_key[verdict.key][-1:]
        if last and (last[0][0].severity, last[0][0].key.attempt) == (verdict.severity, verdict.key.attempt):
            last[0].append(verdict)
        else:
            segments.append([verdict])
    return [rows for segments in by_key.values() for rows in segments]


def timeline_of(changes: Sequence[Change]) -> list[str]:
    """What happened, for reading: event, severity, and the step at which it did."""
    return [f"{c.event} {c.incident.severity.label} @{_step(c)}" for c in changes]


def _step(change: Change) -> int | None:
    incident = change.incident
    return incident.last_step if incident.resolved_step is None else incident.resolved_step
