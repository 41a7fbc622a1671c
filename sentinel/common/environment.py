"""Variables of the environment that sentinel sets for the libraries that it uses, and a user did not set."""

import os

_defaults: dict[str, str] = {}


def set_default(name: str, value: str) -> None:
    """Set a variable of this process if the user did not."""
    if name not in os.environ:
        _defaults[name] = value
        os.environ[name] = value


def user_environment() -> dict[str, str]:
    """Return the environment without what sentinel set, for a program of the user."""
    return {name: value for name, value in os.environ.items() if _defaults.get(name) != value}
