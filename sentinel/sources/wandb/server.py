"""Asks a W&B server through the wandb client, as rarely as possible.

One question for each project, or one for every 200 of its runs, tells which runs have news. If a server does
not answer, the next question waits, longer each time.

The client's text of an error may hold everything that the server answered, so it is never passed on.
"""

import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec

from sentinel.common.environment import set_default
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.retry import NO_ANSWER, Patience, Unavailable

# Its records say what a server answered.
logging.getLogger("wandb").setLevel(logging.CRITICAL)

_T = TypeVar("_T")

_REFRESH_SECONDS = 15.0  # for each page of runs
_RUNS_A_PAGE = 200  # that one question to the server asks for
_REQUEST_SECONDS = 10  # after which W&B's client gives a request up
_RETRY_SECONDS = 1.0  # between two tries of W&B's client

_HTTP_STATUS = lazy_pattern(r"\bHTTP (\d{3})\b")
_NEWS = ("heartbeatAt", "historyLineCount")
_MEANINGS = {
    401: "does not accept the key; set WANDB_API_KEY, or run `wandb login`",
    403: "does not let this key read it",
    404: "knows no such project",
    429: "asks for fewer requests (status 429)",
}


class ServerRun(msgspec.Struct, frozen=True):
    """A run in the list of its project. ``heartbeat`` changes whenever there may be news."""

    run: Any
    heartbeat: list[Any]


class Project:
    """The runs of one project, or only its run ``run``. ``now`` is a clock that never goes back."""

    def __init__(
        self, entity: str, project: str, run: str | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = f"{entity}/{project}"
        self._filters = {"name": run} if run else {}
        self._now = now
        self._runs: dict[str, ServerRun] = {}
        self._refresh_at = -math.inf
        self._listing = Patience(now, _reason)
        self._patience: dict[str, Patience] = {}  # with single runs

    def runs(self) -> Mapping[str, ServerRun]:
        """Return all runs by id, at most 15 seconds old for every 200 runs. Raises Unavailable."""
        if self._now() >= self._refresh_at:
            self._runs = self._listing.ask(self._list)
            pages = 1 + len(self._runs) // _RUNS_A_PAGE
            self._refresh_at = self._now() + _REFRESH_SECONDS * pages
        return self._runs

    def _list(self) -> dict[str, ServerRun]:
        api = _connect()
        api.flush()  # otherwise it gives the same list again
        try:
            runs = list(api.runs(self._path, self._filters, per_page=_RUNS_A_PAGE))
        except Exception as error:
            if _reason(error) == NO_ANSWER:
                _disconnect()  # the client's own process may be gone
            raise
        return {
            run.id: ServerRun(run, [run.state, *(getattr(run, name, None) for name in _NEWS)]) for run in runs
        }

    def ask(self, run: str, question: Callable[[], _T]) -> _T:
        """Return the answer to a question about one run. Raises Unavailable."""
        try:
            return self._patience.setdefault(run, Patience(self._now, _reason)).ask(question)
        except Unavailable:
            self._refresh_at = -math.inf  # the list shows whether the trouble concerns all runs
            raise


@cache
def _connect() -> Any:
    """Return the client for the configured server and key. Raises Unavailable and its own errors."""
    set_default("WANDB_ERROR_REPORTING", "false")  # the client must not report errors to others
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR"):  # the client writes directories for every run, and logs
        set_default(name, _scratch().name)
    import wandb
    from wandb.sdk.lib import wbauth

    settings = wandb.Settings(
        silent=True,
        x_graphql_retry_max=1,  # 0 would mean the default, which is many
        x_graphql_retry_wait_min_seconds=_RETRY_SECONDS,
        x_graphql_retry_wait_max_seconds=_RETRY_SECONDS,
        x_graphql_timeout_seconds=_REQUEST_SECONDS,
    )
    server = wandb.setup(settings=settings).settings.base_url
    # Without a key, the client would ask for one at the terminal.
    if not wbauth.authenticate_session(host=server, source="sentinel", prompt=False, update_session=False):
        raise Unavailable(f"there is no key for {server}; set WANDB_API_KEY, or run `wandb login`")
    # Given an entity, the client does not ask the server for the entity of the key.
    return wandb.Api(overrides={"entity": "-"}, timeout=2 * _REQUEST_SECONDS + 2)


def _disconnect() -> None:
    """Make the next question connect again."""
    import wandb

    with suppress(Exception, SystemExit):  # it ends with the status of its process
        wandb.teardown()
    _connect.cache_clear()


@cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    """Return a directory that is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="sentinel-wandb-", ignore_cleanup_errors=True)


def _reason(error: Exception) -> str:
    statuses = {status for cause in _causes(error) if (status := _http_status(cause))}
    if statuses:
        return f"the server {_MEANINGS.get(min(statuses), f'answered {min(statuses)}')}"
    if type(error) is ValueError:
        return "the server knows no such project, or does not show it to this key"
    return NO_ANSWER


def _http_status(error: BaseException) -> int:
    """Return the HTTP status that the client met; 0 if it met none."""
    response = getattr(error, "response", None)
    if status := getattr(response, "http_status", 0):
        return int(status)
    match = _HTTP_STATUS.search(str(error))
    return int(match[1]) if match else 0


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
