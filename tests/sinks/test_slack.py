import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.alerts.causes import PossibleCause
from sentinel.alerts.incident import Event
from sentinel.sinks.base import Digest, Permanent, Transient
from sentinel.sinks.slack import SlackConfig, escaped, slack_body
from tests.sinks import receiver as rx
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest

NOW = 1_767_230_000.0
text = st.text(st.one_of(st.characters(), st.sampled_from("<>&*_~`!@#|:[]\n\x1b")), max_size=200)


def texts(body):
    """Every text that Slack shows, wherever it stands in the blocks."""
    if isinstance(body, dict):
        return [t for k, v in body.items() for t in ([v] if k == "text" and isinstance(v, str) else texts(v))]
    return [t for item in body for t in texts(item)] if isinstance(body, list) else []


def test_a_firing_incident_reads_in_order(receiver):
    SlackConfig(url=receiver.url).open().send(NOTIFICATION, NOW)
    assert texts(json.loads(receiver.received[0].body)) == [
        "Critical: kl-blowup in grpo-7b: KL to the reference is 3.2 nats per token, above 2.0",
        "Critical: kl-blowup",
        "KL to the reference is 3.2 nats per token, above 2.0",
        "run grpo-7b",
        "since step 400 to 430, 30 steps or 5 min",
        "*KL*\n3.2 nats per token",
        "*limit*\n2 nats per token",
        "*median before*\n0.04 nats per token",
        "*R2* 80% Policy leaves the reference\nthe reward does not rise\n"
        "raise the KL weight\nTo tell: sample",
        "*R1* 20% Reward hacking\nstop and read completions\nTo tell: read",
        "*Also open*\nentropy fell to 0.02",
        "*Cost so far* 30 steps, 5 min",
    ]


def test_a_digest_shows_the_worst_and_counts_the_rest(receiver):
    SlackConfig(url=receiver.url).open().send(digest(14, over=2), NOW)
    title, counts = "14 incidents, in one message because they had to wait", "12 critical, 2 resolved"
    one = (
        "*Critical: kl-blowup* in grpo-7b\nKL to the reference is 3.2 nats per token, above 2.0\n"
        "R2: raise the KL weight"
    )
    assert texts(json.loads(receiver.received[0].body)) == [
        *(f"{title}: {counts}", title, counts),
        *[one] * 10,
        "*All by detector* kl-blowup 12",
    ]
    assert receiver.received[0].headers["Idempotency-Key"] == "d1gest"


@pytest.mark.parametrize(
    ("event", "title"),
    [
        (Event.ESCALATED, "Critical, got worse: kl-blowup"),
        (Event.REPEAT, "Critical, still there: kl-blowup"),
        (Event.RESOLVED, "Resolved: kl-blowup"),
        (Event.LOST, "Log went silent with kl-blowup open"),
        (Event.TEST, "Test of this sink: kl-blowup"),
    ],
)
def test_each_event_has_its_title(event, title):
    assert texts(slack_body(about(event)))[1] == title


def test_a_resolved_incident_says_how_long_it_lasted_and_no_more():
    shown = texts(slack_body(about(Event.RESOLVED)))
    assert "from step 400 to 430, 30 steps or 5 min" in shown
    assert not any("R2" in t or "limit" in t for t in shown)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<!channel> & <@U1> <http://a.b|c>", "&lt;!channel&gt; &amp; &lt;@U1&gt; &lt;http://a.b|c&gt;"),
        ("train/loss_scale_mean", "train/loss_scale_mean"),
        ("*bold*", "\u200b*\u200bbold\u200b*\u200b"),
        ("a `code` b", "a \u200b`\u200bcode\u200b`\u200b b"),
        ("2 < 3", "2 &lt; 3"),
    ],
)
def test_run_text_is_shown_literally(raw, shown):
    assert escaped(raw, 1000) == shown


@given(text, st.integers(1, 60))
def test_escaped_text_is_inert_and_bounded(raw, limit):
    inert = escaped(raw, limit)
    assert len(inert) <= limit
    assert not set(inert) & {"<", ">"}
    assert re.fullmatch(r"(&(amp|lt|gt);|[^&])*", inert, re.DOTALL)
    assert not re.search(r"(?:^|\s)[*_~`]+\w", inert)


@given(st.dictionaries(text, text | st.floats() | st.integers(), max_size=30), text, text, text)
@settings(deadline=None)
def test_any_run_makes_a_message_that_slack_takes(evidence, name, summary, tag):
    causes = (PossibleCause(name, 0.05, summary * 50),) * 20
    odd = INCIDENT.changed(evidence=evidence, summary=summary * 50, tag=tag, causes=causes)
    entry = {"id": name, "title": summary, "fix": summary * 50, "check": tag}
    notification = replace(
        NOTIFICATION, incident=odd, run={"run": name * 20}, catalogue=[entry] * 20, also_open=[summary] * 90
    )
    for told in (notification, Digest(name, [notification] * 20)):
        body = slack_body(told)  # slack_sdk's models hold Slack's limits
        assert len(body["blocks"]) <= 50
        for shown in texts(body):
            assert 0 < len(shown) <= 3000
            assert "<" not in shown
            shown.encode()


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
