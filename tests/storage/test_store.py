"""What the state directory keeps, through kills and beside others."""

import errno
import json
import math
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest
from msgspec.structs import replace

from sentinel.common.errors import StateError, StateOfAnotherSchema
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Event
from sentinel.notifications.decide import Reason, Sent, SinkPolicy
from sentinel.notifications.routing import RoutingContext, RunChanges, route_changes
from sentinel.notifications.silences import silence
from sentinel.runs.training_groups import TrainingEvidence
from sentinel.sources.discovery import discover
from sentinel.sources.identity import RunIdentity
from sentinel.storage import database, lock
from sentinel.storage.database import SCHEMA
from sentinel.storage.lock import sole_watcher
from sentinel.storage.outbox import Receiver
from sentinel.storage.store import Store, Update
from tests.incidents.timeline import RUN, changed, rows, tracker
from tests.sinks.samples import first_waiting

NOW = 1000.0
DAY = 86400.0
NAMES = RunIdentity(run="a", path="/runs/a", framework=None)
SINK = SinkPolicy("slack")


@pytest.fixture(params=[False, True], ids=["of one machine", "on NFS"])
def store(request, monkeypatch, tmp_path):
    monkeypatch.setattr(database, "is_shared_by_machines", lambda _: request.param)
    with Store(tmp_path / "state") as opened:
        yield opened


def update(line="wwcc", state=b"state", run=RUN, sent=None, sinks=(SINK,), ours=None):
    ours = ours or tracker()
    changes = ours.advance(rows(line) if isinstance(line, str) else line)
    decided = route_changes(
        RunChanges(NAMES, changes, ours.open()),
        RoutingContext(sinks, [], sent or {}, KnownIncidents([])),
        NOW,
    )
    return Update(run, "/runs/a", "jsonl", state, [c.incident for c in changes] + ours.open(), decided)


def test_a_commit_is_kept(tmp_path, store):
    committed = update("wwcc")
    store.commit([committed], NOW)
    with Store(tmp_path / "state", create=False) as other:
        assert other.run_state(RUN) == b"state"
        assert other.incidents(open_only=True) == [committed.incidents[-1]]
        assert [(d.event, d.sent, d.reason) for d in other.decisions()] == [
            ("escalated", True, "escalated"),
            ("firing", True, "first-notification"),
        ]
        assert [r.path for r in other.runs()] == ["/runs/a"]


def test_the_newest_state_of_an_incident_counts(store):
    ours = tracker()
    store.commit([update("ww", ours=ours)], NOW)
    store.commit([update("." * 10, ours=ours)], NOW + 1)
    assert store.incidents(open_only=True) == []
    assert [i.state for i in store.incidents()] == ["resolved"]


SILENCE = {"runs_silent": 3, "place": "/runs", "since": 1000.5}


JOINTS = {
    RUN: TrainingEvidence("jsonl", frozenset({"place /runs", "process 7"}), frozenset({"process 7"})),
    "csv:/runs/a": TrainingEvidence("csv", frozenset({"place /runs"})),
    "csv:/runs/b": TrainingEvidence("csv", frozenset({"place /other"})),
    "jsonl:/runs/c": TrainingEvidence("jsonl", frozenset({"place /runs"})),
    "jsonl:/runs/d": TrainingEvidence("jsonl", frozenset({"process 7"}), frozenset({"process 7"})),
}


def alike(store, *incidents):
    return store.history.alike(incidents, JOINTS.__getitem__)


