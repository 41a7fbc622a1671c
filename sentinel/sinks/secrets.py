"""Reads a sink's address and signing secret from the environment, a file, or the table itself."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from sentinel.common.config_table import JointlyChecked, LocalPath
from sentinel.common.errors import ConfigError
from sentinel.sinks.base import SinkConfig


def _is_address(address: SecretStr) -> SecretStr:
    if not _is_http(address.get_secret_value()):
        raise ValueError("should be an address such as https://example.org/hook")
    return address


ADDRESS_KEYS = ("url", "url_env", "url_file")
"""The keys of a table that may hold its address."""


class Addressed(JointlyChecked):
    """Something with an address. The address is a secret, because services put their token into it.

    What is always at the same address has a ``default_address``. What has a secret beside the address names
    in ``secrets`` the keys that may hold it.
    """

    default_address: ClassVar[str] = ""
    secrets: ClassVar[tuple[str, ...]] = ()

    url: Annotated[SecretStr, AfterValidator(_is_address)] | None = Field(
        None, description="address to post to"
    )
    url_env: str | None = Field(None, description="environment variable that holds the address")
    url_file: LocalPath | None = Field(None, description="file that holds the address")
    timeout_seconds: float = Field(
        10.0, gt=0, le=60, description="how long to wait for the receiver's answer"
    )

    @classmethod
    def mistakes_between(cls, table: Mapping[str, Any]) -> Iterator[str]:
        """Yield that an address or a secret is missing, or is named twice."""
        if not cls.default_address or any(key in table for key in ADDRESS_KEYS):
            yield from exactly_one(table, *ADDRESS_KEYS)
        if cls.secrets:
            yield from exactly_one(table, *cls.secrets)

    def address(self) -> SecretStr:
        """Return the address to post to. Raises ConfigError if it is missing or not an HTTP address."""
        if self.default_address and self.url is None and self.url_env is None and self.url_file is None:
            return SecretStr(self.default_address)
        if self.url is not None:
            return self.url
        address = read_secret(self.url_env, self.url_file)
        if not _is_http(address.get_secret_value()):
            origin = self.url_env or self.url_file
            raise ConfigError([f"{origin} does not hold an address such as https://example.org/hook"])
        return address


class HttpSinkConfig(Addressed, SinkConfig):
    """A sink with an address."""


def exactly_one(table: Mapping[str, Any], *names: str) -> Iterator[str]:
    """Yield a mistake unless the table gives exactly one of these keys."""
    if sum(table.get(name) is not None for name in names) != 1:
        *others, last = names
        yield f"give exactly one of {', '.join(others)} and {last}"


def check_all(*needs: Callable[[], object]) -> None:
    """Call all of them. Raises ConfigError with the problems of those that raise one."""
    problems: list[str] = []
    for need in needs:
        try:
            need()
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)


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


def _is_http(address: str) -> bool:
    import httpx

    try:
        url = httpx.URL(address)
        url.host.encode("idna")  # as the resolver will do
    except (httpx.InvalidURL, UnicodeError):
        return False
    return url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) < 2**16
