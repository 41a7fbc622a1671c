"""Goldens: a page for each detector that a person can read and a test can run.

A golden holds scenarios, each under a ``###`` heading: prose, one or more streams, and what the detector says
of them.

    ### The loss jumps once
    ```stream loss every=10 from=10
    2.0~0.01x60 9.0 1.4x20
    ```
    ```expect
    500  clean
    610  warning  jump  loss jumped to 9; the last 50 points sat at 2
    620  clean
    ```

A stream's name is one of `sentinel.detectors.signals.Signal`; its tag has the same name, unless it has a
``tag``. Its first point has step ``from`` (0 by default), the next ones ``every`` (1) further. Its values,
separated by blanks:

    2.5           one point; also 1e-5, nan, inf, -inf
    _             no point at this step
    2.5x20        20 points; so with everything below, and with _
    1+0.1x20      a ramp: 1, 1.1, 1.2, ...            1-0.1x20 falls
    1*0.9x20      a decay: 1, 0.9, 0.81, ...
    1~0.2x20      Gaussian noise of standard deviation 0.2; also after a ramp: 1+0.1~0.2x20
    1~20%x20      the same in proportion to the value
    (0 1 1)x20    60 points: the values in brackets, 20 times; brackets do not nest

Noise is seeded by the stream's own text. Streams of a scenario are one run, logged side by side. What the
run's settings say may stand in a block of its own, as TOML under any of their names:

    ```settings
    num_classes = 10
    ```

A stream with ``attempt=2`` is logged after a restart, behind all streams without.

A detector that is asked at the end sees the last row a second time, as the end of the run.

An ``expect`` line says what changes: the first step of each stretch of equal severity, so the first
line also shows from where on the detector can judge. With several judged streams a line names the
signal after the step. ``python -m sentinel.testing.golden PAGE...`` fills in the expect blocks of pages that
are called like their detectors; read the difference before you believe it.
"""

import re
import sys
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import INDEX, ONSET, SERIES, SEVERITY, SIGNAL, STEP, VARIANT
from sentinel.detectors.signals import Signal
from sentinel.incidents.incident import LASTED, lasted_text
from sentinel.series.attempt import Attempt
from sentinel.series.attempts import Points
from sentinel.series.plan import Plans, planned
from sentinel.series.specs import series_specs
from sentinel.series.windows import Judged, frame

_GOLDEN_FENCE = lazy_pattern(
    r"^```(?P<kind>stream|settings|expect)\b *(?P<options>.*)\n(?P<body>(?:.*\n)*?)```$", re.MULTILINE
)
_GOLDEN_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
_GOLDEN_TOKEN = lazy_pattern(
    rf"(?:(?P<missing>_)|(?P<value>nan|-?inf|-?{_GOLDEN_NUMBER}))"
    rf"(?:(?P<change>[+*-])(?P<by>{_GOLDEN_NUMBER}))?(?:~(?P<noise>{_GOLDEN_NUMBER})(?P<share>%)?)?(?:x(?P<times>\d+))?"
)
_GOLDEN_GROUP = lazy_pattern(r"\(([^()]*)\)x(\d+)")


class Stream(msgspec.Struct, frozen=True):
    """Points of one signal, missing ones left out."""

    signal: Signal
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    tag: str = ""  # empty for the signal's name
    attempt: int = 1

    @classmethod
    def parse(
        cls, name: str, text: str, every: int = 1, start: int = 0, tag: str = "", attempt: int = 1
    ) -> "Stream":
        """Return the stream that a text describes.

        Raises ValueError for an unknown signal or a value outside the grammar.
        """
        value, logged = _values(text, np.random.default_rng(zlib.crc32(text.encode())))
        step = start + every * np.arange(len(value))
        return cls(Signal(name), step[logged], value[logged], tag, attempt)


