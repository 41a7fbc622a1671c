"""What the page of an open run shows while runs are read in the background."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from sentinel.config.file import Config
from sentinel.notifications.silences import acknowledgement
from sentinel.storage.store import Store
from sentinel.web.run_pool import RunPool
from sentinel.web.views import StateView
from tests.manual_clock import ManualClock
from tests.web.conftest import log

pytestmark = pytest.mark.long  # it watches two runs


def test_a_page_that_is_asked_for_as_a_reading_ends_shows_the_state_of_then(runs, watch, tmp_path):
    watch()
    config = Config(state_dir=tmp_path / "state")
    clock = ManualClock()

    def acknowledge():
        with Store(config.state_dir) as store:
            (incident,) = store.incidents(open_only=True)
            store.add_silence(acknowledgement(incident, clock.now()))
        views.refresh(clock.now(), clock.monotonic())

    async def looks():
        (key,) = (key for key, run in views.fleet.runs.items() if "sick" in run.row.path)
        asked = asyncio.get_running_loop().create_future()

        def drawn():
            """Comes at the end of a reading, before anything else can know of that end."""
            if first.done() and not asked.done():
                worker.submit(acknowledge).result()
                asked.set_result(asyncio.create_task(shown.page(key)))

        shown = RunPool(config, clock, views, worker, drawn)
        first = asyncio.create_task(shown.page(key))
        before = await first
        log(runs / "sick", range(200, 210))
        shown.refresh([key])
        after = await (await asked)
        shown.close()
        return before.body, after.body

    with ThreadPoolExecutor(1) as worker:
        views = worker.submit(StateView, [config.state_dir], None).result()
        worker.submit(views.refresh, clock.now(), clock.monotonic()).result()
        before, after = asyncio.run(looks())
        worker.submit(views.close).result()
    assert b"Acknowledged" not in before
    assert b"Acknowledged" in after
