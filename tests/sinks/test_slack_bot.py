import json

import pytest
from msgspec.structs import replace

from sentinel.incidents.incident import Event
from sentinel.sinks.base import Permanent, Transient
from sentinel.sinks.slack_bot import SlackBotConfig
from tests.sinks import receiver as rx
from tests.sinks.samples import NOTIFICATION, about, digest
from tests.sinks.test_slack import shown

NOW = 1_767_230_000.0
POSTED = json.dumps({"ok": True, "channel": "C024BE91L", "ts": "1503435956.000247", "message": {}})


@pytest.fixture
def sink(receiver, monkeypatch):
    monkeypatch.setenv("TOKEN", "xoxb-t0ken")
    receiver.default = rx.status(200, POSTED)
    return SlackBotConfig(url=receiver.url, token_env="TOKEN", channel="#alerts").open()


def test_the_first_message_opens_a_thread(sink, receiver):
    assert sink.send(NOTIFICATION, NOW) == "C024BE91L 1503435956.000247"
    (received,) = receiver.received
    assert received.path == "/hook/chat.postMessage"
    assert received.headers["Authorization"] == "Bearer xoxb-t0ken"
    body = json.loads(received.body)
    assert (body["channel"], body.get("thread_ts"), body["parse"]) == ("#alerts", None, "none")
    assert shown(body).startswith(
        "KL to the reference is 3.2 nats per token, above 2.0.\ncritical kl-blowup in grpo-7b"
    )


@pytest.mark.slow
@pytest.mark.parametrize("event", [Event.REPEAT, Event.ESCALATED, Event.RESOLVED])
def test_later_news_goes_under_it(event, sink, receiver):
    sink.send(replace(about(event), thread="C024BE91L 1503435956.000247"), NOW)
    body = json.loads(receiver.received[0].body)
    assert (body["channel"], body["thread_ts"]) == ("C024BE91L", "1503435956.000247")


@pytest.mark.slow
def test_a_digest_stands_alone(sink, receiver):
    sink.send(digest(14), NOW)
    assert "thread_ts" not in json.loads(receiver.received[0].body)


@pytest.mark.parametrize(
    ("error", "expected", "why"),
    [
        ("ratelimited", Transient, "Slack answered ratelimited"),
        ("internal_error", Transient, "Slack answered internal_error"),
        ("not_in_channel", Permanent, "not_in_channel: invite the bot to the channel"),
        ("invalid_auth", Permanent, "invalid_auth: the token is not valid"),
        ("msg_too_long", Permanent, "Slack answered msg_too_long"),
        ("xoxb-t0ken IS WRONG", Permanent, "Slack answered with an error"),
    ],
)
def test_slacks_errors_say_whether_a_retry_helps_and_the_mend(error, expected, why, sink, receiver):
    receiver.default = rx.status(200, json.dumps({"ok": False, "error": error}))
    with pytest.raises(expected, match=why) as refused:
        sink.send(NOTIFICATION, NOW)
    assert "t0ken" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}"])
def test_a_delivered_post_with_an_odd_answer_is_delivered(text, sink, receiver):
    receiver.default = rx.status(200, text)
    assert sink.send(NOTIFICATION, NOW) is None


def test_slack_is_asked_for_a_pause(sink, receiver):
    receiver.default = rx.status(429, Retry_After="30")
    with pytest.raises(Transient) as refused:
        sink.send(NOTIFICATION, NOW)
    assert refused.value.retry_after_seconds == 30.0
