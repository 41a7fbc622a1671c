"""Timelines in a compact notation: one character is one judged row.

`.` clean, `i` info, `w` warning, `c` critical, `|` a restart of the run, blanks for reading only.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from detectors.api import Detector, History, Maturity, Variant
from detectors.signals import Signal
from sentinel.alerts.incident import Change
from sentinel.alerts.lifecycle import Book, Key, Verdict

RUN = "jsonl:/runs/a"
SEVERITY = {".": 0, "i": 1, "w": 2, "c": 3}
START = 1_700_000_000.0


def detector(name: str, maturity: Maturity = Maturity.STABLE) -> Detector:
    return Detector(
        name=name,
        rule=lambda points: points,
        page="",
        judges=(Signal.LOSS,),
        needs=(),
        uses=(),
        history=History(),
        every=1,
        maturity=maturity,
        variants={"bad": Variant("{tag} is at {level:.1f}", ("R2", "R1"))},
        parameters={},
    )


def book(*preview: str, **options) -> Book:
    names = (
        "kl-blowup",
        "flat-loss-at-init",
        "loss-scale-collapse",
        "lr-schedule-mismatch",
        "reward-zero-std",
        "entropy-collapse",
    )
    return Book(
        RUN,
        {n: detector(n, Maturity.PREVIEW if n in preview else Maturity.STABLE) for n in names},
        **options,
    )


def rows(
    line: str, detector: str = "kl-blowup", tag: str = "kl", stream: str = "s", first: int = 0
) -> list[Verdict]:
    """The verdicts of a line; row n stands at step 10 n of its attempt, second 60 n and position n."""
    verdicts: list[Verdict] = []
    attempt, index = 1, first
    for mark in line.replace(" ", ""):
        if mark == "|":
            attempt, index = attempt + 1, 0
            continue
        position = first + len(verdicts)
        verdicts.append(
            Verdict(
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
        )
        index += 1
    return verdicts


def by_position(verdicts: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """The verdicts cut as finely as polls can."""
    ordered = sorted(verdicts, key=lambda v: v.position)
    return (list(group) for _, group in groupby(ordered, key=lambda v: v.position))


def told(changes: Sequence[Change]) -> list[str]:
    """What happened, for reading: event, severity, and the step at which it did."""
    return [f"{c.event} {c.incident.severity.name.lower()} @{_step(c)}" for c in changes]


def _step(change: Change) -> int | None:
    incident = change.incident
    return incident.last_step if incident.resolved_step is None else incident.resolved_step
