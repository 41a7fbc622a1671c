"""The log of a run that should go on stopped growing.

## What it catches
No new point for longer than each of these: ten minutes, ten times a long pause of the run (nineteen in twenty
are shorter), twice its second longest pause. After three times as long it is critical. Evaluations,
checkpoints and compilations are among these pauses, so a run that regularly takes long for one has the time.
A log that is only written when a checkpoint is saved has an hour until it was written twice.

The run should go on if its process lives, its plan is not reached, or its learning rate is in the middle of
its schedule. A plan alone makes no finding critical, because a training may stop early. If nothing says so,
`ended-or-stuck` asks. If all runs of a directory that are expected to grow, three or more, fall silent
together, the file system or the machine is the trouble, and a person hears of it once. A log that is gone is
said to be gone.

## Why it matters
A collective operation that waits for a rank that died, a deadlock in the data loader or a kill without a
word cost as much as training does, and nothing reports them.

## What to do
See whether the process lives: the finding names it where it runs on this machine. If it lives, the finding
says where its ranks stand and which one the others wait for, with the lines if the extra `stacks` is
installed; else let `py-spy dump --pid` show that. A process that a signal stopped (Ctrl-Z, `SIGSTOP`) goes on
after `kill -CONT`. If it is gone, look for a kill in the kernel's log.
`[process] devices = true` adds what GPUs and NCCL tell, which is not proved with several GPUs yet.

## When it is wrong
The first evaluation of a run, where it takes longer than ten minutes; a log whose writer buffers for long; a
training that stops early and does not say so. A run that goes on resolves it. It is judged by the clock of a
watch: a replay, whose log ends where it ends, is silent about it.

## Source
Catalogue A-err-hang, A-err-nccl and DP3. Ten times the 95th percentile of a run's own pauses, and at least
ten minutes, leave evaluations and checkpoints alone.
"""

from collections.abc import Iterator
from typing import Annotated

from sentinel.detectors.api import CRITICAL, WARNING, Cause, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.inactivity import SILENCE_EVIDENCE, Long, long_silence

SILENT_MESSAGE = (
    "no new point for {silent_seconds:duration}, where {allowed_seconds:duration} are allowed; {goes_on}"
)
HANG_ENTRIES = "A-err-hang", "DP3", "A-err-nccl"
MAX_TIMES_ALLOWED = 3  # thirty minutes where the threshold is ten

STANDSTILL_EVIDENCE = {
    "standstill": Measure("where it stands", Unit.TEXT),
    "standstill_kind": Measure("kind of hang", Unit.TEXT),
    "frames": Measure("frames", Unit.TEXT),
    "ranks": Measure("ranks", Unit.COUNT),
    "devices": Measure("its devices", Unit.TEXT),
}


@run_check(
    reads="the clock",
    evidence={**SILENCE_EVIDENCE, "goes_on": Measure("should go on", Unit.TEXT), **STANDSTILL_EVIDENCE},
    variants={
        "silent": Variant(SILENT_MESSAGE, (*HANG_ENTRIES, "A-err-exit9"), (WARNING, CRITICAL)),
        "lives": Variant(SILENT_MESSAGE, HANG_ENTRIES, (WARNING, CRITICAL)),  # so it was not killed
        "hangs": Variant(
            "no step for {silent_seconds:duration}. {standstill}", HANG_ENTRIES, (WARNING, CRITICAL)
        ),
        "stopped": Variant(
            "no step for {silent_seconds:duration}. {standstill}",
            (),
            (WARNING, CRITICAL),
            first_step="Let it go on with `kill -CONT`, or end it.",
        ),
        "gone": Variant(
            "its log is gone: it was removed or moved, or its file system was unmounted; no new point for "
            "{silent_seconds:duration}",
            (),
            (WARNING, CRITICAL),
        ),
        "together": Variant(
            "all {runs_silent} runs below {place} fell silent together, so look at the file system and the "
            "machine: no new point for {silent_seconds:duration}",
            (),
            (CRITICAL,),
        ),
    },
    maturity=Maturity.STABLE,
    cause=Cause.STALL,
    inhibits=tuple(cause for cause in Cause if cause not in (Cause.STALL, Cause.CRASH, Cause.NUMERICS)),
)
def stream_stall(
    run: RunView, *, least_seconds: Annotated[float, "silence that is always allowed"] = 600.0
) -> Iterator[RunFinding]:
    """Yield one finding for each silence, numbered by the points before it."""
    if run.silent_seconds is None:
        return
    long = long_silence(run, least_seconds)
    variant = _variant(run, long) if long else None
    if long is None or variant is None:
        if run.silent_seconds <= least_seconds and run.ended is None:
            yield RunFinding(run.points)  # it goes on; no end of a run is an end of its stall
        return
    evidence = {**long.evidence, **({"goes_on": long.goes_on} if long.goes_on else {})}
    if variant in ("silent", "lives"):
        if (stands := run.hang_diagnosis()) is None:
            return  # it is told in some seconds, with what the ranks do
        if stands.sentence:
            values = (stands.sentence, stands.kind, stands.frames, stands.ranks, stands.devices)
            standstill = {
                name: value for name, value in zip(STANDSTILL_EVIDENCE, values, strict=True) if value
            }
            # A process that a signal stopped waits for nobody, so no cause of a hang explains it.
            variant = "stopped" if stands.kind == "stopped" else "hangs"
            evidence = {**evidence, **standstill}
    certain = long.sure or variant == "gone"
    worse = long.times_allowed > MAX_TIMES_ALLOWED and certain and variant != "together"
    yield RunFinding(run.points, variant, CRITICAL if worse else None, evidence=evidence)


def _variant(run: RunView, long: Long) -> str | None:
    if long.together and long.goes_on:
        return "together"
    if run.log_is_removed():
        return "gone"
    if not long.goes_on:
        return None
    return "lives" if long.process.lives else "silent"
