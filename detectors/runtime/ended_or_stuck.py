"""The log stopped growing, and nothing says whether the run ended or is stuck.

## What it catches
A silence as long as that of `stream-stall`, of a run that nothing expects to go on: no plan, no schedule, no
process that is seen alive. Where a watch saw the process end, and neither the system nor the log says how, it
does not wait for that. Most such runs have ended, so this is a question. It is asked once, as a warning, and
no reminder follows. If a run of the same tree stopped at the same step before, nobody is asked again, and
several runs that fall silent together are one question. Nor is anybody asked within 1.5 times the longest
pause, or of a log with one step at most, which is hardly a training.

## Why it matters
The end of a plain training and a hang look the same from its log. To call each end a hang would wake people
for nothing, and to call each hang an end would let it cost money all night.

## What to do
Look whether the run ended. An empty file `.done` answers: in the directory of the run, or beside its log with
the log's whole name before it. So that nobody is asked next time, let the training log a last row with
`done: true` (a value of 1 under the tag `done`), write that file, or log its planned steps at its start.

## When it is wrong
A run that pauses for longer than ever before. One that goes on withdraws the question.

## Source
The ends of plain training loops, which log no end; the limits are those of `stream-stall`.
"""

import shlex
from collections.abc import Iterator
from typing import Annotated

from sentinel.detectors.api import Cause, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.inactivity import SILENCE_EVIDENCE, Long, long_silence

TIMES_LONGEST = 1.5  # the longest pause; an evaluation that took so long may come again


@run_check(
    reads="the clock",
    evidence={
        **SILENCE_EVIDENCE,
        "hint": Measure("sign of an end", Unit.TEXT),
        "answer": Measure("answered by", Unit.TEXT),
    },
    variants={
        "silent": Variant(
            "no new point for {silent_seconds:duration}: ended or stuck? Most likely it ended, but nothing "
            "says so; {answer} settles it",
            (),
            no_reminder=True,
        ),
        "dead": Variant(
            "no new point for {silent_seconds:duration}, and its process is gone: it ended or was killed, "
            "and its log does not say which; {answer} settles it",
            (),
            no_reminder=True,
        ),
        "together": Variant(
            "all {runs_silent} runs below {place} stopped at the same step: ended or stuck? Most likely they "
            "ended, but nothing says so; no new point for {silent_seconds:duration}",
            (),
            no_reminder=True,
        ),
        "at_once": Variant(
            "all {runs_silent} runs below {place} fell silent together: ended, or are the file system or the "
            "machine in trouble? Nothing says that they should go on; no new point for "
            "{silent_seconds:duration}",
            (),
            no_reminder=True,
        ),
    },
    maturity=Maturity.STABLE,
    cause=Cause.STALL,
)
def ended_or_stuck(
    run: RunView, *, least_seconds: Annotated[float, "silence that is always allowed"] = 600.0
) -> Iterator[RunFinding]:
    """Yield one finding for each silence, numbered by the points before it."""
    if run.finalized is not None:
        yield RunFinding(run.points)  # how it ended is the answer
    if run.silent_seconds is None or run.ended is not None:
        return
    long = long_silence(run, least_seconds)
    if long is None or long.goes_on or run.log_is_removed():
        yield RunFinding(run.points)
        return
    is_usual = run.silent_seconds <= TIMES_LONGEST * max(run.waits, default=0.0)
    if is_usual or _has_one_step(run):
        return
    touch = f"`touch {shlex.quote(run.done_file)}` or " if run.done_file else ""
    evidence = {**long.evidence, "answer": f"{touch}a last row with `done: true`"}
    if long.hint:
        evidence["hint"] = long.hint
    yield RunFinding(run.points, _variant(run, long), evidence=evidence)


def _has_one_step(run: RunView) -> bool:
    """Return whether a log has one step at most, as those of settings, of texts and of idle ranks do.

    If its process was seen to end, that does not count.
    """
    return run.first_step == run.last_step and not run.process_gone


def _variant(run: RunView, long: Long) -> str:
    if long.together:
        return "together" if run.together and run.together.same_step else "at_once"
    return "dead" if long.process.lives is False else "silent"
