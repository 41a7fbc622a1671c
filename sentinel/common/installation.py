"""How this installation of sentinel gets an extra: messages name the command that works here."""

import json
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sentinel.common.paths import is_file

_PACKAGE = "training-sentinel"


def install(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    prefix = Path(sys.prefix)
    return command(extra, origin(), prefix, has_pip=find_spec("pip") is not None)


def command(extra: str, source: str, prefix: Path, *, has_pip: bool) -> str:
    """Return the command that installs sentinel from a ``source`` with an extra into an environment."""
    package = shlex.quote(f"{_PACKAGE}[{extra}]{source}")
    if is_file(prefix / "uv-receipt.toml"):
        return f"uv tool install {package}"
    if {"archive-v0", "environments-v2"} & {*prefix.parts}:
        return f"uvx --from {package} sentinel"
    python = shlex.quote(str(prefix / "bin" / "python"))
    return f"{python} -m pip install {package}" if has_pip else f"uv pip install --python {python} {package}"


def origin() -> str:
    """Return from where sentinel was installed, as a requirement says it; empty for a package index."""
    try:
        text = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:  # a checkout that is only on the path
        return f" @ {Path(__file__).parents[2].as_uri()}"
    return _direct(json.loads(text)) if text else ""


def _direct(recorded: Mapping[str, Any]) -> str:
    """Return a direct origin as PEP 610 records it, as a requirement of PEP 508 says it."""
    version_control = recorded.get("vcs_info")
    scheme = f"{version_control['vcs']}+" if version_control else ""
    revision = version_control.get("requested_revision") if version_control else None
    return f" @ {scheme}{recorded['url']}{f'@{revision}' if revision else ''}"