@pytest.mark.slow
@pytest.mark.parametrize("open_", [True, False])
def test_what_may_tell_the_same_is_found_among_any_number_of_incidents(store, open_):
    ours = tracker()
    committed = update("ww" if open_ else "ww" + "." * 10, ours=ours)
    recorded = committed.incidents[-1]
    fallen = recorded.replace(id="fallen", onset_step=700, fired_step=700, evidence=SILENCE)
    late = range(5000, 6500)
    others = [recorded.replace(id=f"other {step}", onset_step=step, fired_step=step) for step in late]
    store.commit([replace(committed, incidents=[recorded, fallen], join_keys=JOINTS[RUN])], NOW)
    store.commit([replace(committed, incidents=others, outcomes=[])], NOW + 1)
    other = recorded.replace(id="asked", run="csv:/runs/a", evidence={"value": 1.0})
    assert alike(store, other) == [recorded]
    assert alike(store, other.replace(signal="loss", evidence=SILENCE)) == [fallen]
    far = other.replace(evidence={}, onset_step=900, fired_step=900)
    assert not alike(store, other.replace(signal="loss"), far)
    assert recorded in alike(store, other.replace(onset_step=900)), "it fired at the same step"
    assert alike(store, other.replace(run="jsonl:/runs/d")) == [recorded]
    assert not alike(store, other.replace(run="jsonl:/runs/c")), "a place joins no logs of one format"
    assert not alike(store, other.replace(run="csv:/runs/b")), "the logs share nothing"
    assert not alike(store)


def test_a_run_is_unknown_before_its_first_commit(store):
    assert store.run_state(RUN) is None


def test_what_was_sent_is_known(store):
    committed = update("wwcc")
    store.commit([committed], NOW)
    incident = committed.incidents[0].id
    sent = store.history.sent_before([incident, "other"])
    assert sent == {
        (incident, "slack"): {
            "firing": Sent(NOW, 2, 2, 1, waiting=True),
            "escalated": Sent(NOW, 3, 4, 2, waiting=True),
        }
    }
    while entry := first_waiting(store.outbox, "slack"):
        store.outbox.sent("slack", [entry], NOW)
    assert not any(s.waiting for s in store.history.sent_before([incident])[incident, "slack"].values())


@pytest.mark.slow
@pytest.mark.parametrize("receiver", ["rests", "is held", "rests, and was tried with it", "takes all"])
def test_what_was_never_tried_is_withdrawn_when_its_cause_comes(store, receiver):
    ours = tracker()
    first = update(rows("cc", "flat-loss-at-init", tag="loss"), ours=ours)
    store.commit([replace(first, deferred=receiver == "is held")], NOW)
    (effect,) = (incident.id for incident in ours.open())
    if receiver.startswith("rests"):
        tried = store.outbox.begin([first_waiting(store.outbox, "slack")]) if receiver != "rests" else []
        store.outbox.postponed("slack", tried, "503", 5.0, Receiver(1, NOW + 5))
    cause = changed(rows("cc", "loss-scale-collapse", first=2), onset=lambda: (0, None))
    store.commit([update(cause, ours=ours, sent=store.history.sent_before([effect]))], NOW)
    withdrawn = receiver in ("rests", "is held")
    assert (effect in {one.incident for one in store.outbox.undelivered()}) is not withdrawn
    assert len(store.outbox.undelivered()) == (1 if withdrawn else 2), "the cause is told"
    assert ((effect, "slack") in store.history.sent_before([effect])) is not withdrawn
    assert (Reason.WITHDRAWN in {one.reason for one in store.decisions()}) is withdrawn


def withdrawn_while_it_waits(store, meanwhile=lambda: None):
    """The id of an effect whose cause comes while its receiver rests; what happens meanwhile is not seen."""
    ours = tracker()
    store.commit([update(rows("cc", "flat-loss-at-init", tag="loss"), ours=ours)], NOW)
    store.outbox.postponed("slack", [], "503", 5.0, Receiver(1, NOW + 5))
    (effect,) = (incident.id for incident in ours.open())
    sent = store.history.sent_before([effect])
    cause = changed(rows("cc", "loss-scale-collapse", first=2), onset=lambda: (0, None))
    decided = update(cause, ours=ours, sent=sent)
    meanwhile()
    store.commit([decided], NOW)
    return effect


