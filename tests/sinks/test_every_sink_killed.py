"""The life of an incident through every sink, with kills in between."""

import json
import sys
from itertools import groupby

import pytest

from sentinel.incidents.incident import Event
from sentinel.sinks.discovery import sink_types
from tests.patience import PATIENCE
from tests.sinks import receiver as rx
from tests.sinks.delivering import delivering
from tests.sinks.samples import enqueue
from tests.sinks.test_delivery import START, numbered

pytestmark = pytest.mark.long

LIFE = [Event.FIRING, Event.ESCALATED, Event.REPEAT, Event.RESOLVED]
APPEND = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


def heard(request):
    """What tells one notification from another, whatever the sink makes of it."""
    if (key := request.headers["Idempotency-Key"]) is not None:
        return key
    body = json.loads(request.body)
    return body["title"] if isinstance(body, dict) else None


def test_every_sink_tells_the_life_of_an_incident_in_order_across_kills(tmp_path, store, receiver):
    """A notification that was on its way at a kill may come twice, with the same key."""
    receiver.default = rx.status(200, '{"ok": true, "channel": "C1", "ts": "1.5"}')
    (tmp_path / "secret").write_text("s")
    file = str(tmp_path / "secret")
    hook = receiver.url
    tables = [
        {"type": "alertmanager", "url": f"{hook}/alertmanager"},
        {"type": "apprise", "url": f"json://127.0.0.1:{receiver.port}/hook/apprise"},
        {"type": "command", "command": [sys.executable, "-c", APPEND, str(tmp_path / "told")]},
        {"type": "pagerduty", "url": f"{hook}/pagerduty", "routing_key_file": file},
        {"type": "slack", "url": f"{hook}/slack"},
        {"type": "slack-bot", "url": f"{hook}/slack-bot", "token_file": file, "channel": "C1"},
        {"type": "webhook", "url": f"{hook}/webhook"},
    ]
    assert {table["type"] for table in tables} == sink_types().keys() - {"terminal"}
    for number, event in enumerate(LIFE):
        enqueue(store, numbered(number, event), [table["type"] for table in tables], START)
        count = len(receiver.received) + 3
        with delivering(tmp_path, tables, START + 2000 * number):
            receiver.wait_for(lambda count=count: len(receiver.received) >= count)
        with delivering(tmp_path, tables, START + 2000 * number + 1000) as last:
            assert last.wait(PATIENCE) == 0
        assert store.outbox.undelivered() == []

    bodies = {}
    for request in receiver.received:
        if (what := heard(request)) is not None:  # else a refresh
            bodies.setdefault(request.path.split("/")[2], []).append(what)
    lines = (tmp_path / "told").read_text().splitlines()
    whole = filter(None, lines)  # a kill may leave a command without its input
    bodies["command"] = [json.loads(line)["idempotency_key"] for line in whole]
    keys = [f"a-{event}-{number}" for number, event in enumerate(LIFE)]
    in_order = {kind: [what for what, _ in groupby(everything)] for kind, everything in bodies.items()}
    titles = in_order.pop("apprise")
    assert in_order == {table["type"]: keys for table in tables if table["type"] != "apprise"}
    assert [title.split(": ")[1] for title in titles] == [
        *("KL to the reference is 3.2 nats per token, above 2.0.", "Got worse", "Still there"),
        "Resolved after 30 steps (5 min)",
    ]
    posts = [r for r in receiver.received if "/slack-bot/" in r.path]
    later = [json.loads(r.body)["thread_ts"] for r in posts if heard(r) != keys[0]]
    assert set(later) == {"1.5"}
