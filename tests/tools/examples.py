"""What the page of a detector shows of it: a golden as a picture in text, and why it holds a verdict back.

`make docs` writes `detectors/examples.toml`, which `sentinel explain` and the docs site read.
"""

import itertools
import textwrap

import numpy as np
import polars as pl

from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import SEVERITY, SIGNAL, STEP
from sentinel.detectors.skip_reason import SkipReason
from sentinel.report.pages import EXAMPLES
from sentinel.report.sparkline import marks, sparkline
from sentinel.series.windows import frame
from tests.detectors.golden import Scenario, Stream, message, shipped, windows

WIDTH = 76  # with the four blanks before it, a page has 80 columns
MAX_BUCKETS = 48
MAX_STREAMS = 3
HEAD = "# `make docs` writes this file from the goldens of the detectors.\n"


def written() -> str:
    """The whole file."""
    return HEAD + "".join(map(section, filter(is_rule, all_detectors().values())))


def is_rule(detector) -> bool:
    """Whether it judges series, of which there can be a picture."""
    return isinstance(detector, Detector)


def section(detector: Detector) -> str:
    reasons = "".join(f'    "{reason}",\n' for reason in skipped(detector))
    listed = f"[\n{reasons}]" if reasons else "[]"
    return f"\n[{detector.name}]\nskipped = {listed}\npicture = '''\n{picture(detector)}\n'''\n"


def skipped(detector: Detector) -> list[SkipReason]:
    """The reasons for which the rule gives no verdict, as its plan names them."""
    shown = frame(detector, windows(detector, shipped()[detector.name][0].streams))
    plan = detector.rule(shown.lazy()).explain(optimized=False)
    return [reason for reason in SkipReason if f'"{reason}"' in plan]


def picture(detector: Detector) -> str:
    """The first golden with the usual severity: its curves, a mark at the finding, and what is said."""
    scenario, row = example(detector)
    streams = sorted(scenario.streams, key=lambda one: one.signal != row[SIGNAL])[:MAX_STREAMS]
    steps = np.concatenate([one.step for one in streams])
    width = max(len(one.tag or one.signal) for one in streams)
    buckets = min(MAX_BUCKETS, WIDTH - width - 4 - max(len(span(one)) for one in streams))
    edges = np.unique(np.linspace(steps.min(), steps.max() + 1, buckets + 1).astype(int))
    lines = [curve(one, edges, width) for one in streams]
    lines.insert(1, " " * (width + 2) + marks(edges[:-1].tolist(), [(row[STEP], "^")]))
    said = f"step {row[STEP]}, {Severity(row[SEVERITY]).label}: {message(detector, row)}"
    return "\n".join(f"    {line}" for line in [*lines, *textwrap.wrap(said, WIDTH)])


def example(detector: Detector) -> tuple[Scenario, dict]:
    """A scenario and the first row that has the severity."""
    usual = detector.severities[0]
    for scenario in shipped()[detector.name]:
        found = scenario.verdicts.filter(pl.col(SEVERITY) == usual).sort(STEP)
        if len(found):
            return scenario, found.row(0, named=True)
    raise AssertionError(f"no golden of {detector.name} has its usual severity")


def curve(stream: Stream, edges: np.ndarray, width: int) -> str:
    """A bar for each bucket: the point that is farthest from what is usual, a gap where there is none."""
    finite = stream.value[np.isfinite(stream.value)]
    usual = np.median(finite) if len(finite) else 0.0
    bars = []
    for begin, end in itertools.pairwise(edges):
        inside = stream.value[(stream.step >= begin) & (stream.step < end)]
        inside = inside[np.isfinite(inside)]
        bars.append(float(inside[np.abs(inside - usual).argmax()]) if len(inside) else float("nan"))
    return f"{stream.tag or stream.signal:{width}}  {sparkline(bars)}  {span(stream)}"


def span(stream: Stream) -> str:
    """Its smallest and largest value."""
    finite = stream.value[np.isfinite(stream.value)]
    return f"{finite.min():.4g} to {finite.max():.4g}" if len(finite) else "no finite value"


def write() -> None:
    EXAMPLES.write_text(written(), encoding="utf-8")