def test_what_is_being_sent_is_not_withdrawn(store):
    """A try may begin between the decision to withdraw and its commit."""
    entries = []
    effect = withdrawn_while_it_waits(
        store, lambda: entries.extend(store.outbox.begin([first_waiting(store.outbox, "slack")]))
    )
    store.outbox.sent("slack", entries, NOW)
    assert [*store.history.sent_before([effect])] == [(effect, "slack")], "so that its end is told, too"


def test_what_was_withdrawn_is_not_sent(store):
    """A sink may have taken up a notification before it was withdrawn, and not begun to send it."""
    taken_up = []
    effect = withdrawn_while_it_waits(store, lambda: taken_up.append(first_waiting(store.outbox, "slack")))
    assert store.outbox.begin(taken_up) == []
    assert store.history.sent_before([effect]) == {}


def test_the_end_of_what_was_given_up_is_not_sent(store):
    ours = tracker()
    store.commit([update("ww", ours=ours)], NOW)
    (incident,) = (incident.id for incident in ours.open())
    store.outbox.failed("slack", store.outbox.begin([first_waiting(store.outbox, "slack")]), "404", NOW)
    over = update("." * 10, ours=ours, sent=store.history.sent_before([incident]))
    assert [(o.decision.event, o.decision.reason) for o in over.outcomes] == [
        (Event.RESOLVED, Reason.NOT_SENT_BEFORE)
    ]


def test_the_same_log_read_again_sends_nothing(store):
    committed = update()
    store.commit([committed], NOW)
    again = update(sent=store.history.sent_before([committed.incidents[0].id]))
    assert not any(o.body for o in again.outcomes)


def test_the_same_notification_is_never_queued_twice(store):
    store.commit([update()], NOW)
    store.commit([update()], NOW)
    assert len(store.outbox.undelivered()) == 2


@pytest.mark.slow
def test_surrogates_and_nan_survive(store):
    committed = update("ww", run="jsonl:/runs/\udcff")
    odd = committed.incidents[0].replace(
        run="jsonl:/runs/\udcff", evidence={"a": float("inf"), "b": "\udcff"}
    )
    store.commit([Update("jsonl:/runs/\udcff", "/runs/\udcff", "jsonl", b"x", [odd])], NOW)
    assert store.run_state("jsonl:/runs/\udcff") == b"x"
    assert store.incidents() == [odd]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_an_incident_with_a_number_that_json_does_not_know_is_found_again(store, number):
    odd = update("ww").incidents[0].replace(evidence={"value": number, "level": 1.0})
    store.commit([Update(odd.run, "/runs/a", "jsonl", b"x", [odd], join_keys=JOINTS[RUN])], NOW)
    (restored,) = store.history.alike([odd], lambda _: JOINTS[RUN])
    assert str(restored.evidence) == str(odd.evidence)
    assert store.open_counts() == {(odd.detector, "warning"): 1}


def test_old_records_go_and_waiting_ones_stay(store):
    store.commit([update("wwcc")], NOW)
    store.outbox.sent("slack", [first_waiting(store.outbox, "slack")], NOW)
    store.prune(NOW + 31 * DAY)
    assert store.decisions() == []
    assert [u.error for u in store.outbox.undelivered()] == [None]
    store.outbox.failed("slack", [first_waiting(store.outbox, "slack")], "404", NOW)
    store.prune(NOW + 31 * DAY)
    assert store.outbox.undelivered() == []
    (incident,) = store.incidents()
    sent = store.history.sent_before([incident.id])[incident.id, "slack"]
    assert [*sent] == [Event.FIRING], "what was given up is not known"


def in_bytes(place):
    return (place / "sentinel.sqlite").stat().st_size


