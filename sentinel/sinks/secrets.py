"""Reads a sink's address and signing secret from the environment, a file, or the table itself."""

import os
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from sentinel.config.table import LocalPath, Table
from sentinel.errors import ConfigError
from sentinel.sinks.base import SinkConfig


class Addressed(Table):
    """Something with an address. The address is a secret, because services put their token into it."""

    url: SecretStr | None = Field(None, description="address to post to")
    url_env: str | None = Field(None, description="environment variable that holds the address")
    url_file: LocalPath | None = Field(None, description="file that holds the address")
    timeout_seconds: float = Field(
        10.0, gt=0, le=60, description="how long to wait for the receiver's answer"
    )

    @model_validator(mode="after")
    def _exactly_one_address(self) -> Self:
        if sum(source is not None for source in (self.url, self.url_env, self.url_file)) != 1:
            raise ValueError("give exactly one of url, url_env and url_file")
        if self.url is not None:
            _checked_address(self.url, "url")
        return self

    def address(self) -> SecretStr:
        """The address to post to. Raises ConfigError if it is missing or not an HTTP address."""
        found = self.url or read_secret(self.url_env, self.url_file)
        try:
            return _checked_address(found, str(self.url_env or self.url_file or "url"))
        except ValueError as error:
            raise ConfigError([str(error)]) from None


class HttpSinkConfig(Addressed, SinkConfig):
    """A sink with an address."""


def read_secret(env: str | None, file: Path | None) -> SecretStr:
    """The secret from an environment variable, else from a file, without surrounding white space.

    Raises ConfigError with the name of the variable or file if there is nothing to read.
    """
    if env is not None:
        text, place = os.environ.get(env, ""), f"environment variable {env}"
    else:
        place = str(file)
        try:
            text = Path(place).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError([f"{place}: {error.strerror}"]) from None
        except UnicodeDecodeError:
            raise ConfigError([f"{place}: not UTF-8"]) from None
    if not text.strip():
        raise ConfigError([f"{place} is empty or not set"])
    return SecretStr(text.strip())


def _checked_address(address: SecretStr, place: str) -> SecretStr:
    if not _is_http(address.get_secret_value()):
        raise ValueError(f"{place} does not hold an address such as https://example.org/hook")
    return address


def _is_http(address: str) -> bool:
    import httpx

    try:
        url = httpx.URL(address)
        url.host.encode("idna")  # as the resolver will do
    except (httpx.InvalidURL, UnicodeError):
        return False
    return url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) < 2**16
