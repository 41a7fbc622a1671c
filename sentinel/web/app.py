"""The live page over HTTP: pages, their changes as server-sent events, and what a person may do."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from glob import escape
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from sentinel.calibration.calibration import Opinion
from sentinel.common.clock import Clock
from sentinel.common.errors import SentinelError, StateError
from sentinel.common.text import seconds_in
from sentinel.config.file import Config
from sentinel.notifications.silences import acknowledgement, silence
from sentinel.report.html import SCRIPTS, STYLES, asset
from sentinel.report.markdown import run_markdown
from sentinel.storage.store import Store
from sentinel.web.auth import Access, form
from sentinel.web.compare import compare_page, requested_keys
from sentinel.web.run_pool import RunPool
from sentinel.web.timeline import timeline_page
from sentinel.web.views import StateView, WebPage, report_of

_log = logging.getLogger(__name__)

_ALIVE_SECONDS = 15.0  # between two comments that show a proxy, and us, that the connection stands
_MAX_REASON_CHARACTERS = 300
_MEDIA_TYPES = {"js": "text/javascript", "css": "text/css"}
_PAGE_ASSETS = "live.js", "copy.js", "pick.js", "compare.js", "live.css"


class LivePage:
    """The application over the states in some directories. ``config`` says which detectors judge."""

    def __init__(self, config: Config, state_dirs: Sequence[Path], clock: Clock) -> None:
        self._config = config
        self._state_dirs = state_dirs
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="views")  # the store belongs to one thread
        self._watched: Counter[str] = Counter()  # how many pages show each run
        self._news = asyncio.Event()  # set when anything may have changed, and replaced by a new one
        self._assets = {name: asset(name) for name in (*SCRIPTS, *STYLES)}
        self._assets |= {name: files(__package__).joinpath(name).read_text("utf-8") for name in _PAGE_ASSETS}

    def app(self, token: str, port: int) -> ASGIApp:
        """Return the application behind a token."""
        routes = [
            Route("/", self._fleet),
            Route("/events", self._fleet_events),
            Route("/time", self._time),
            Route("/compare", self._compare),
            Route("/compare/events", self._compare_events),
            Route("/report", self._report),
            Route("/runs/{key}", self._run),
            Route("/runs/{key}/events", self._run_events),
            Route("/runs/{key}/markdown", self._markdown),
            Route("/runs/{key}/silence", self._silence, methods=["POST"]),
            Route("/incidents/{id}/acknowledge", self._acknowledge, methods=["POST"]),
            Route("/incidents/{id}/feedback", self._feedback, methods=["POST"]),
            Route("/silences/{id}/end", self._end_silence, methods=["POST"]),
            Route("/assets/{name}", self._asset),
        ]
        handlers = {SentinelError: _error_response}
        return Access(Starlette(routes=routes, lifespan=self._life, exception_handlers=handlers), token, port)

    async def _in_worker(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._worker, work)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        def begin() -> None:
            self._views = StateView(self._state_dirs, self._config.calibration)

        await self._in_worker(begin)
        self._runs = RunPool(self._config, self._clock, self._views, self._worker, self._wake_pages)
        await self._refresh()
        refreshing = asyncio.create_task(self._refresh_regularly())
        try:
            yield
        finally:
            refreshing.cancel()
            self._runs.close()
            await self._in_worker(self._views.close)
            self._worker.shutdown()

    async def _refresh_regularly(self) -> None:
        while True:
            try:
                await self._refresh()
                self._runs.refresh([*self._watched])
            except Exception:  # noqa: BLE001  the pages that are open must not stand still for ever
                _log.exception("the live page could not be refreshed; trying again")
            await asyncio.sleep(self._config.poll_seconds)

    async def _refresh(self) -> None:
        """Read the state again and wake the pages."""
        await self._in_worker(lambda: self._views.refresh(self._clock.now(), self._clock.monotonic()))
        self._wake_pages()

    def _wake_pages(self) -> None:
        """Let all open pages see whether anything changed on them."""
        self._news.set()
        self._news = asyncio.Event()

    async def _fleet(self, request: Request) -> Response:
        return _sent(self._views.overview(self._clock.now()), request)

    async def _run(self, request: Request) -> Response:
        return _sent(await self._page_of(request), request)

    async def _markdown(self, request: Request) -> Response:
        report = (await self._page_of(request)).report
        return PlainTextResponse(run_markdown(report) if report else "")

    async def _page_of(self, request: Request) -> WebPage:
        page_key = request.path_params["key"]
        if (page := await self._runs.page(page_key)) is not None:
            return page
        if page_key in self._views.fleet.runs:
            why = "its page cannot be made; `sentinel serve` logged why\n"
            raise HTTPException(HTTPStatus.INTERNAL_SERVER_ERROR, why)
        raise HTTPException(HTTPStatus.NOT_FOUND, "no such run\n")

    async def _time(self, request: Request) -> Response:
        since = request.query_params.get("since", "")
        draw = partial(timeline_page, self._views, self._clock.now(), since)
        try:
            page = await asyncio.get_running_loop().run_in_executor(self._worker, draw)
        except ValueError as error:
            return _plain_response(HTTPStatus.BAD_REQUEST, str(error))
        return _sent(page, request)

    async def _compare(self, request: Request) -> Response:
        return _sent(compare_page(await self._requested_pages(request)), request)

    async def _report(self, request: Request) -> Response:
        draw = partial(report_of, await self._requested_pages(request), self._clock.now())
        report_text = await asyncio.get_running_loop().run_in_executor(None, draw)
        headers = {"Content-Disposition": 'attachment; filename="report.html"'}
        return Response(report_text, media_type="text/html", headers=headers)

    async def _requested_pages(self, request: Request) -> Mapping[str, WebPage]:
        return {key: page for key in requested_keys(request) if (page := await self._runs.page(key))}

    async def _compare_events(self, request: Request) -> Response:
        keys = requested_keys(request)

        def news(since: int) -> tuple[int, str]:
            version = sum(self._runs.version(key) or 0 for key in keys)
            return version, str(version) if version != since else ""

        return StreamingResponse(self._events(request, news, keys), media_type="text/event-stream")

    async def _fleet_events(self, request: Request) -> Response:
        def news(since: int) -> tuple[int, str]:
            table = self._views.fleet.table
            return table.version, json.dumps(table.since(since)) if table.version > since else ""

        return StreamingResponse(self._events(request, news), media_type="text/event-stream")

    async def _run_events(self, request: Request) -> Response:
        page_key = request.path_params["key"]

        def news(since: int) -> tuple[int, str]:
            version = self._runs.version(page_key)
            return (since, "") if version in (None, since) else (version, str(version))

        return StreamingResponse(self._events(request, news, [page_key]), media_type="text/event-stream")

    async def _events(
        self, request: Request, news: Callable[[int], tuple[int, str]], keys: Sequence[str] = ()
    ) -> AsyncIterator[str]:
        """Yield an event for each change since the version that the page has."""
        event_id = request.headers.get("last-event-id") or request.query_params.get("since", "0")
        since = int(event_id) if event_id.isdecimal() else 0
        self._watched.update(keys)
        try:
            yield ": sentinel\n\n"
            while True:
                more = self._news
                since, event_id = news(since)
                if event_id:
                    yield f"id: {since}\ndata: {event_id}\n\n"
                try:
                    async with asyncio.timeout(_ALIVE_SECONDS):
                        await more.wait()
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            self._watched -= Counter(keys)

    async def _acknowledge(self, request: Request) -> Response:
        now = self._clock.now()
        await self._write(
            lambda store: store.add_silence(acknowledgement(store.incident(request.path_params["id"]), now))
        )
        return _back(await form(request.receive))

    async def _feedback(self, request: Request) -> Response:
        fields = await form(request.receive)
        now = self._clock.now()
        verdict = next((opinion for opinion in get_args(Opinion) if opinion == fields.get("verdict")), None)
        if verdict is None:
            return _plain_response(HTTPStatus.BAD_REQUEST, f"verdict: one of {', '.join(get_args(Opinion))}")

        def answer(store: Store) -> None:
            incident = store.incident(request.path_params["id"])
            store.feedback.add(incident.id, incident.detector, verdict, "", now)

        await self._write(answer)
        return _back(fields)

    async def _silence(self, request: Request) -> Response:
        fields = await form(request.receive)
        now = self._clock.now()
        run = self._views.fleet.runs.get(request.path_params["key"])
        if run is None:
            return _plain_response(HTTPStatus.NOT_FOUND, "no such run")
        try:
            until = now + seconds_in(fields.get("for", ""))
        except ValueError as error:
            return _plain_response(HTTPStatus.BAD_REQUEST, str(error))
        reason = fields.get("reason", "")[:_MAX_REASON_CHARACTERS] or "silenced on the live page"
        new_silence = silence(escape(run.row.path), "*", until, reason, now)

        def add(store: Store) -> None:
            if store.run_state(run.row.id) is None:
                raise SentinelError("no such run")
            store.add_silence(new_silence)

        await self._write(add)
        return _back(fields)

    async def _end_silence(self, request: Request) -> Response:
        await self._write(lambda store: store.remove_silence(request.path_params["id"]))
        return _back(await form(request.receive))

    async def _write(self, change: Callable[[Store], object]) -> None:
        """Change each state that holds what it is about, as the commands do, and show the change.

        ``change`` raises SentinelError for a state that does not hold it, and so does this if none does.
        """

        def write() -> None:
            refusals = []
            for state_dir in self._state_dirs:
                with Store(state_dir, create=False) as store:
                    try:
                        change(store)
                    except StateError:
                        raise
                    except SentinelError as error:
                        refusals.append(error)
            if len(refusals) == len(self._state_dirs):
                raise refusals[0]

        await self._in_worker(write)
        await self._refresh()

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._assets:
            return _plain_response(HTTPStatus.NOT_FOUND, "no such file")
        return Response(self._assets[name], media_type=_MEDIA_TYPES[name.rpartition(".")[2]])


def _sent(page: WebPage, request: Request) -> Response:
    headers = {"Content-Type": "text/html; charset=utf-8", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(page.zipped, headers=headers | {"Content-Encoding": "gzip"})
    return Response(page.body, headers=headers)


def _back(fields: dict[str, str]) -> Response:
    """Redirect to the page that the form stands on: that of a run, else that of all runs."""
    page_key = fields.get("run", "")
    return RedirectResponse(f"/runs/{page_key}" if page_key.isalnum() else "/", HTTPStatus.SEE_OTHER)


async def _error_response(_: Request, error: Exception) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, StateError) else HTTPStatus.NOT_FOUND
    return _plain_response(status, str(error))


def _plain_response(status: HTTPStatus, error_text: str) -> Response:
    return PlainTextResponse(f"{error_text}\n", status)