def fill_and_forget(place):
    """Commit large states of 40 runs and forget all but one."""
    runs = [f"jsonl:/runs/{number}" for number in range(40)]
    with Store(place) as store:
        store.commit([Update(run, "/runs/a", "jsonl", bytes(100_000)) for run in runs], NOW)
        store.forget(runs[1:])


@pytest.mark.slow
def test_disk_space_of_forgotten_runs_is_given_back(tmp_path):
    fill_and_forget(tmp_path)
    full = in_bytes(tmp_path)
    with Store(tmp_path) as store:
        store.prune(NOW)
        assert store.run_state("jsonl:/runs/0") == bytes(100_000)
    assert in_bytes(tmp_path) < full / 5


@pytest.mark.slow
def test_free_space_that_is_soon_used_again_is_kept(tmp_path, store):
    place = tmp_path / "state"
    store.commit([Update(f"jsonl:/runs/{n}", "/runs/a", "jsonl", bytes(100_000)) for n in range(40)], NOW)
    store.forget([f"jsonl:/runs/{n}" for n in range(5)])
    store.prune(NOW)
    store.close()
    assert in_bytes(place) > 40 * 100_000


def test_silences(store):
    first = silence("a", "*", NOW + 5, "x", NOW)
    second = silence("b", "*", NOW + 3, "y", NOW)
    store.add_silence(first)
    store.add_silence(second)
    assert store.silences(NOW) == [second, first]
    assert store.silences(NOW + 4) == [first]
    assert store.remove_silence(first.id)
    assert not store.remove_silence(first.id)
    store.prune(NOW + 10 * DAY)
    assert store.silences(0) == []


def test_health(store):
    store.set_health({"poll": {"at": NOW}, "kl-blowup": "failed"})
    store.set_health({"kl-blowup": None})
    assert store.health() == {"poll": {"at": NOW}}


def test_the_journal_is_one_that_all_its_users_can_share(request, tmp_path, store):
    store.set_health({"a": 1})
    with closing(sqlite3.connect(tmp_path / "state" / "sentinel.sqlite")) as connection:
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
    on_nfs = "on NFS" in request.node.name
    assert mode == ("delete" if on_nfs else "wal")  # a file keeps only whether it has a write-ahead log
    with Store(tmp_path / "state", read_only=True) as reader:
        assert reader.health() == {"a": 1}
        store.set_health({"a": 2})
        assert reader.health() == {"a": 2}


def test_a_state_that_moves_to_nfs_gets_another_journal(monkeypatch, tmp_path):
    with Store(tmp_path) as store:
        store.set_health({"a": 1})
    monkeypatch.setattr(database, "is_shared_by_machines", lambda _: True)
    with Store(tmp_path) as store:
        assert store.health() == {"a": 1}
        store.set_health({"a": 2})
        assert (tmp_path / "sentinel.sqlite-journal").exists()
        assert not (tmp_path / "sentinel.sqlite-wal").exists()


def test_a_file_system_without_locks_is_named(monkeypatch, tmp_path):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with pytest.raises(StateError, match="No locks available: its file system locks no files"):
        sole_watcher(tmp_path).__enter__()


def test_only_the_owner_may_read(tmp_path, store):
    store.set_health({"a": 1})
    directory = tmp_path / "state"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in directory.iterdir()} == {0o600}


