"""Receivers that are named on the command line by their address alone."""

import pytest

from sentinel.common.errors import ConfigError, SentinelError
from sentinel.sinks.addresses import sink_at


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "type_"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "slack"),
        ("https://example.org/hook", "webhook"),
        ("http://127.0.0.1:8080/hook", "webhook"),
        ("https://discord.com/api/webhooks/1/x", "apprise"),
        ("ntfy://topic", "apprise"),
        ("mailto://user:password@example.org", "apprise"),
    ],
)
def test_the_address_tells_the_kind_of_sink(address, type_):
    sink = sink_at(address)
    assert sink.type == type_
    sink.open()


@pytest.mark.parametrize("address", ["secret-topic", "http:///secret", "https://"])
def test_what_is_no_address_is_refused_and_not_repeated(address):
    with pytest.raises(SentinelError, match="--notify") as refused:
        sink_at(address).open()
    assert "secret" not in str(refused.value)


@pytest.mark.slow
def test_a_service_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="does not hold an address that Apprise knows"):
        sink_at("nonsense://secret").open()
