"""What every sink promises, checked for each sink that discovery finds."""

import asyncio
import json
import logging
import re
import socket
import traceback
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial

import pytest
from pydantic import ValidationError

from sentinel.common.errors import ConfigError
from sentinel.incidents.incident import Event
from sentinel.sinks import http
from sentinel.sinks.base import Permanent, SinkError, Transient
from sentinel.sinks.discovery import named, sink_types
from sentinel.sinks.secrets import HttpSinkConfig
from sentinel.testing.sinks import SinkConformance, all_of, odd
from tests.sinks import receiver as rx
from tests.sinks.samples import NOTIFICATION, digest
from tests.tools.docs import ROOT

NOW = 1_767_230_000.0
SECRET = "xoxS3CRET"
HTTP_SINKS = [name for name, config in sink_types().items() if issubclass(config, HttpSinkConfig)]

every_sink = pytest.mark.parametrize("kind", sink_types())
every_http_sink = pytest.mark.parametrize("kind", HTTP_SINKS)


MORE = {
    "pagerduty": {"routing_key_env": "SINK_SECRET"},
    "slack-bot": {"token_env": "SINK_SECRET", "channel": "C024BE91L"},
    "apprise": {"url": "json://127.0.0.1"},
    "command": {"command": ["true"]},
}
"""What a sink needs beside an HTTP address."""


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("SINK_SECRET", SECRET)


def configured(kind, **keys):
    return sink_types()[kind](**MORE.get(kind, {}), **keys)


def opened(kind, url, timeout_seconds=60.0):
    return configured(kind, url=url, timeout_seconds=timeout_seconds).open()


def outcome(sink):
    """None where delivered, else the error."""
    try:
        sink.send(NOTIFICATION, NOW)
    except SinkError as error:
        return error
    return None


def test_the_sinks_are_found_and_stand_in_the_table_of_channels():
    page = (ROOT / "deploy" / "site" / "docs" / "reference" / "channels.md").read_text(encoding="utf-8")
    rows = page.partition("| --- |")[2].partition("\n\n")[0]
    assert list(sink_types()) == sorted(re.findall("^. `([^`]+)`", rows, re.MULTILINE))


MEANS = {
    type(None): (200, 201, 202, 204, 299),
    Transient: (408, 425, 429, 500, 502, 503, 504, 599),
    Permanent: (300, 301, 302, 307, 308, 400, 401, 403, 404, 405, 410, 413, 422, 451),
}
"""What becomes of a message, by the status of the answer."""


@pytest.mark.slow
@every_http_sink
@pytest.mark.parametrize("expected", MEANS, ids=lambda kind: kind.__name__)
def test_status_decides(kind, expected, receiver):
    for number, code in enumerate(MEANS[expected], 1):
        receiver.default = rx.status(code, "")
        assert type(outcome(opened(kind, receiver.url))) is expected, code
        assert len(receiver.received) == number, code


@pytest.mark.slow
@every_http_sink
@pytest.mark.parametrize("misbehave", [rx.hang, rx.close, rx.garbage, rx.drip_head], ids=lambda f: f.__name__)
def test_no_answer_is_transient(kind, misbehave, receiver):
    receiver.default = misbehave
    assert type(outcome(opened(kind, receiver.url, timeout_seconds=0.3))) is Transient


@pytest.mark.slow
@every_http_sink
def test_a_body_that_never_ends_after_a_200_is_delivered(kind, receiver):
    receiver.default = rx.drip_body
    limits = (0.3, 3.0, 30.0)  # on a busy machine even the head may take longer
    assert any(outcome(opened(kind, receiver.url, timeout_seconds=limit)) is None for limit in limits)


@every_http_sink
def test_nobody_listening_is_transient(kind):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = outcome(opened(kind, f"http://127.0.0.1:{unused.getsockname()[1]}/"))
    assert type(error) is Transient


@pytest.mark.slow
@every_http_sink
def test_broken_tls_is_transient(kind, receiver):
    error = outcome(opened(kind, receiver.url.replace("http:", "https:")))
    assert type(error) is Transient
    assert "TLS" in str(error)


@pytest.mark.slow
@every_http_sink
def test_a_redirect_is_not_followed(kind, receiver):
    with rx.Receiver() as elsewhere:
        receiver.default = rx.status(307, Location=elsewhere.url)
        assert type(outcome(opened(kind, receiver.url))) is Permanent
        assert elsewhere.received == []


RETRY_AFTER = (
    ("17", 17.0),
    ("0", 0.0),
    (format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True), 90.0),
    (format_datetime(datetime.fromtimestamp(NOW - 90, UTC), usegmt=True), 0.0),
    ("soon", None),
    ("-5", None),
    ("9" * 400, None),
    ("", None),
)


