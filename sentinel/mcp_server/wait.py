"""The tool that waits: looks from time to time, and tells the client that it still does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError, UnknownName
from sentinel.common.text import seconds_in
from sentinel.mcp_server.known import Answers
from sentinel.storage.states import fitting_states
from sentinel.waiting.until import Until
from sentinel.waiting.waiting import CHECK_SECONDS, Request, WaitBody, WaitIncidentBody, Waiting, WaitResult

_PROGRESS_SECONDS = 10.0  # between two messages, since clients give up on a tool that is silent

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


async def waited(
    answers: Answers, tell: Progress, run: str, until: str, timeout: str, ignored: Sequence[str]
) -> WaitResult:
    """Return the end of a wait for the runs that fit a glob. Raises SentinelError for unusable words."""
    if until not in [*Until]:
        raise UnknownName("goal", until, [*Until])
    try:
        seconds = seconds_in(timeout)
    except ValueError as error:
        raise SentinelError(str(error)) from None
    run_paths = await anyio.to_thread.run_sync(answers.locations_of, run)
    request = Request(run_paths, Until(until), seconds, ignored=ignored)
    states = [*dict.fromkeys([answers.config.state_dir, *fitting_states(None, Path.cwd())])]
    progress_at = 0.0
    with Waiting(answers.config, request, states, SystemClock()) as waiting:
        while True:
            result = await anyio.to_thread.run_sync(waiting.check)
            if result is not None:
                return result
            if waiting.waited_seconds >= progress_at:
                await tell(waiting.waited_seconds, seconds, waiting.summary)
                progress_at = waiting.waited_seconds + _PROGRESS_SECONDS
            await anyio.sleep(CHECK_SECONDS)


def named(body: WaitBody | WaitIncidentBody, answers: Answers, run: str) -> Mapping[str, Any]:
    """Return what a wait tells, with the names that the other tools give the runs.

    A watch of its own calls a run by what is below the waited-for places.
    """
    renamed: dict[str, Any] = {**body}
    try:
        names = answers.names(run)
    except SentinelError:  # there is no run yet
        return renamed
    renamed["runs"] = [_called(row, names) for row in body["runs"]]
    if "run" in renamed:
        renamed["run"] = _called(renamed["run"], names)
    return renamed


def _called(row: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    return {**row, "run": names.get(row["path"], row["run"])}