class TestRefused:
    def test_nothing_there(self, tmp_path):
        with pytest.raises(StateError, match="nothing was watched"):
            Store(tmp_path / "none", create=False)
        assert not (tmp_path / "none").exists()

    @pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA + 8])
    def test_another_schema(self, tmp_path, schema):
        Store(tmp_path / "state").close()
        with closing(sqlite3.connect(tmp_path / "state" / "sentinel.sqlite")) as database:
            database.execute(f"PRAGMA user_version = {schema}")
        refusal = rf"sentinel\.sqlite: has schema {schema}, and this sentinel has schema {SCHEMA}; a start of"
        with pytest.raises(StateOfAnotherSchema, match=refusal):
            Store(tmp_path / "state", read_only=True)

    def test_another_file(self, tmp_path, monkeypatch):
        def connect(*words, **options):
            opened.append(real(*words, **options))
            return opened[-1]

        opened = []
        real = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", connect)
        (tmp_path / "sentinel.sqlite").write_text("something else entirely" * 100)
        with pytest.raises(StateError, match=r"sentinel\.sqlite: file is not a database"):
            Store(tmp_path)
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            opened[0].execute("SELECT 1")

    @pytest.mark.long
    def test_a_process_that_closes_the_database_leaves_it_to_those_that_have_it_open(self, tmp_path):
        look = f"import pathlib, sentinel.storage.store as s; s.Store(pathlib.Path({str(tmp_path)!r}))"
        with Store(tmp_path) as store, Store(tmp_path):
            store.set_health({"watch": 1})
            assert discover([tmp_path]).runs == []  # it may lie among the logs
            subprocess.run([sys.executable, "-c", f"{look}.close()"], check=True)
            assert (tmp_path / "sentinel.sqlite-wal").exists()

    def test_a_file_for_a_directory(self, tmp_path):
        (tmp_path / "state").touch()
        with pytest.raises(StateError, match="cannot be used as state_dir"):
            Store(tmp_path / "state")

    def test_a_second_watcher(self, tmp_path):
        refused = pytest.raises(StateError, match=f"process {os.getpid()}")
        with sole_watcher(tmp_path), refused, sole_watcher(tmp_path):
            pass
        with sole_watcher(tmp_path):
            pass


@pytest.mark.slow
def test_readers_and_silencers_work_beside_the_watcher(tmp_path, store):
    with Store(tmp_path / "state", create=False) as beside:
        for n in range(20):
            store.commit([update("ww", state=bytes([n]))], NOW + n)
            assert beside.run_state(RUN) == bytes([n])
            beside.add_silence(silence("a", "*", NOW + 100, str(n), NOW))
        assert len(store.silences(NOW)) == 20


def test_what_fails_half_way_leaves_nothing(store):
    good = update("ww", state=b"new")
    bad = update("ww", run="jsonl:/runs/b", state=object())
    with pytest.raises(sqlite3.Error):
        store.commit([good, bad], NOW)
    assert (store.runs(), store.incidents(), store.decisions()) == ([], [], [])
    assert store.outbox.undelivered() == []
    store.commit([good], NOW)
    assert store.run_state(RUN) == b"new"


WRITER = """
import sys
from pathlib import Path
from tests.storage.test_store import NOW, update
from sentinel.storage.store import Store
with Store(Path(sys.argv[1])) as store:
    done = int(store.run_state("jsonl:/runs/a") or 0)
    while True:
        done += 1
        line = "." * done + "wwcc"
        store.commit([update(line, state=b"%d" % done)], NOW)
        print(done, flush=True)
"""


@pytest.mark.long  # real processes
@pytest.mark.parametrize("commits", [1, 5, 23])
def test_a_kill_leaves_whole_commits(tmp_path, commits):
    """State, incident, decisions and notifications of a commit are all there or all missing."""
    printed = 0
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE) as writer:
            for _ in range(commits):
                printed = int(writer.stdout.readline())
            writer.kill()
            rest = writer.stdout.read().split()
        printed = int(rest[-1]) if rest else printed
        with Store(tmp_path, create=False) as store:
            committed = int(store.run_state(RUN))
            assert committed in (
                printed,
                printed + 1,
            )  # the last one may have been killed before it could say so
            assert len(store.incidents(open_only=True)) == committed
            assert len(store.outbox.undelivered()) == len(store.decisions(10**6)) == 2 * committed
        with closing(sqlite3.connect(tmp_path / "sentinel.sqlite")) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            bodies = database.execute("SELECT body FROM outbox").fetchall()
            assert all(json.loads(body)["event"] for (body,) in bodies)
