import io
import json
import logging
import socket

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import SecretStr, ValidationError

from sentinel.common.errors import ConfigError
from sentinel.incidents.incident import Event
from sentinel.sinks.apprise import AppriseConfig
from sentinel.sinks.base import Permanent, SinkError, Transient
from sentinel.sinks.message import text
from tests.sinks import receiver as rx
from tests.sinks.samples import NOTIFICATION, about, digest

NOW = 1_767_230_000.0
SECRET = "xoxS3CRET"
NO_SPACE = "\u200b"


@pytest.fixture
def logged():
    """All that reaches the root logger, as in the log of a watch."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def sink(receiver):
    return AppriseConfig(url=f"json://user:{SECRET}@127.0.0.1:{receiver.port}/{SECRET}").open()


@pytest.mark.slow
@pytest.mark.parametrize("notification", [NOTIFICATION, about(Event.RESOLVED), digest(14, over=2)])
def test_a_service_gets_the_text(notification, receiver):
    sink(receiver).send(notification, NOW)
    body = json.loads(receiver.received[0].body)
    assert body["message"].replace(NO_SPACE, "").split("\n") == text(notification).split("\n")[1:]
    assert body["title"].count("\n") == 0
    assert body["attachments"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (rx.status(404, SECRET), Permanent, "the service answered 404"),
        (rx.status(401), Permanent, "the service answered 401"),
        (rx.status(429), Transient, "the service answered 429"),
        (rx.status(503), Transient, "the service answered 503"),
        (rx.close, Transient, "the service did not take the message"),
    ],
)
def test_a_refusal_says_whether_a_retry_helps_and_no_secret(answer, error, why, receiver, logged, capfd):
    receiver.default = answer
    with pytest.raises(error, match=why) as refused:
        sink(receiver).send(NOTIFICATION, NOW)
    assert len(receiver.received) == 1
    texts = [str(refused.value), repr(sink(receiver)), logged.getvalue(), *capfd.readouterr()]
    assert SECRET not in "\n".join(texts)


def test_nobody_listening_is_transient():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Transient):
            AppriseConfig(url=f"json://127.0.0.1:{unused.getsockname()[1]}").open().send(NOTIFICATION, NOW)


def test_a_redirect_is_not_followed(receiver):
    with rx.Receiver() as elsewhere:
        receiver.default = rx.status(307, Location=elsewhere.url)
        with pytest.raises(SinkError):
            sink(receiver).send(NOTIFICATION, NOW)
        assert elsewhere.received == []


@pytest.mark.slow
def test_an_address_that_apprise_does_not_know_is_refused_without_repeating_it(monkeypatch, logged, capfd):
    monkeypatch.setenv("PLACE", f"nonsense://{SECRET}")
    with pytest.raises(ConfigError, match="PLACE does not hold an address that Apprise knows") as refused:
        AppriseConfig(url_env="PLACE").open()
    assert SECRET not in "\n".join([str(refused.value), logged.getvalue(), *capfd.readouterr()])


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("ntfy://my-topic", True),
        ("ntfys://my-topic/?priority=high", True),
        ("ntfy://ntfy.sh/my-topic", True),
        ("ntfy://127.0.0.1/my-topic", False),
        ("ntfy://user:word@127.0.0.1/my-topic", False),
        ("json://127.0.0.1/my-topic", False),
    ],
)
def test_a_public_topic_is_said_to_be_public_without_repeating_it(logged, address, is_public):
    AppriseConfig(url=address).open()
    assert ("a topic of ntfy is public" in logged.getvalue()) == is_public
    assert "my-topic" not in logged.getvalue()


def test_exactly_one_address():
    with pytest.raises(ValidationError, match="exactly one of url, url_env and url_file"):
        AppriseConfig()


def test_a_missing_package_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    with pytest.raises(ConfigError, match=r"install .*training-sentinel\[apprise\]"):
        AppriseConfig(url="json://127.0.0.1").open()


def test_the_headline_stands_once_and_nothing_of_it_is_cut(receiver):
    sink(receiver).send(NOTIFICATION, NOW)
    long = replace(NOTIFICATION, incident=NOTIFICATION.incident.replace(summary="the loss is high " * 30))
    sink(receiver).send(long, NOW)
    first, second = (json.loads(request.body) for request in receiver.received)
    headline = NOTIFICATION.incident.headline
    assert headline in first["title"]
    assert headline not in first["message"]
    assert long.incident.headline[:400] in second["title"] + second["message"]


@pytest.mark.parametrize(
    "evil", ["@everyone", "<@&1234>", "<!channel>", "http://evil.example/a", "[a](http://b)"]
)
def test_what_a_run_is_called_calls_nobody_and_links_nowhere(evil, receiver):
    named = replace(NOTIFICATION, run=replace_run(run=f"a {evil} b", path=evil))
    sink(receiver).send(named, NOW)
    body = json.loads(receiver.received[0].body)
    for part in (body["title"], body["message"]):
        assert evil not in part
    assert NOTIFICATION.link in body["message"], "our own link works"
    assert evil in (body["title"] + body["message"]).replace(NO_SPACE, "")


def test_a_digest_longer_than_a_service_takes_comes_in_pieces():
    from apprise import Apprise

    from sentinel.sinks import apprise

    notifier: Apprise = apprise._notifier(SecretStr("discord://123456789012345678/abcdefghijklmnop"))
    (service,) = notifier
    pieces = service._apply_overflow(text(digest(40)) * 5, title="40 incidents")
    assert len(pieces) > 1
    assert all(len(piece["body"]) <= service.body_maxlen for piece in pieces)
    chosen = apprise._notifier(SecretStr("discord://123456789012345678/abcdefghijklmnop?overflow=truncate"))
    assert chosen[0].overflow_mode == "truncate"


def replace_run(**fields):
    return msgspec.structs.replace(NOTIFICATION.run, **fields)
