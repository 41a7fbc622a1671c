"""The sink that fits an address, for addresses that are given without a table of the configuration."""

from pydantic import SecretStr, ValidationError

from sentinel.common.errors import SentinelError
from sentinel.sinks.apprise import AppriseConfig
from sentinel.sinks.base import SinkConfig
from sentinel.sinks.slack import SlackConfig
from sentinel.sinks.webhook import WebhookConfig

_SLACK = "https://hooks.slack.com/"
_DISCORD = ("https://discord.com/api/webhooks/", "https://discordapp.com/api/webhooks/")


def sink_at(address: str) -> SinkConfig:
    """Slack for its incoming webhooks, Apprise for those of Discord and for what it knows, else a webhook.

    Raises SentinelError for a text that is no address. The error does not hold the text, because services
    put their token into it.
    """
    url = SecretStr(address)
    if "://" not in address:
        raise SentinelError("--notify needs an address, such as https://example.org/hook or mailto://…")
    if not address.startswith(("http://", "https://")) or address.startswith(_DISCORD):
        return AppriseConfig(url=url)
    try:
        return SlackConfig(url=url) if address.startswith(_SLACK) else WebhookConfig(url=url)
    except ValidationError:
        raise SentinelError("--notify holds an HTTP address that cannot be read") from None
