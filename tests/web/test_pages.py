"""What the live page shows, how it follows a watch, and what a person can do there."""

import asyncio
import json
import math
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from sentinel.common.errors import StateError
from sentinel.storage.store import Store, Update
from sentinel.web import state_cache, views
from sentinel.web.run_session import RunSession
from tests.patience import PATIENCE
from tests.sinks.samples import INCIDENT
from tests.web.conftest import TOKEN, log, serving

pytestmark = pytest.mark.slow  # each starts a server

SAMPLES = Path(__file__).parents[2] / "sample_logs"


def overview(client):
    """The page of all runs, without what breaks names at their slashes."""
    return re.sub(r'<span class="part">|</span>|<wbr>', "", client.get("/").text)


def key_of(client, name):
    """What stands for a run in addresses."""
    return re.search(rf'href="/runs/(\w+)">{name}/metrics.jsonl<', overview(client))[1]


def events(answer):
    """The data of each event of a stream, as it comes."""
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_all_runs_stand_in_a_table_with_what_the_watch_found(client):
    text = overview(client)
    assert "1 open incident: 1 critical" in text
    assert re.findall(r'href="/runs/\w+">(\w+)/', text) == ["sick", "well"]
    assert text.count("<polyline") == 2


def test_a_run_is_given_as_markdown(client):
    told = client.get(f"/runs/{key_of(client, 'sick')}/markdown")
    assert told.headers["content-type"].startswith("text/plain")
    assert told.text.startswith("**sick/metrics.jsonl** (")
    assert "### non-finite-metric (critical)" in told.text
    assert client.get(f"/runs/{key_of(client, 'well')}/markdown").text.count("Nothing was found") == 1
    assert client.get("/runs/none/markdown").status_code == 404


def test_chosen_runs_are_a_report_of_their_own(client):
    keys = [key_of(client, name) for name in ("well", "sick")]
    report = client.get(f"/report?runs={','.join(keys)},gone")
    assert report.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert report.text.index("sick/metrics.jsonl") < report.text.index("well/metrics.jsonl")
    assert "1 incident (1 critical) in 1 of 2 runs" in report.text
    assert "<script src" not in report.text


@pytest.mark.long
def test_the_logs_of_one_training_are_one_row_that_unfolds(client, runs, watch):
    rows = [json.loads(line) for line in (runs / "sick" / "metrics.jsonl").read_text().splitlines()]
    table = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    alone = key_of(client, "sick")
    with client.stream("GET", "/events?since=1") as answer:
        (runs / "sick" / "metrics.csv").write_text("\n".join([*table, ""]))
        watch()
        news = next(one for one in events(answer) if "in 3 logs" in one["counted"])
    assert news["rows"].pop(alone) == "", "the other log stands for the training now"
    assert any("metrics.jsonl</span></a></li>" in row for row in news["rows"].values())
    text = overview(client)
    assert "2 runs in 3 logs" in text
    assert "1 open incident: 1 critical" in text, "both logs tell of one"
    assert text.count("<tr id=") == 2
    assert "<summary>also in 1 more log</summary>" in text
    named = {*re.findall(r'href="/runs/\w+">([^<]+)<', text)}
    assert named == {"sick/metrics.jsonl", "sick/metrics.csv", "well/metrics.jsonl"}


def test_a_run_is_shown_as_its_report(client):
    text = client.get(f"/runs/{key_of(client, 'sick')}").text
    assert "Critical: " in text
    assert "What to do first" in text
    data = json.loads(re.search(r'id="data-0">(.*)</script>', text)[1])
    ((steps, values, _),) = data["curves"]["train/grad_norm"]
    assert (steps[0], steps[-1], max(values)) == (0, 199, 3.0)
    assert data["lost"] == {"train/loss": 100}
    assert "sent to: " in text


