import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.incidents.causes import PossibleCause
from sentinel.sinks.base import Digest, Permanent, Transient
from sentinel.sinks.slack import SlackConfig
from sentinel.sinks.slack_blocks import slack_body
from sentinel.sources.identity import RunIdentity
from tests.sinks import receiver as rx
from tests.sinks.messages import marked
from tests.sinks.samples import INCIDENT, NOTIFICATION, digest

NOW = 1_767_230_000.0
text = st.text(st.one_of(st.characters(), st.sampled_from("<>&*_~`!@#|:[]\n\x1b")), max_size=200)


def elements(body):
    """Every element that holds text, wherever it stands in the blocks."""
    if isinstance(body, list):
        return [element for item in body for element in elements(item)]
    if isinstance(body.get("text"), str):
        return [body]
    return [element for item in body.values() if isinstance(item, dict | list) for element in elements(item)]


def shown(body):
    return "\n".join("".join(map(marked, elements(block))).strip("\n") for block in body["blocks"])


def test_a_firing_incident_reads_in_order(receiver):
    SlackConfig(url=receiver.url).open().send(NOTIFICATION, NOW)
    body = json.loads(receiver.received[0].body)
    assert body["text"] == "grpo-7b: KL to the reference is 3.2 nats per token, above 2.0."
    assert shown(body).splitlines() == [
        "KL to the reference is 3.2 nats per token, above 2.0.",
        "critical kl-blowup in grpo-7b on node-7",
        "*Since:* step 400 of 1,000, 2026-01-01 00:00:00 UTC, for 30 steps (5 min), "
        "0.667 GPU-hours (8 processes, 5 min)",
        "*Likely:* Policy leaves the reference (R2, 80%): the reward does not rise",
        "*Do:* raise `beta`",
        "*Check:* sample",
        "*Checkpoint:* /runs/grpo-7b/checkpoint-350",
        "<https://tensorboard.example/#run=grpo-7b|Open the run>",
        "sentinel show 00c0ffee00c0ffee",
        "sentinel ack 00c0ffee00c0ffee",
    ]


@pytest.mark.slow
def test_a_digest_shows_the_worst_and_counts_the_rest(receiver):
    SlackConfig(url=receiver.url).open().send(digest(14, over=2), NOW)
    body = json.loads(receiver.received[0].body)
    title = "14 incidents, in one message because they had to wait"
    counts = "12 critical, 2 resolved"
    one = [
        "*critical kl-blowup* in grpo-7b",
        "KL to the reference is 3.2 nats per token, above 2.0.",
        "raise `beta`",
    ]
    assert body["text"] == f"{title}: {counts}"
    assert shown(body).splitlines() == [title, counts, *one * 10, "*All by detector* kl-blowup 12"]
    assert receiver.received[0].headers["Idempotency-Key"] == "d1gest"


@pytest.mark.parametrize(
    "raw", ["<!channel> & <@U1> <http://a.b|c>", "*bold* _i_ ~s~ `code`", ":tada: @here", "a\u202eb"]
)
def test_text_from_a_run_stands_in_elements_that_slack_shows_literally(raw):
    hostile = replace(
        NOTIFICATION, incident=INCIDENT.replace(summary=raw), run=RunIdentity(run=raw, path=raw)
    )
    body = slack_body(hostile)
    assert {element["type"] for element in elements(body["blocks"])} <= {"plain_text", "text", "link"}
    assert all(e.get("emoji") is False for e in elements(body["blocks"]) if e["type"] == "plain_text")
    assert not set(body["text"]) & {"<", ">"}
    assert body["mrkdwn"] is False
    assert "\u202e" not in json.dumps(body, ensure_ascii=False)


@pytest.mark.long  # many examples
@given(st.dictionaries(text, text | st.floats() | st.integers(), max_size=30), text, text, text)
@settings(deadline=None)
def test_any_run_makes_a_message_that_slack_takes(evidence, name, summary, tag):
    causes = (PossibleCause(name, 0.05, summary * 50),) * 20
    odd = INCIDENT.replace(evidence=evidence, summary=summary * 50, tag=tag, causes=causes)
    entry = {"id": name, "title": summary, "fix": summary * 50, "check": tag}
    notification = replace(
        NOTIFICATION,
        incident=odd,
        run=RunIdentity(run=name * 20),
        catalogue=[entry] * 20,
        also_open=[summary] * 90,
    )
    for each in (notification, Digest(name, [notification] * 20)):
        body = slack_body(each)  # slack_sdk's models hold Slack's limits
        assert len(body["blocks"]) <= 50
        assert len(body["text"]) <= 3000
        for element in elements(body["blocks"]):
            assert 0 < len(element["text"]) <= 3000
            element["text"].encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (404, "no_service"),
        (403, "invalid_token"),
        (410, "channel_is_archived"),
        (403, "action_prohibited"),
        (200, "no_active_hooks"),
    ],
)
def test_slacks_refusals_are_permanent_and_say_the_mend(status, refusal, receiver):
    receiver.default = rx.status(status, refusal)
    with pytest.raises(Permanent, match=f"Slack answered {refusal}: "):
        SlackConfig(url=receiver.url).open().send(NOTIFICATION, NOW)


def test_slacks_own_trouble_is_transient(receiver):
    receiver.default = rx.status(500, "rollup_error")
    with pytest.raises(Transient):
        SlackConfig(url=receiver.url).open().send(NOTIFICATION, NOW)
