"""Notifications through Apprise, which speaks to Discord, Telegram, ntfy, Teams, mail and a hundred others.

Apprise itself says only that a service did not take a message. Its log says why, but may hold addresses, so
nothing but the status is read from it.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from pydantic import Field, SecretStr

from sentinel.common.config_table import LocalPath
from sentinel.common.errors import ConfigError
from sentinel.common.installation import install
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Event
from sentinel.sinks.base import Digest, Notification, Permanent, SinkError, Transient
from sentinel.sinks.http import is_passing
from sentinel.sinks.message import body, inert, subject, text
from sentinel.sinks.plot import PlottingSinkConfig, png
from sentinel.sinks.secrets import ADDRESS_KEYS, exactly_one, read_secret

if TYPE_CHECKING:
    from apprise import Apprise, AppriseAttachment

_COMMANDS = ("More: sentinel ", "Acknowledge: sentinel ")
_ERROR_STATUS = lazy_pattern(r"\berror=(\d{3})\b")

_PUBLIC_TOPIC = lazy_pattern(
    r"ntfys?://(?:ntfy\.sh/)?[^/@:]+/?(?:\?.*)?$", re.IGNORECASE
)  # on the public server

_sink_log = logging.getLogger(__name__)
_log = logging.getLogger("apprise")
_log.propagate = False
_log.addHandler(logging.NullHandler())


class AppriseSink(msgspec.Struct, frozen=True):
    """Sends to the service at ``address``."""

    name: str
    address: SecretStr
    timeout_seconds: float
    plots: bool

    def send(self, message: Notification | Digest, now: float) -> None:  # noqa: ARG002 - the contract
        """Send once. Raises Transient, or Permanent if the service's status says that a retry cannot help."""
        log_lines: list[str] = []
        notifier = _notifier(self.address)
        title = inert(subject(message))
        is_whole = all(
            service.title_maxlen <= 0 or len(title) <= service.title_maxlen for service in notifier
        )
        own_links = (message.link,) if isinstance(message, Notification) else ()
        delivered = notifier.notify(
            body=_inert(body(message) if is_whole else text(message), own_links),
            title=title,
            notify_type=_apprise_kind(message),
            body_format="text",
            attach=_attachment(png(message) if self.plots else None),
            timeout=self.timeout_seconds,
            log_callback=lambda entry, _: log_lines.append(entry.message),
            log_level=logging.WARNING,
        )
        if not delivered:
            raise _error(log_lines)


class AppriseConfig(PlottingSinkConfig):
    """`type = "apprise"`."""

    type: Literal["apprise"] = Field(
        "apprise", description="send through Apprise to Discord, Telegram, ntfy, Teams, mail and many others"
    )
    url: SecretStr | None = Field(None, description="address of the service, as Apprise writes it")
    url_env: str | None = Field(None, description="environment variable that holds the address")
    url_file: LocalPath | None = Field(None, description="file that holds the address")
    timeout_seconds: float = Field(30.0, gt=0, le=60, description="how long to wait for the service")

    @classmethod
    def mistakes_between(cls, table: Mapping[str, Any]) -> Iterator[str]:
        """Yield that the address is missing, or is named twice."""
        yield from exactly_one(table, *ADDRESS_KEYS)

    def open(self) -> AppriseSink:
        """Return the sink. Raises ConfigError if Apprise is missing or does not know the address."""
        self.check_plots()
        address = self.url or read_secret(self.url_env, self.url_file)
        if not len(_notifier(address)):
            origin = self.url_env or self.url_file or "url"
            raise ConfigError([f"{origin} does not hold an address that Apprise knows, such as ntfy://topic"])
        name = self.name or self.type
        if _PUBLIC_TOPIC.match(address.get_secret_value()):
            _sink_log.warning(
                "sink %s: a topic of ntfy is public, and whoever guesses it reads the alerts", name
            )
        return AppriseSink(name, address, self.timeout_seconds, self.plots)


def _inert(words: str, own_links: Sequence[str]) -> str:
    """Return inert text, but for the lines that are our ``own_links``, and the commands."""
    return "\n".join(
        line if line in own_links or line.startswith(_COMMANDS) else inert(line) for line in words.split("\n")
    )


def _error(log_lines: Sequence[str]) -> SinkError:
    """Return what Apprise's log says of the service's answer."""
    statuses = [int(match[1]) for match in map(_ERROR_STATUS.search, log_lines) if match]
    if not statuses:
        return Transient("the service did not take the message")
    return (Transient if is_passing(statuses[-1]) else Permanent)(f"the service answered {statuses[-1]}")


def _notifier(address: SecretStr) -> "Apprise":
    """Return Apprise with the address; with none if it does not know such addresses."""
    try:
        from apprise import Apprise, AppriseAsset, OverflowMode
    except ImportError:
        raise ConfigError([f"the sink apprise needs a package: {install('apprise')}"]) from None
    # A redirect would send the token elsewhere. Nothing is kept on the disk.
    asset = AppriseAsset(http_redirects=False, storage_mode="memory", async_mode=False)
    notifier = Apprise(asset=asset)
    notifier.add(address.get_secret_value())
    for service in notifier:
        if service.overflow_mode is OverflowMode.UPSTREAM:  # which sends what the service refuses as too long
            service.overflow_mode = OverflowMode.SPLIT
    return notifier


def _attachment(picture: bytes | None) -> "AppriseAttachment | None":
    from apprise import AppriseAttachment
    from apprise.attachment.memory import AttachMemory

    if picture is None:
        return None
    attachment = AppriseAttachment()
    file = AttachMemory(content=picture, name="signals.png", mimetype="image/png")  # type: ignore[no-untyped-call]
    attachment.add(file)
    return attachment


def _apprise_kind(message: Notification | Digest) -> str:
    """Return one of Apprise's kinds, which services show as a colour or a picture."""
    if isinstance(message, Digest):
        return "warning"
    if message.event is Event.RESOLVED:
        return "success"
    return {Severity.CRITICAL: "failure", Severity.WARNING: "warning"}.get(message.incident.severity, "info")
