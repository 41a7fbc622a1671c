"""What is wrong is said once, and what is remembered of that is bounded."""

from sentinel.watch.warn_once import WarnOnce


def test_each_trouble_is_said_once(caplog):
    troubles = WarnOnce()
    assert troubles.latest is None
    for trouble in ("a\x1b[2J", "b", "a\x1b[2J"):
        troubles.warn(trouble)
    assert [message[0] for message in caplog.messages] == ["a", "b"]
    assert "\x1b" not in caplog.text
    assert troubles.latest == "b"


def test_what_was_met_longest_ago_is_forgotten_first(caplog):
    troubles = WarnOnce(limit=2)
    for trouble in ("a", "b", "a", "c", "a", "b"):
        troubles.warn(trouble)
    assert caplog.messages == ["a", "b", "c", "b"]
