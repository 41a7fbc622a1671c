"""Reads a sink's address and signing secret from the environment, a file, or the table itself."""

import os
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from sentinel.common.config_table import ConfigTable, LocalPath
from sentinel.common.errors import ConfigError
from sentinel.sinks.base import SinkConfig


class Addressed(ConfigTable):
    """Something with an address. The address is a secret, because services put their token into it.

    What is always at the same address has a ``default_address``. What has a secret beside the address names
    in ``secrets`` the keys that may hold it.
    """

    default_address: ClassVar[str] = ""
    secrets: ClassVar[tuple[str, ...]] = ()

    url: SecretStr | None = Field(None, description="address to post to")
    url_env: str | None = Field(None, description="environment variable that holds the address")
    url_file: LocalPath | None = Field(None, description="file that holds the address")
    timeout_seconds: float = Field(
        10.0, gt=0, le=60, description="how long to wait for the receiver's answer"
    )

    @model_validator(mode="after")
    def _one_address_and_secret(self) -> Self:
        if not self._is_at_default:
            exactly_one(self, "url", "url_env", "url_file")
        if self.secrets:
            exactly_one(self, *self.secrets)
        if self.url is not None:
            _check_address(self.url, "url")
        return self

    def address(self) -> SecretStr:
        """Return the address to post to. Raises ConfigError if it is missing or not an HTTP address."""
        if self._is_at_default:
            return SecretStr(self.default_address)
        address = self.url or read_secret(self.url_env, self.url_file)
        try:
            return _check_address(address, str(self.url_env or self.url_file or "url"))
        except ValueError as error:
            raise ConfigError([str(error)]) from None

    @property
    def _is_at_default(self) -> bool:
        origins = (self.url, self.url_env, self.url_file)
        return bool(self.default_address) and all(origin is None for origin in origins)


class HttpSinkConfig(Addressed, SinkConfig):
    """A sink with an address."""


def exactly_one(table: BaseModel, *names: str) -> None:
    """Raise ValueError unless the table gives exactly one of these keys."""
    if sum(getattr(table, name) is not None for name in names) != 1:
        *others, last = names
        raise ValueError(f"give exactly one of {', '.join(others)} and {last}")


def read_secret(env: str | None, file: Path | None) -> SecretStr:
    """Return the secret from an environment variable, else from a file, without surrounding white space.

    Raises ConfigError with the name of the variable or file if there is nothing to read.
    """
    if env is not None:
        text = os.environ.get(env, "")
        origin = f"environment variable {env}"
    else:
        origin = str(file)
        try:
            text = Path(origin).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError([f"{origin}: {error.strerror}"]) from None
        except UnicodeDecodeError:
            raise ConfigError([f"{origin}: not UTF-8"]) from None
    if not text.strip():
        raise ConfigError([f"{origin} is empty or not set"])
    return SecretStr(text.strip())


def _check_address(address: SecretStr, origin: str) -> SecretStr:
    """Return the address. Raises ValueError, which names the ``origin``, if it is not one of HTTP."""
    if not _is_http(address.get_secret_value()):
        raise ValueError(f"{origin} does not hold an address such as https://example.org/hook")
    return address


def _is_http(address: str) -> bool:
    import httpx

    try:
        url = httpx.URL(address)
        url.host.encode("idna")  # as the resolver will do
    except (httpx.InvalidURL, UnicodeError):
        return False
    return url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) < 2**16