class Scenario(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One heading of a golden page."""

    detector: Detector
    title: str
    streams: tuple[Stream, ...]
    settings: Mapping[str, Any]
    expected: str

    def __str__(self) -> str:
        return f"{self.detector.name}: {self.title}"

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """What the detector says of the whole run. Many tests need it, and it is judged once."""
        return judge(self.detector, windows(self.detector, self.streams, settings=self.settings))


def scenarios(detector: Detector, page: Path) -> list[Scenario]:
    """Return the scenarios of a golden, none if the page does not exist yet.

    Raises ValueError, naming file and heading, for a scenario without exactly one expect block.
    """
    if not page.exists():
        return []
    scenarios_of_page = []
    sections = re.split(r"^### +(.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for title, text in zip(sections[1::2], sections[2::2], strict=True):
        blocks = list(_GOLDEN_FENCE.finditer(text))
        expects = [b["body"] for b in blocks if b["kind"] == "expect"]
        if len(expects) != 1:
            raise ValueError(f"{page.name}, '{title}': {len(expects)} expect blocks; a scenario has one")
        try:
            streams = tuple(_stream(b) for b in blocks if b["kind"] == "stream")
            settings = tomllib.loads("".join(b["body"] for b in blocks if b["kind"] == "settings"))
        except ValueError as error:
            raise ValueError(f"{page.name}, '{title}': {error}") from None
        scenarios_of_page.append(Scenario(detector, title, streams, settings, expects[0]))
    return scenarios_of_page


def windows(
    detector: Detector,
    streams: Sequence[Stream],
    cuts: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
) -> list[Judged]:
    """Return what the engine would show the detector if it read the run in pieces ending after ``cuts``."""
    return [window for _, window in series_windows(detector, streams, cuts, settings)]


def series_windows(
    detector: Detector,
    streams: Sequence[Stream],
    cuts: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
) -> list[tuple[tuple[int, str], Judged]]:
    """Return the same, and to which series each window belongs: by attempt and tag."""
    plans = Plans(planned(settings or {}))
    step = np.concatenate([stream.step for stream in streams])
    source = np.repeat(np.arange(len(streams)), [len(stream.step) for stream in streams])
    value = np.concatenate([stream.value for stream in streams])
    number = np.array([stream.attempt for stream in streams])[source]
    order = np.lexsort((source, step, number))
    attempt = Attempt(1)
    specs = series_specs([detector])
    judged_windows: list[tuple[tuple[int, str], Judged]] = []
    restarts = np.flatnonzero(np.diff(number[order])) + 1
    for part in np.split(np.arange(len(order)), sorted({*cuts, *restarts.tolist()})):
        if len(part) and attempt.number != number[order[part[0]]]:
            attempt = attempt.next(int(number[order[part[0]]]), specs)
        points = [
            Points(
                stream.tag or stream.signal,
                stream.signal,
                step[order[points_of_stream]],
                np.full(len(points_of_stream), np.nan),
                points_of_stream,
                value[order[points_of_stream]],
            )
            for i, stream in enumerate(streams)
            if len(points_of_stream := part[source[order[part]] == i])
        ]
        new_windows = attempt.windows(points, specs, plans)
        judged_windows.extend(((attempt.number, tag), (view, window)) for view, tag, window in new_windows)
    judged_windows.extend(((attempt.number, tag), (view, window)) for view, tag, window in attempt.end(specs))
    return judged_windows


def judge(detector: Detector, windows: Sequence[Judged]) -> pl.DataFrame:
    """Return the verdicts over windows of one run, each judged for itself; SIGNAL names the series."""
    signals = pl.Series([view.judged.value for view, _ in windows])
    verdicts = detector.run(frame(detector, windows))
    by_signal = verdicts.with_columns(signals.gather(verdicts[SERIES]).alias(SIGNAL)).drop(SERIES)
    return by_signal.sort(SIGNAL, INDEX, maintain_order=True)


def rendered(scenario: Scenario) -> str:
    """Return the body of the scenario's expect block as it ought to be."""
    detector = scenario.detector
    verdicts = scenario.verdicts
    changes = verdicts.filter((pl.col(SEVERITY) != pl.col(SEVERITY).shift().over(SIGNAL)).fill_null(True))
    several = sum(stream.signal in detector.judges for stream in scenario.streams) > 1
    lines = []
    for row in changes.sort(STEP, SIGNAL).iter_rows(named=True):
        severity = Severity(row[SEVERITY])
        cells = [str(row[STEP]), row[SIGNAL] if several else "", severity.label]
        if severity:
            cells += [row[VARIANT], message(detector, row)]
        lines.append("  ".join(p for p in cells if p) + "\n")
    return "".join(lines)


TAG = "tag"
"""The name under which messages may use the tag of a series."""


def message(detector: Detector, row: Mapping[str, Any]) -> str:
    """Return the sentence of a finding, with the detector's default parameters."""
    defaults = {n: p.default for n, p in detector.parameters.items()}
    lasted = lasted_text(int(row[STEP]) - int(row[STEP] if row[ONSET] is None else row[ONSET]), None)
    of_row = {LASTED: lasted, TAG: row[SIGNAL]}  # a stream has no name but that of its signal
    return detector.variants[str(row[VARIANT])].message.format(**{**defaults, **row, **of_row})


def rewrite(detector: Detector, page: Path) -> None:
    """Fill in the expect blocks of a golden."""
    expect_blocks = iter([rendered(scenario) for scenario in scenarios(detector, page)])

    def fill(block: re.Match[str]) -> str:
        return f"```expect\n{next(expect_blocks)}```" if block["kind"] == "expect" else block[0]

    page.write_text(_GOLDEN_FENCE.sub(fill, page.read_text(encoding="utf-8")), encoding="utf-8")


def _stream(block: re.Match[str]) -> Stream:
    name, *options = block["options"].split()
    by_name = dict(option.split("=", 1) for option in options)
    if unknown := by_name.keys() - {"every", "from", "tag", "attempt"}:
        raise ValueError(f"stream {name} has the unknown option {min(unknown)}")
    every = int(by_name.get("every", 1))
    start = int(by_name.get("from", 0))
    tag = by_name.get("tag", "")
    return Stream.parse(name, block["body"], every, start, tag, int(by_name.get("attempt", 1)))


def _values(text: str, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return values, and whether there is a point at all."""
    text = _GOLDEN_GROUP.sub(lambda g: f"{g[1]} " * int(g[2]), text)
    values = [np.empty(0)]
    logged = [np.empty(0, bool)]
    for word in text.split():
        token = _GOLDEN_TOKEN.fullmatch(word)
        if token is None:
            raise ValueError(f"'{word}' is not in the stream grammar")
        times = np.arange(int(token["times"] or 1))
        level = np.full(len(times), float(token["value"] or "nan"))
        by = float(token["by"] or 0)
        if token["change"] == "*":
            level = level * by**times
        elif token["change"]:
            level = level + times * (by if token["change"] == "+" else -by)
        spread = float(token["noise"] or 0) * (level / 100 if token["share"] else 1)
        values.append(level + spread * random.standard_normal(len(times)))
        logged.append(np.full(len(times), token["missing"] is None))
    return np.concatenate(values), np.concatenate(logged)


def main(pages: Sequence[str]) -> None:
    """Fill in the expect blocks of pages. Raises KeyError for one that is not called like a detector."""
    for page in map(Path, pages):
        detector = all_detectors()[page.stem.replace("_", "-")]
        if isinstance(detector, Detector):
            rewrite(detector, page)


if __name__ == "__main__":
    main(sys.argv[1:])
