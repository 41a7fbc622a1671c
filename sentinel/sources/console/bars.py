"""Progress bars with metrics behind them, as tqdm draws them.

If a bar counts the steps of a training (diffusers' `Steps: 5%|...| 50/1000 [..., step_loss=0.1]`), the last
state at each step is a point. If it counts the batches of an epoch, as Lightning's does, the last state is
the point of the epoch. If something else is printed within the epoch, the bar's state before it stands on a
line of its own and is a point at its batch. Other states of such a bar are no points: until the epoch ends,
most of the values that they show are those of the epoch before. A bar that shows metrics and names no epoch
counts steps as well, on from the bar before it; one of held-out data stands at the step of the training.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.printed import Record, kept, restored

BAR = lazy_pattern(
    r"(?P<title>[^|]{0,200}?)(?<!\s)\s*+\d{1,3}%(?:\|[^|]*+\|\s*| (?=\d+/\d+ \[\d\d:))"
    r"(?P<count>\d{1,15})/(?P<total>\d{1,15}) \[[^,\]]*+,?(?P<rest>[^\]]*+)"
)
"""Pattern of a state of a bar. What a notebook leaves of one in a text has no bar."""

_STEP_TITLE = r"(?:global )?(?:steps?|iter(?:ation)?s?|train(?:ing)?(?: steps?| progress)?):?"
_OF_STEPS = lazy_pattern(_STEP_TITLE, re.IGNORECASE)
_KEPT = rf"\s*(?:(?i:{_STEP_TITLE})\s*\d{{1,3}}%|\d{{1,3}}%\|[^|\r]*+\|[^\],\r]*+,[^\],\r]*+,)"
"""A state of a bar that counts steps by its title, or that has none and shows more than its speed."""

_IS_KEPT = lazy_pattern(_KEPT)
_NEXT = r"\r(?P=title)\d{1,3}%\|[^|\r]*+\| *+[1-9]\d{0,14}(?P=total)"
_REDRAWN = lazy_pattern(
    rf"\r(?<=\]\r)(?!{_KEPT})(?P<title>[^\r|%]{{0,200}}?)\d{{1,3}}%\|[^|\r]*+\|"
    r" *+\d{1,15}(?P<total>/\d{1,15} \[)[^\r]*+"
    rf"(?:(?<=\]){_NEXT}[^\],\r]*+,[^\],\r]*+\])*(?={_NEXT})"
)
"""States of a bar between two others. Of other bars, only the first and the last count."""

_BAR_COUNT = r"[\r ]*+[0-9]{1,3}%\|[^|\r]*+\| *+[0-9]{1,15}"
_SPEED = r"[^][=\r]*+\]"
_BARS_WITHOUT_METRICS = lazy_pattern(
    rf"{_BAR_COUNT}(?P<total>/[0-9]{{1,15}} \[){_SPEED}(?:\r{_BAR_COUNT}(?P=total){_SPEED})*+"
)
"""All states of a bar that has no title and shows nothing but its count and its speed."""

_PROCESS = lazy_pattern(r"\[(?:default|rank)\d{1,5}\]:")
_CUT = lazy_pattern(rf"(?<=\])(?={_PROCESS.pattern})")
"""Where another process of torchrun prints behind a bar, which ends no line."""

_MAX_PRINTED = 64  # names; further ones are read from bars as well

_HELD_OUT = lazy_pattern(
    r"(?<![a-z])(?:val|valid|validation|test|eval|evaluation|validating|testing|evaluating)(?![a-z])",
    re.IGNORECASE,
)


def states(line: str) -> list[str]:
    """Return what a line of the terminal showed, in order, without states of a bar that cannot count.

    What a process prints behind the bar of another one is the last of it.
    """
    if "%|" in line:
        if "][" in line and (cut := _CUT.sub("\r", line)) != line:
            line = cut[process.end() :] if (process := _PROCESS.match(cut)) else cut
        line = _REDRAWN.sub("", line) if "\r" in line else line
    return line.split("\r")


def redrawn(lines: Sequence[str], counting: Sequence[int]) -> set[int]:
    """Return the numbers of lines that only show a bar without a title, between two that show the same bar.

    ``counting`` are the numbers of the lines that may count. Such a bar tells no more than the steps of rows.
    The first of these lines tells those of the rows above it, and the last one those of the rows below.
    """
    bars = [_BARS_WITHOUT_METRICS.fullmatch(lines[at]) for at in counting]
    totals = [bar and bar["total"] for bar in bars]
    around = zip(totals, totals[1:], totals[2:], counting[1:], strict=False)
    return {at for before, total, after, at in around if total and before == total == after}


class Bars:
    """The bars of one process, given the memory of those before (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._epoch: float | None = memory.get("epoch")
        self._bar_metrics = {title: restored(record) for title, record in memory.get("shown", {}).items()}
        self._reported: list[str] = list(
            memory.get("told", [])
        )  # names that are points of this epoch already
        self._reached: dict[str, int] = dict(memory.get("reached", {}))  # count of each bar of this epoch
        self._late: list[str] = list(memory.get("late", []))  # names that are new only after the bar is full
        self._last: Record = restored(memory.get("last", {}))  # values of the late names in points
        self._counts_batches: bool = memory.get("counts_batches", False)
        self._is_full: bool = memory.get("full", False)  # the bar that was shown last
        self._printed: set[str] = set(memory.get("printed", []))  # names that lines tell

    def memory(self) -> dict[str, Any]:
        """Return what the next states need to know of these; JSON-able."""
        return {
            "epoch": self._epoch,
            "shown": {title: kept(record) for title, record in self._bar_metrics.items()},
            "told": self._reported,
            "reached": self._reached,
            "late": self._late,
            "last": kept(self._last),
            "counts_batches": self._counts_batches,
            "full": self._is_full,
            "printed": sorted(self._printed),
        }

    def leave(self, names: Collection[str]) -> None:
        """Leave these metrics to the lines that tell them at their steps, which no bar knows."""
        if not self._printed.issuperset(names) and len(self._printed) < _MAX_PRINTED:
            self._printed.update(names)

    def parse(self, bar: re.Match[str], epoch: float, metrics: Record, ended: bool) -> list[Record]:
        """Return the points that are due when the bar of an epoch shows these metrics.

        ``ended`` says that the line ends with this state.
        """
        due = []
        if epoch != self._epoch:
            due.append(self._rest())
            self._epoch = epoch
            self._bar_metrics = {}
            self._reported = []
            self._reached = {}
        count = int(bar["count"])
        total = int(bar["total"])
        title = f"{bar['title'].strip()} of {total}"
        # A terminal that moved its cursor leaves old states behind newer ones.
        reached = self._reached.get(title, 0)
        is_old = 0 < count < reached
        self._reached[title] = reached if is_old else count
        self._is_full = count == total
        printed = {name.lower() for name in self._printed}
        metrics = {name: value for name, value in metrics.items() if name.lower() not in printed}
        if count and not is_old and metrics:
            if part := part_of(bar):
                metrics = {f"{part}/{name}": value for name, value in metrics.items()}
            self._counts_batches |= ended and count < total
            batch = {"iter": f"{count}/{total}"} if self._counts_batches else {}
            self._bar_metrics[title] = {**metrics, "epoch": epoch, **batch}
            if ended and count < total:
                due.append({n: value for n, value in self._all_metrics.items() if not self._is_old(n, value)})
            elif ended:
                due.append(self._rest(without_late=not self._reported))
        return [record for record in due if record]

    def full(self) -> Record:
        """Return what the bars of this epoch show and is no point yet, if the last one is full."""
        return self._rest() if self._is_full else {}

    @property
    def _all_metrics(self) -> Record:
        """What the bars of this epoch show."""
        return {name: value for record in self._bar_metrics.values() for name, value in record.items()}

    def _rest(self, without_late: bool = False) -> Record:
        """Return what the bars of this epoch show and is no point yet."""
        metrics = self._all_metrics
        axis = {name: metrics.pop(name) for name in ("epoch", "iter") if name in metrics}
        rest = {
            name: value
            for name, value in metrics.items()
            if name not in self._reported and not (without_late and self._is_old(name, value))
        }
        if self._reported:
            self._late += [name for name in rest if name not in self._late]
        self._last |= {name: value for name, value in rest.items() if name in self._late}
        self._reported += rest
        return rest | axis if rest else {}

    def _is_old(self, name: str, value: float | str) -> bool:
        """Return whether a value that comes after the bar is full is still that of the epoch before."""
        return name in self._late and repr(self._last.get(name)) == repr(value)


class StepBar:
    """The bar that counts the steps of a training, given the memory of the states before."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._title: str = memory.get("title", "")
        self._count: int = memory.get("count", 0)  # in the bar
        self._before: int = memory.get("before", 0)  # steps of bars that were full, or left
        self._longest: int = memory.get("longest", 0)  # total of the bars without a title
        self._bar_metrics: Record = restored(memory.get("shown", {}))  # at this count
        self._reported: Record = restored(memory.get("told", {}))  # before

    def memory(self) -> dict[str, Any]:
        """Return what the next states need to know of these; JSON-able."""
        shown_text = kept(self._bar_metrics)
        told_text = kept(self._reported)
        bar = {"title": self._title, "count": self._count, "before": self._before}
        return {**bar, "longest": self._longest, "shown": shown_text, "told": told_text}

    def parse(self, bar: re.Match[str], metrics: Record, ended: bool) -> list[Record]:
        """Return the points that are due when the bar shows these metrics; ``ended`` if it ends its line."""
        count = int(bar["count"])
        due = list[Record]()
        if not bar["title"].strip():
            if int(bar["total"]) < self._longest:  # of an evaluation, which has fewer batches
                return []
            self._longest = int(bar["total"])
        was_told = all(repr(self._reported.get(name)) == repr(value) for name, value in metrics.items())
        is_next = count == self._count == int(bar["total"]) and not self._bar_metrics and not was_told
        goes_on = bar["title"] == self._title and count > self._count and not is_kept(bar)
        if count != self._count or is_next:
            due += [] if goes_on else [self.due()]
            self._before += self._count if count < self._count or is_next else 0
            self._title = bar["title"]
            self._count = count
        if count:
            self._bar_metrics = {**metrics, "step": float(self._before + count)}
        if ended:
            due.append(self.due())
        return [record for record in due if record]

    def held_out(self, metrics: Record, ended: bool) -> list[Record]:
        """Return the points that are due when an evaluation's bar shows these metrics, at a step."""
        due = self.due()
        step = self._before + self._count
        aside = {**metrics, "step": float(step)} if ended and step else {}
        return [record for record in (due, aside) if record]

    def due(self) -> Record:
        """Return what a bar shows and no point has yet. Results of an evaluation count once."""
        due = {
            name: value
            for name, value in self._bar_metrics.items()
            if not (_HELD_OUT.search(name) and repr(self._reported.get(name)) == repr(value))
        }
        self._reported = self._reported | due
        self._bar_metrics = {}
        return due if due.keys() != {"step"} else {}


def is_kept(bar: re.Match[str]) -> bool:
    """Return whether each state of a bar is seen; see `states`."""
    return _IS_KEPT.match(bar.string) is not None


def shown_by(bar: re.Match[str]) -> str:
    """Return what a bar shows beside its count. StyleGAN2 calls its losses "d: 0.5; g: 1.5"."""
    title = bar["title"].rstrip(" :")
    if title.startswith("d: ") and "; g: " in title:
        title = f"d_loss{title[1:].replace('; g: ', '; g_loss: ', 1)}"
    return f"{title} | {bar['rest']}"


def part_of(bar: re.Match[str]) -> str:
    """Return the part of the data that the title of a bar names, if it is held out."""
    part = _HELD_OUT.search(bar["title"])
    return part[0].lower() if part else ""


def counts_steps(bar: re.Match[str]) -> bool:
    """Return whether a bar counts the steps of a training, by its title."""
    return _OF_STEPS.fullmatch(bar["title"].strip()) is not None
