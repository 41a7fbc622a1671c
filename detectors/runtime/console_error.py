"""The training printed an error that ends it.

## What it catches
An exception that reaches the top of the program (Python's "Traceback (most recent call last):" and the line
that names the exception), and lines that a page of the catalogue bears as its signature: running out of
memory, a kill, a collective operation that timed out, a loss printed as NaN. The first error in time is
told; what other ranks print after it confirms it. What a rank prints because it lost another one only
informs: the death of that one, its own error or the end of the run is told.

## Why it matters
A process that died does nothing more for its cost. The error's own line says why, and it scrolls away among
the output of launchers and of other ranks.

## What to do
Read the line and the place where it was raised. Where the catalogue knows the line, its first entry says what
to try. Of several ranks, the one that failed first has the cause.

## When it is wrong
An exception that the training caught, printed and survived. It resolves once the run has printed `50` more
lines, or a row of metrics at another step. Tracebacks below a line of a logger's level ERROR or WARNING count
as caught, unless it says that the training failed or says nothing; so does an interrupt from the keyboard.

## Source
The `signatures` in the pages of the catalogue, each typed after the source of the library that prints the
line; CPython, Lib/traceback.py.
"""

from collections.abc import Iterator

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, Maturity, Severity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check

SEVERITIES = CRITICAL, WARNING  # of a line, by the catalogue; an exception that it does not know is critical
OF_EXCEPTIONS = *SEVERITIES, INFO  # the latter where a rank says that another one is gone


@run_check(
    reads="console lines",
    evidence={
        "text": Measure("line", Unit.TEXT),
        "place": Measure("raised in", Unit.TEXT),
        "line": Measure("line number", Unit.COUNT),
        "origin": Measure("printed in", Unit.TEXT),
    },
    variants={
        "exception": Variant('the run printed "{text}" ({place}), {origin}', (), OF_EXCEPTIONS),
        "signature": Variant('the run printed "{text}", {origin}', (), SEVERITIES),
    },
    maturity=Maturity.STABLE,
    cause=Cause.CRASH,
    inhibits=tuple(cause for cause in Cause if cause is not Cause.NUMERICS),  # numbers break before the error
)
def console_error(run: RunView) -> Iterator[RunFinding]:
    """Yield a finding for each error; a clean one where the run went on."""
    for printed in run.printed:
        if printed.preempted:
            continue
        is_error = printed.severity > Severity.CLEAN
        yield RunFinding(
            index=printed.line,
            severity=printed.severity,
            variant=("exception" if printed.location else "signature") if is_error else None,
            tag=printed.origin,
            step=printed.step,
            time=printed.time,
            evidence={
                "text": printed.text,
                "place": printed.location,
                # Of a log that is itself printed, only the lines that tell no metrics are counted.
                "line": printed.line if printed.origin else None,
                "origin": f"line {printed.line} of {printed.origin}" if printed.origin else "in its console",
            },
            catalogue=printed.catalogue,
        )