@pytest.mark.slow
@every_http_sink
@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_passed_on(kind, code, receiver):
    for header, seconds in RETRY_AFTER:
        receiver.default = rx.status(code, Retry_After=header)
        assert outcome(opened(kind, receiver.url)).retry_after_seconds == seconds, header


@pytest.mark.slow
@every_http_sink
def test_every_try_carries_the_same_key(kind, receiver):
    receiver.answers.extend([rx.status(500), rx.close])
    sink = opened(kind, receiver.url)
    assert [type(outcome(sink)) for _ in range(3)] == [Transient, Transient, type(None)]
    assert {r.headers["Idempotency-Key"] for r in receiver.received} == {NOTIFICATION.key}
    assert {r.headers["Content-Type"] for r in receiver.received} == {"application/json"}


@every_http_sink
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "localhost.", "receiver.localhost", "[::1]", "127.9.9.9"]
)
def test_a_loopback_address_is_never_asked_for_through_a_proxy(kind, host, receiver, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", receiver.url)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        outcome(opened(kind, f"http://{host}:{unused.getsockname()[1]}/"))
    assert receiver.received == []


@pytest.mark.slow
@every_http_sink
def test_any_other_address_is_asked_for_through_the_proxy(kind, receiver, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", receiver.url)
    assert outcome(opened(kind, "http://receiver.invalid/hook")) is None
    assert [r.path[:28] for r in receiver.received] == ["http://receiver.invalid/hook"]


@every_http_sink
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ALL_PROXY", f"socks5://user:{SECRET}@proxy:1080", "a SOCKS proxy needs the package `socksio`"),
        ("all_proxy", f"gopher://user:{SECRET}@proxy:70", "not the address of an HTTP or SOCKS proxy"),
        ("HTTPS_PROXY", f"http://user:{SECRET}@proxy:port", "not the address of an HTTP or SOCKS proxy"),
        ("NO_PROXY", f"[::1,{SECRET}", "not a list of hosts"),
    ],
)
def test_proxy_settings_that_cannot_be_used_are_said_without_repeating_them(
    kind, name, value, why, monkeypatch
):
    monkeypatch.setenv(name, value)
    error = outcome(opened(kind, "https://receiver.invalid/hook"))
    assert type(error) is Transient
    assert str(error).startswith(f"the proxy settings of the environment ({name.upper()}) cannot be used: ")
    assert why in str(error)
    assert SECRET not in all_of(error)


@every_http_sink
@pytest.mark.parametrize("holds", [None, "no certificate"])
def test_certificates_that_cannot_be_used_are_said(kind, holds, tmp_path, monkeypatch):
    if holds:
        (tmp_path / "certificates").write_text(holds)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates"))
    http._trust.cache_clear()
    error = outcome(opened(kind, "https://receiver.invalid/hook"))
    assert type(error) is Transient
    assert "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be used" in str(error)


@pytest.mark.slow
@every_http_sink
def test_what_a_try_prepares_is_not_the_time_of_the_receiver(kind, receiver, monkeypatch):
    client = http._client

    def slow_client(*arguments):
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + 3600)
        return client(*arguments)

    monkeypatch.setattr(http, "_client", slow_client)
    assert outcome(opened(kind, receiver.url)) is None