def test_a_page_can_be_sent_compressed(client):
    assert client.get("/").headers["content-encoding"] == "gzip"
    plain = client.get("/", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert "</html>" in plain.text


def test_what_is_not_there_is_said(client):
    assert client.get("/runs/0000").status_code == 404
    assert client.get("/assets/app.py").status_code == 404
    assert client.post("/incidents/0000/acknowledge").status_code == 404
    assert "no incident has an id" in client.post("/incidents/0000/acknowledge").text


@pytest.mark.long
def test_names_from_a_run_are_text(client, runs, watch):
    hostile = "<img src=x onerror=alert(1)>\u202e"
    log(runs / hostile, range(200))
    watch()
    with client.stream("GET", "/events?since=1") as answer:
        news = next(one for one in events(answer) if one["rows"])
    assert "&lt;img src=x onerror=alert(1)&gt;" in str(news["rows"])
    key = next(key for key, row in news["rows"].items() if "&lt;img" in row)
    for text in (client.get("/").text, client.get(f"/runs/{key}").text):
        assert "<img" not in text
        assert "\u202e" not in text


@pytest.mark.long
def test_a_page_hears_of_the_rows_that_changed_and_of_no_others(client, runs, watch):
    since = re.search(r"/events\?since=(\d+)", client.get("/").text)[1]
    changed = set()
    with client.stream("GET", f"/events?since={since}") as answer:
        log(runs / "well", range(200, 400), loss=math.nan)
        watch("well")  # the other row says when a watch last looked at its log, which states no times
        for news in events(answer):
            changed |= news["rows"].keys()
            if news["verdict"].startswith("2 open incidents"):
                break
    assert changed == {key_of(client, "well")}


def test_a_run_that_grows_is_shown_before_the_watch_records_it(client, runs):
    key = key_of(client, "well")
    before = client.get(f"/runs/{key}").text
    since = re.search(r"since=(\d+)", before)[1]
    with client.stream("GET", f"/runs/{key}/events?since={since}") as answer:
        log(runs / "well", range(200, 260))
        assert next(events(answer)) > int(since)
    assert "0 to 199" in before
    assert "0 to 259" in client.get(f"/runs/{key}").text


def test_a_run_whose_log_is_gone_shows_what_the_watch_kept(client, runs):
    shutil.rmtree(runs / "sick")
    text = client.get(f"/runs/{key_of(client, 'sick')}").text
    assert "its log is not on this machine" in text
    assert "Critical: " in text
    assert "0 to 199" in text


def test_a_run_that_a_page_shows_stays_open(runs, watch, tmp_path):
    watch()
    with serving(tmp_path / "state") as (client, clock):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        key = key_of(client, "well")
        client.get(f"/runs/{key}")
        with client.stream("GET", f"/runs/{key}/events?since=0") as answer:
            seen = events(answer)
            first = next(seen)
            clock.awake_seconds += 3600
            log(runs / "well", range(200, 260))
            assert next(seen) > first


def test_a_person_says_whether_an_incident_was_right(client, tmp_path):
    key = key_of(client, "sick")
    incident = re.search(r"/incidents/(\w+)/feedback", client.get(f"/runs/{key}").text)[1]
    where = f"/incidents/{incident}/feedback"
    assert client.post(where, data={"run": key, "verdict": "perhaps"}).status_code == 400
    assert client.post(where, data={"run": key, "verdict": "false-alarm"}).status_code == 303
    assert "You called it a false alarm." in client.get(f"/runs/{key}").text
    with Store(tmp_path / "state") as store:
        assert store.feedback.verdicts() == {incident: "false-alarm"}
    client.post(where, data={"run": key, "verdict": "useful"})
    assert "You called it right." in client.get(f"/runs/{key}").text


@pytest.mark.long
def test_acknowledging_and_silencing_do_what_the_commands_do(client, tmp_path):
    key = key_of(client, "sick")
    text = client.get(f"/runs/{key}").text
    incident = re.search(r"/incidents/(\w+)/acknowledge", text)[1]
    answer = client.post(f"/incidents/{incident}/acknowledge", data={"run": key})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{key}")
    answer = client.post(f"/runs/{key}/silence", data={"run": key, "for": "2h", "reason": "known"})
    assert answer.status_code == 303
    text = client.get(f"/runs/{key}").text
    assert "Acknowledged" in text
    assert "known" in text
    with Store(tmp_path / "state", read_only=True) as store:
        kept = store.silences(0.0)
    assert {(one.incident, one.reason) for one in kept} == {(incident, "acknowledged"), ("", "known")}
    assert [one.run for one in kept if not one.incident] == [
        str(tmp_path / "runs" / "sick" / "metrics.jsonl")
    ]
    for one in kept:
        assert client.post(f"/silences/{one.id}/end", data={"run": key}).status_code == 303
    with Store(tmp_path / "state", read_only=True) as store:
        assert not store.silences(0.0)
    assert "Acknowledged" not in client.get(f"/runs/{key}").text


def test_a_silence_needs_a_duration(client):
    answer = client.post(f"/runs/{key_of(client, 'sick')}/silence", data={"for": "a while"})
    assert answer.status_code == 400
    assert "write 30m, 2h, 1d or 1w" in answer.text


@pytest.mark.long
def test_the_state_is_looked_at_once_for_all_pages(runs, watch, tmp_path, monkeypatch):
    watch()
    looks = []
    real = state_cache.status
    monkeypatch.setattr(state_cache, "status", lambda *words, **more: looks.append(1) or real(*words, **more))
    with serving(tmp_path / "state") as (client, _):

        async def first(page):
            async with page.stream("GET", f"{client.base_url}/events?since=1") as answer:
                lines = answer.aiter_lines()
                waiting.append(await anext(lines))
                if len(waiting) == 50:
                    everybody.set()
                return json.loads(await anext(line[6:] async for line in lines if line[:5] == "data:"))

        async def many():
            token = {"Authorization": f"Bearer {TOKEN}"}
            async with AsyncExitStack() as held:
                pages = []
                for machine in range(5):  # as many addresses, because each may hold only some pages open
                    way = httpx.AsyncHTTPTransport(local_address=f"127.0.0.{machine + 1}", verify=False)
                    page = httpx.AsyncClient(headers=token, timeout=PATIENCE, transport=way)
                    await held.enter_async_context(page)
                    pages += [asyncio.create_task(first(page)) for _ in range(10)]
                await everybody.wait()
                before = len(looks)
                with Store(tmp_path / "state") as store:
                    store.commit([Update(INCIDENT.run, "/runs/grpo-7b", "tensorboard", b"", [INCIDENT])], 0.0)
                return before, await asyncio.gather(*pages)

        waiting = []
        everybody = asyncio.Event()
        before, news = asyncio.run(many())
        assert len(looks) == before + 1
        assert len(news) == 50
        assert all(len(one["rows"]) == len(news[0]["rows"]) for one in news)


def test_the_page_cannot_change_the_state(watch, runs, tmp_path):
    watch()
    refused = pytest.raises(StateError, match="it cannot be written")
    with Store(tmp_path / "state", read_only=True) as store, refused:
        store.remove_silence("00")


def commit(tmp_path):
    """Let the watch record another run with an incident."""
    with Store(tmp_path / "state") as store:
        store.commit([Update(INCIDENT.run, "/runs/grpo-7b", "tensorboard", b"", [INCIDENT])], 0.0)


def test_a_page_stays_as_it_is_while_nothing_on_it_changes(client, tmp_path):
    key = key_of(client, "well")
    before = client.get(f"/runs/{key}").text
    with client.stream("GET", "/events?since=1") as answer:
        commit(tmp_path)
        assert next(one for one in events(answer) if one["rows"])
    assert client.get(f"/runs/{key}").text == before


def test_a_run_whose_page_cannot_be_made_holds_up_no_other(client, monkeypatch, caplog):
    def refuse(story, points, **how):
        if "sick" in story.path:
            raise ValueError("a mistake of ours")
        return real(story, points, **how)

    real = views.data_of
    monkeypatch.setattr(views, "data_of", refuse)
    assert client.get(f"/runs/{key_of(client, 'sick')}").status_code == 500
    assert "the page of sick/metrics.jsonl cannot be made" in caplog.text
    assert client.get(f"/runs/{key_of(client, 'well')}").status_code == 200


@pytest.mark.long
def test_a_log_that_cannot_be_read_now_holds_up_no_other_page(client, runs, watch, monkeypatch):
    def grow(run):
        if "sick" in str(run._run_pipeline.log.run.path):
            begun.set()
            gate.wait(PATIENCE)
        return real(run)

    real = RunSession.grow
    begun = threading.Event()
    gate = threading.Event()
    monkeypatch.setattr(RunSession, "grow", grow)
    sick = key_of(client, "sick")
    well = key_of(client, "well")
    with ThreadPoolExecutor(1) as other, client.stream("GET", "/events?since=1") as answer:
        waiting = other.submit(client.get, f"/runs/{sick}")
        try:
            assert begun.wait(PATIENCE)
            assert client.get(f"/runs/{well}").status_code == 200
            log(runs / "well", range(200, 400), loss=math.nan)
            watch()
            assert next(one for one in events(answer) if one["verdict"].startswith("2 open incidents"))
            assert "0 to 399" in client.get(f"/runs/{well}").text
            assert not waiting.done()
        finally:
            gate.set()
        assert "0 to 199" in waiting.result(120).text


def test_a_state_that_cannot_be_read_is_said_above_what_was_there(client, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise StateError("the disk fails")

    monkeypatch.setattr(state_cache, "status", fail)
    with client.stream("GET", "/events?since=1") as answer:
        commit(tmp_path)
        assert next(events(answer))["trouble"] == "the disk fails"
    assert "the disk fails" in client.get("/").text
    assert key_of(client, "sick")


@pytest.mark.long
def test_a_run_that_says_how_long_it_will_be_shows_its_progress(runs, watch, tmp_path):
    shutil.copytree(SAMPLES / "kl-blowup", runs / "planned")
    watch()
    with serving(tmp_path / "state") as (client, _):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        assert '<progress max="200" value="100"' in client.get("/").text


def test_a_silence_is_about_its_run_alone_whatever_that_is_called(runs, watch, tmp_path):
    log(runs / "odd[1]*", range(200))
    watch()
    with serving(tmp_path / "state") as (client, _):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        key = re.search(r'href="/runs/(\w+)">odd', overview(client))[1]
        assert client.post(f"/runs/{key}/silence", data={"for": "2h"}).status_code == 303
    with Store(tmp_path / "state", read_only=True) as store:
        (silence,) = store.silences(0.0)
    assert silence.covers(str(runs / "odd[1]*" / "metrics.jsonl"), "")
    assert not silence.covers(str(runs / "odd1x" / "metrics.jsonl"), "")
