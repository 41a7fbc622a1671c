"""Receivers that are slow, lead elsewhere, answer without end or refuse, and names that none expects."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from sentinel.incidents.incident import Event
from sentinel.sinks.base import SinkError
from sentinel.sinks.discovery import sink_types
from sentinel.sinks.secrets import HttpSinkConfig
from sentinel.testing.sinks import NOTIFICATION, digest, odd
from studies.hostile.attempt import Attempt, require
from tests.sinks import receiver as answers
from tests.sinks.receiver import Answer, Receiver

AREA = "Sinks"
NOW = 1_767_230_000.0
SECRET = "xoxS3CRET"
TIMEOUT_SECONDS = 0.5
MAX_SECONDS = 30.0  # of a slow receiver on a busy machine
HUGE_BYTES = 64 << 20
MAX_DIGEST = 300
"""Incidents of a digest: far over what any service takes in one message."""

_MORE: dict[str, dict[str, Any]] = {
    "pagerduty": {"routing_key_env": "SINK_SECRET"},
    "slack-bot": {"token_env": "SINK_SECRET", "channel": "C024BE91L"},
    "apprise": {"url": "json://127.0.0.1:9"},
    "command": {"command": ["true"]},
}
_COMMANDS = {
    "slow": ["sleep", "60"],
    "endless output": ["sh", "-c", "yes"],
    "refusal": ["false"],
    "not there": ["/nonexistent/program"],
    "hangs up": ["sh", "-c", "exec 0<&-; exit 0"],
}


def huge(handler: Any, _: Any) -> None:
    """Answer with far more than anybody reads."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(HUGE_BYTES))
    handler.end_headers()
    for _ in range(HUGE_BYTES >> 16):
        handler.wfile.write(bytes(1 << 16))


_ANSWERS: dict[str, Answer] = {
    "slow": answers.hang,
    "slow header": answers.drip_head,
    "slow body": answers.drip_body,
    "redirect": answers.status(302, "", Location="http://169.254.169.254/latest"),
    "huge answer": huge,
    "refusal": answers.status(403, "no"),
    "no HTTP": answers.garbage,
    "hangs up": answers.close,
    "absurd pause": answers.status(429, "", Retry_After="9" * 400),
}


def attempts() -> Iterator[Attempt]:
    """Yield each sink with each answer, and with each odd message."""
    for kind, config in sink_types().items():
        if issubclass(config, HttpSinkConfig):
            for harm, answer in _ANSWERS.items():
                yield Attempt(AREA, kind, harm, partial(_answered, kind, answer))
        if kind == "command":
            for harm, command in _COMMANDS.items():
                yield Attempt(AREA, kind, harm, partial(_commanded, command))
        yield Attempt(AREA, kind, "hostile names", partial(_odd, kind, lambda: odd(Event.FIRING)))
        yield Attempt(AREA, kind, "a digest of 300", partial(_odd, kind, lambda: digest(MAX_DIGEST)))


def _answered(kind: str, answer: Answer, _: Path) -> None:
    with Receiver() as receiver:
        receiver.default = answer
        _sent(_opened(kind, url=receiver.url), NOTIFICATION)
        require(len(receiver.received) <= 1, "it was sent more than once")


def _commanded(command: list[str], _: Path) -> None:
    _sent(_opened("command", command=command), NOTIFICATION)


def _odd(kind: str, message: Callable[[], Any], _: Path) -> None:
    with Receiver() as receiver:
        keys = {"url": receiver.url} if issubclass(sink_types()[kind], HttpSinkConfig) else {}
        _sent(_opened(kind, **keys), message())
        for request in receiver.received:
            request.body.decode("utf-8")


def _opened(kind: str, **keys: Any) -> Any:
    os.environ["SINK_SECRET"] = SECRET
    config = sink_types()[kind]
    known = {"timeout_seconds": TIMEOUT_SECONDS} if "timeout_seconds" in config.model_fields else {}
    return config(**{**_MORE.get(kind, {}), **known, **keys}).open()


def _sent(sink: Any, message: Any) -> None:
    """Send a message. It ends soon, with no other error than that of a sink, which tells no secret."""
    begin = monotonic()
    out = io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(out):
            sink.send(message, NOW)
    except SinkError as error:
        require(SECRET not in str(error), "the error tells a secret")
    require(monotonic() - begin < MAX_SECONDS, "it waits for too long")
    require(not {"\x00", "\udcff"} & {*out.getvalue()}, "its names reach the terminal")
