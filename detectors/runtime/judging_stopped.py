"""Some of the log, or all that follows in it, is not judged.

## What it catches
Four reasons why no detector looks at what is logged, each said once:

- The steps of a stream went back so often that they order nothing any more. Nothing that follows is judged.
- A signal has more tags than are kept, such as one for each of a thousand layers. Further tags are left out.
- The log cannot be read: its file is no log, or the system refuses it. This is over as soon as it can be.
- A stage of sentinel fails on the run, such as the reader of its log. The run is tried again after growing
  pauses, and this is over as soon as that succeeds and the log goes on.

## Why it matters
A run that nobody judges looks like a healthy one.

## What to do
Steps that go back: see which processes write the log. Give each training a log of its own, or log from one
rank alone, and start the run in a new directory. Too many tags: log a summary, such as the norm over all
layers, or set tags that are no signal to `ignore` below `[signals]`. An unreadable log: look at its
permissions and at what wrote it.

## When it is wrong
A job that was resumed more than sixty times in one log. It is read on as soon as it gets a new one.

## Source
`MAX_ATTEMPTS` in `sentinel/series/attempts.py`: no scheduler restarts a job that often.
`MAX_TAGS_PER_SIGNAL` in `sentinel/series/attempt.py`: a model's layers, in memory that stays small.
"""

from collections.abc import Iterator

from sentinel.detectors.api import INFO, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check

# stand where others name their stream
UNREADABLE = "the log"
FAILED = "a stage of sentinel"


@run_check(
    reads="the order of steps, the number of tags, whether the log can be read",
    evidence={"reason": Measure("reason", Unit.TEXT)},
    variants={
        "disordered": Variant("nothing that follows in the log is judged: {reason}", (), (INFO,)),
        "too-many-tags": Variant("not all that is logged is judged: {reason}", (), (INFO,)),
        "unreadable": Variant("nothing more is judged: {reason}", (), (INFO,)),
        "failed": Variant("the run is not judged at present: {reason}", (), (INFO,)),
    },
    maturity=Maturity.STABLE,
)
def judging_stopped(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding for each stream and signal, where it stopped, and one while nothing is judged."""
    for stop in run.stopped:
        yield RunFinding(
            index=0,
            variant="too-many-tags" if stop.signal else "disordered",
            tag=f"{stop.stream} {stop.signal}".rstrip(),
            step=stop.step,
            time=stop.time,
            evidence={"reason": stop.reason},
        )
    for variant, tag, reason in (("unreadable", UNREADABLE, run.unreadable), ("failed", FAILED, run.failure)):
        yield RunFinding(
            index=run.points,
            variant=variant if reason else None,
            tag=tag,
            evidence={"reason": reason} if reason else {},
        )
