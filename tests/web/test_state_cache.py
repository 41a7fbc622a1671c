"""The live page over the states of several watches."""

import math
import re

import pytest

from sentinel.common.errors import StateError
from sentinel.storage.store import Store
from sentinel.web import state_cache
from tests.web.conftest import TOKEN, log, serving
from tests.web.test_pages import events, key_of

pytestmark = pytest.mark.long  # each watches two runs


@pytest.fixture
def pages(runs, watch, tmp_path):
    """A client and the clock of a page over two states, each of which holds one run that goes wrong."""
    log(runs / "ill", range(200), loss=math.nan)
    for name in ("sick", "ill"):
        watch(name, name)
    with serving(tmp_path / "sick", tmp_path / "ill") as (client, clock):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client, clock


def test_all_runs_are_on_one_page_and_each_answer_goes_where_its_run_is(pages, tmp_path):
    client, _ = pages
    assert "2 open incidents: 2 critical" in client.get("/").text
    key = key_of(client, "ill")
    incident = re.search(r"/incidents/(\w+)/acknowledge", client.get(f"/runs/{key}").text)[1]
    assert client.post(f"/incidents/{incident}/acknowledge", data={"run": key}).status_code == 303
    assert client.post(f"/runs/{key}/silence", data={"for": "2h"}).status_code == 303
    assert "Acknowledged" in client.get(f"/runs/{key}").text
    with Store(tmp_path / "ill", read_only=True) as ill, Store(tmp_path / "sick", read_only=True) as sick:
        assert sorted(silence.incident for silence in ill.silences(0.0)) == ["", incident]
        assert not sick.silences(0.0)
    assert client.post("/incidents/0000/acknowledge").status_code == 404


def test_a_state_that_cannot_be_read_hides_no_other(pages, runs, watch, tmp_path, monkeypatch):
    def fail_for_one(store, place, *words, **more):
        if place == tmp_path / "sick":
            raise StateError("the disk fails")
        return real(store, place, *words, **more)

    client, clock = pages
    real = state_cache.status
    with client.stream("GET", "/events?since=1") as answer:
        monkeypatch.setattr(state_cache, "status", fail_for_one)
        clock.awake_seconds += 3600  # so it looks again at each state
        log(runs / "ill", range(200, 220))
        watch("ill", "ill")
        assert any("the disk fails" in one["trouble"] and one["rows"] for one in events(answer))
    assert "the disk fails" in client.get("/").text
    assert key_of(client, "sick")
