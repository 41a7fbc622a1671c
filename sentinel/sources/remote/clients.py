"""The client libraries of each scheme: how to connect with them, and what their errors mean."""

import asyncio
import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from sentinel.sources.location import Url
from sentinel.sources.readers.retry import NO_ANSWER

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "hf": "huggingface_hub", "ssh": "sshfs"}

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "hf": {"block_size": 1},  # bytes that it reads ahead
    "ssh": {"known_hosts": (), "keepalive_interval": 15},  # (): the user's own file; sshfs trusts any host
}


def connect(url: Url) -> tuple[Any, str]:
    """Return the fsspec file system, and the path in it. Raises the errors of the library."""
    import fsspec

    # The library logs what it also raises; one message is enough.
    logging.getLogger(PACKAGES[url.scheme]).setLevel(logging.CRITICAL)
    if url.scheme == "ssh":
        fsspec.register_implementation("ssh", _ssh(), clobber=True)
    system, path = fsspec.url_to_fs(str(url), skip_instance_cache=True, **_OPTIONS.get(url.scheme, {}))
    return system, path


@cache
def _ssh() -> type:
    """Return sshfs' file system, changed to read parts of files and to survive a closed directory."""
    import fsspec

    class RangesOverSsh(fsspec.get_filesystem_class("ssh")):  # type: ignore[misc]
        async def _cat_file(self, path: str, start: int, end: int) -> bytes:
            async with self._pool.get() as channel, channel.open(path, "rb") as file:
                data: bytes = await file.read(end - start, start)
                return data

        async def _find(self, path: str, **_: Any) -> dict[str, Any]:
            """Return the files at and below a path; links are not followed."""
            files = {}

            async def scan(directory: str) -> None:
                entries = await self._ls(directory)
                files.update({entry["name"]: entry for entry in entries if entry["type"] == "file"})
                below = [entry["name"] for entry in entries if entry["type"] == "directory"]
                await asyncio.gather(*map(scan_if_possible, below))

            async def scan_if_possible(directory: str) -> None:
                try:
                    await scan(directory)
                except Exception as error:
                    if not isinstance(error, FileNotFoundError) and not _is_denial(error):
                        raise

            top = await self._info(path)
            if top["type"] == "file":
                return {path: top}
            await scan(path)
            return files

    return RangesOverSsh


def reason(error: Exception) -> str:
    """Return the reason of an error in our own words. A client's own text may hold a signed address."""
    name = type(error).__name__
    if isinstance(error, FileNotFoundError):
        return "no log lies there, or none that may be seen"
    if name == "HostKeyNotVerifiable":
        return "the host's key is not known or another one; connect with ssh once and compare it"
    if _is_denial(error):
        return "access is denied; see whether the usual tools of this machine may read it"
    return f"{NO_ANSWER} ({name})"


def _is_denial(error: Exception) -> bool:
    """Return whether access was denied, by the type of the error, its HTTP status or gcsfs's text."""
    status = getattr(error, "code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return (
        isinstance(error, PermissionError)
        or any(word in type(error).__name__ for word in ("Credentials", "PermissionDenied"))
        or status in (401, 403)
        or str(error).startswith("Forbidden: ")
    )