@pytest.mark.slow
@every_http_sink
def test_a_loopback_address_without_tls_needs_no_certificates(kind, receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates"))
    http._trust.cache_clear()
    assert outcome(opened(kind, receiver.url)) is None


@pytest.mark.slow
@every_http_sink
@pytest.mark.parametrize(
    "answer",
    [
        rx.status(200),
        rx.status(404, f"no such hook: {SECRET}"),
        rx.status(500, SECRET),
        rx.status(302, Location=f"http://127.0.0.1/{SECRET}"),
        rx.hang,
        rx.close,
        rx.garbage,
    ],
    ids=["200", "404", "500", "302", "hang", "close", "garbage"],
)
def test_no_secret_is_told(kind, answer, receiver, caplog, capfd, monkeypatch):
    caplog.set_level(logging.INFO)
    receiver.default = answer
    monkeypatch.setenv("TOKEN", SECRET)
    url = f"http://{SECRET}:{SECRET}@127.0.0.1:{receiver.port}/{SECRET}?token={SECRET}"
    config = configured(kind, url=url, timeout_seconds=0.3)
    if "secret_env" in type(config).model_fields:
        config = config.model_copy(update={"secret_env": "TOKEN"})
    sink = config.open()
    told = [repr(config), str(config), repr(sink), str(sink), all_of(outcome(sink))]
    assert SECRET not in "\n".join([*told, caplog.text, *capfd.readouterr()])


@every_http_sink
@pytest.mark.parametrize(
    "url",
    [
        f"ftp://{SECRET}",
        f"{SECRET}",
        f"http:///{SECRET}",
        f"http://{SECRET}:9999999/",
        f"http://{'a' * 80}.{SECRET}/",
        "",
    ],
)
def test_an_unusable_address_is_refused_without_repeating_it(kind, url, tmp_path, monkeypatch):
    config = partial(configured, kind)
    with pytest.raises(ValidationError) as refused:
        config(url=url)
    assert SECRET not in _told_plainly(refused.value)
    monkeypatch.setenv("HOOK", url)
    with pytest.raises(ConfigError, match="HOOK") as refused:
        config(url_env="HOOK").open()
    assert SECRET not in _told_plainly(refused.value)
    file = tmp_path / "hook"
    file.write_text(url)
    with pytest.raises(ConfigError, match="hook"):
        config(url_file=file).open()


def _told_plainly(error):
    return "\n".join([str(error), repr(error), *traceback.format_exception(error)])


@pytest.mark.slow
@every_http_sink
def test_address_comes_from_environment_or_file(kind, receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", f" {receiver.url}\n")
    (tmp_path / "hook").write_text(f"{receiver.url}\n")
    assert outcome(configured(kind, url_env="HOOK").open()) is None
    keys = {**MORE.get(kind, {}), "url_file": "hook"}
    beside = sink_types()[kind].model_validate(keys, context={"directory": tmp_path})
    assert outcome(beside.open()) is None


@every_http_sink
@pytest.mark.parametrize(
    "keys", [{}, {"url": "http://a/", "url_env": "B"}, {"url_env": "A", "url_file": "b"}]
)
def test_exactly_one_address(kind, keys):
    if not keys and sink_types()[kind].default_address:
        return
    with pytest.raises(ValidationError, match="exactly one of url, url_env and url_file"):
        configured(kind, **keys)


@every_http_sink
def test_a_missing_secret_says_where_it_should_be(kind, tmp_path, monkeypatch):
    config = partial(configured, kind)
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(ConfigError, match="environment variable HOOK is empty or not set"):
        config(url_env="HOOK").open()
    with pytest.raises(ConfigError, match="hook: No such file"):
        config(url_file=tmp_path / "hook").open()
    (tmp_path / "hook").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="hook: not UTF-8"):
        config(url_file=tmp_path / "hook").open()


def suite_of(kind):
    """What the conformance suite needs to know of a type of sink."""
    suite = SinkConformance()
    suite.config = sink_types()[kind]
    address = {"url": "http://a/"} if kind in HTTP_SINKS else {}
    suite.working = lambda _: {**MORE.get(kind, {}), **address}
    return suite


@every_sink
def test_the_configuration_is_that_of_every_sink(kind, tmp_path):
    suite = suite_of(kind)
    suite.test_is_found_by_its_type()
    suite.test_every_key_has_a_description()
    suite.test_a_sink_has_the_name_of_its_table_or_of_its_type(tmp_path)
    suite.test_the_table_says_what_the_sink_gets(tmp_path)


@every_sink
def test_unknown_keys_are_errors(kind):
    suite_of(kind).test_unknown_keys_are_errors()


def test_sinks_without_a_name_get_one():
    terminal = sink_types()["terminal"]
    configs = [terminal(), terminal(name="terminal-2"), terminal(), terminal(name="mine")]
    assert [c.name for c in named(configs)] == ["terminal", "terminal-2", "terminal-3", "mine"]
    with pytest.raises(ValueError, match="two sinks are called mine"):
        named([terminal(name="mine"), terminal(name="mine")])


WITH_SECRETS = [name for name in HTTP_SINKS if sink_types()[name].secrets]


@pytest.mark.parametrize("kind", WITH_SECRETS)
def test_exactly_one_secret_and_a_missing_one_says_where_it_should_be(kind, tmp_path, monkeypatch):
    env, file = sink_types()[kind].secrets
    rest = {key: value for key, value in MORE[kind].items() if key not in (env, file)}
    for keys in ({}, {env: "A", file: "b"}):
        with pytest.raises(ValidationError, match=f"exactly one of {env} and {file}"):
            sink_types()[kind](**rest, **keys)
    monkeypatch.delenv("SINK_SECRET")
    with pytest.raises(ConfigError, match="SINK_SECRET is empty or not set"):
        configured(kind).open()
    (tmp_path / "secret").write_text("from-file\n")
    assert "from-file" not in repr(sink_types()[kind](**rest, **{file: tmp_path / "secret"}).open())


@pytest.mark.slow
@every_http_sink
def test_a_digest_is_one_post(kind, receiver):
    opened(kind, receiver.url).send(digest(30, over=3), NOW)
    (received,) = receiver.received
    assert received.headers["Idempotency-Key"] == "d1gest"


@every_http_sink
@pytest.mark.parametrize("event", Event)
def test_every_event_of_any_run_is_strict_json(kind, event, receiver):
    opened(kind, receiver.url).send(odd(event), NOW)
    json.loads(receiver.received[0].body.decode("utf-8"), parse_constant=pytest.fail)
