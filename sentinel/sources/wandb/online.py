"""W&B's runs on a server: all runs of ``wandb://ENTITY/PROJECT``, or one run with ``/RUN`` added.

The source reads the history of a run by its counter ``_step``, from the first step that it did not read yet.
If the history became shorter, somebody rewound the run, and the source reads it from its start.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.sources.base import Cursor, Ending, EndKind, PollResult, Run
from sentinel.sources.identity import Label
from sentinel.sources.location import Url
from sentinel.sources.readers.axis import count_of
from sentinel.sources.readers.growing import nothing_new, unreadable
from sentinel.sources.readers.plain import flat
from sentinel.sources.readers.retry import Unavailable
from sentinel.sources.wandb.history import numbers_in
from sentinel.sources.wandb.server import Project
from sentinel.sources.wandb.steps import COUNTER, Steps, points

SCHEMES = ("wandb",)

_FORMAT = "wandb"
_STEPS_A_PAGE = 1000  # that one question to the server asks for
_MAX_SPARSE = 10  # times as many steps, if few of them were logged
_MAX_PAGES = 20  # in one poll
_END_OF_STATE = {
    "finished": EndKind.FINISHED,
    "crashed": EndKind.CRASHED,
    "failed": EndKind.CRASHED,
    "killed": EndKind.CRASHED,
    "preempted": EndKind.PREEMPTED,
}


def check(url: Url) -> None:
    """Raise ValueError if the address is invalid."""
    if len(url.parts) not in (2, 3):
        raise ValueError(
            "is no address of W&B runs; write wandb://ENTITY/PROJECT or wandb://ENTITY/PROJECT/RUN"
        )


def search(url: Url, _copies: Path) -> Iterator[Run]:
    """Yield the runs there are now. Raises OSError if the server cannot be asked."""
    project = _project(url)
    for name in project.runs():
        path = Url(url.scheme, (*url.parts[:2], name))
        yield Run(path, _FORMAT, OnlineRun(path, project))


@cache
def _project(url: Url) -> Project:
    entity, project, *run = url.parts
    return Project(entity, project, run[0] if run else None)


class OnlineRun(msgspec.Struct, frozen=True):
    """One run of a project."""

    path: Url
    project: Project

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was logged since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            on_server = self.project.runs().get(self.path.name)
            if on_server is None:
                raise Unavailable("the server no longer has it")
            if on_server.heartbeat == cursor.get("heard") and not cursor["more"]:
                return nothing_new(cursor)
            news = self.project.ask(self.path.name, lambda: _news(on_server.run, cursor, limit))
        except Unavailable as error:
            return unreadable(self.path, cursor, error)
        restarted = news.restarted or cursor.get("restarted", False)
        steps = Steps({} if news.restarted else cursor.get("steps", {}))
        for name, axis in _axes(news.internals):
            steps.define(name, axis)
        chunk = points(self.path.name, numbers_in(news.rows), len(news.rows), steps)
        has_points = len(chunk.step) > 0
        cursor = {
            "heard": on_server.heartbeat,
            "next": news.end,
            "lines": news.lines,
            "more": news.more,
            "steps": steps.memory(),
            "restarted": restarted and not has_points,
        }
        outcome = None if news.more else _END_OF_STATE.get(news.state)
        ending = Ending(outcome, f"W&B calls it {news.state}") if outcome else None
        chunks = [replace(chunk, restarted=restarted)] if has_points else []
        label = Label.of(on_server.run.name, self.path.parts[1])
        return PollResult(
            cursor, chunks, more=news.more, config=flat(news.config), ending=ending, label=label
        )


class _Fetched(msgspec.Struct, frozen=True):
    """What the server said about a run."""

    state: str
    config: Mapping[str, Any]
    internals: Any
    lines: int  # of the whole history
    rows: Sequence[Mapping[str, Any]]
    end: int  # the first step that was not read
    restarted: bool
    more: bool


def _news(run: Any, cursor: Cursor, limit: int) -> _Fetched:
    run.load_full_data(force=True)
    begin = cursor.get("next", 0)
    last = (run.historyKeys or {}).get("lastStep", -1)
    lines = run.historyLineCount or 0
    restarted = last + 1 < begin and lines < cursor["lines"]
    if restarted:
        begin = 0
    rows: list[dict[str, Any]] = []
    end = begin
    if last >= begin:
        page = _STEPS_A_PAGE * min(max((last + 1) // max(lines, 1), 1), _MAX_SPARSE)
        end = min(begin + _MAX_PAGES * page, last + 1)
        for row in run.scan_history(min_step=begin, max_step=end, page_size=page):
            rows.append(row)
            limit -= len(row)
            count, _ = count_of(row[COUNTER])
            if limit <= 0 and count is not None:
                end = count + 1
                break
    internals = run.rawconfig.get("_wandb")
    return _Fetched(run.state, run.config, internals, lines, rows, end, restarted, end <= last)


def _axes(internals: Any) -> Iterator[tuple[str, str]]:
    """Yield names, which may end in ``*``, and the axes that ``define_metric`` gave them.

    wandb stores the definitions beside the settings, under the numbers of protobuf's fields: 1 is a name, 2 a
    name with ``*``, 4 the axis, and 5 the index of the axis in this list, counted from 1.
    """
    metrics = internals.get("m") if isinstance(internals, dict) else None
    declarations = [metric for metric in metrics or () if isinstance(metric, dict)]
    for metric in declarations:
        name = metric.get("1") or metric.get("2")
        axis = metric.get("4")
        axis_number = metric.get("5")
        if isinstance(axis_number, int) and 0 < axis_number <= len(declarations):
            axis = declarations[axis_number - 1].get("1")
        if isinstance(name, str) and isinstance(axis, str):
            yield name, axis
