"""Servers on loopback for what `sentinel.sources.remote` reads: what all have in common, and SSH."""

import asyncio
import os
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import asyncssh
import pytest
from fsspec.asyn import get_loop

SECRET = "s3cr3t"


class Server:
    """Keeps files below ``address`` for whoever comes with ``environment``, as long as that is ``welcome``.

    ``fetched`` has the name, first byte and end of each range that was asked for. ``directory`` is for what
    is needed on disk. A new one serves already.
    """

    address: str
    elsewhere: str
    """A place like the address, where nothing ever was."""
    environment: Mapping[str, str]
    tells_times = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.welcome = True
        self.fetched: list[tuple[str, int, int]] = []

    def lead_here(self, patch: pytest.MonkeyPatch) -> None:
        """Let the clients of this process find the server as those of a new one would."""
        for name, value in self.environment.items():
            patch.setenv(name, value)

    def extent(self) -> tuple[int, int] | None:
        """The first byte and the end of what was fetched since the last call, each byte once."""
        ranges = sorted((begin, end) for _, begin, end in self.fetched if end > begin)
        self.fetched.clear()
        assert all(end == begin for (_, end), (begin, _) in pairwise(ranges))
        return (ranges[0][0], ranges[-1][1]) if ranges else None

    def write(self, name: str, data: bytes) -> None: ...

    def remove(self, name: str) -> None: ...

    def start(self) -> None:
        """Serve again what was there, at the same port."""

    def stop(self) -> None:
        """Hang up on everybody, and answer nobody."""


class SshServer(Server):
    """Asyncssh, for a host that ``~/.ssh/config`` gives a name."""

    address = "ssh://cluster/runs"
    elsewhere = "ssh://cluster/nothing"

    def __init__(self, directory):
        super().__init__(directory)
        self.files = directory / "files"
        home = directory / "home"
        self._key, client_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        self._login = ("somebody", client_key.convert_to_public())
        self._connections: list[asyncssh.SSHServerConnection] = []
        self._time = time.time()
        self._port = 0
        self.users: set[str] = set()
        self.start()
        (home / ".ssh").mkdir(parents=True)
        client_key.write_private_key(home / ".ssh/id_ed25519")
        self.known_hosts = home / ".ssh/known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self._port} {self._key.export_public_key().decode()}")
        host = f"Host cluster\n HostName 127.0.0.1\n Port {self._port}\n User somebody\n"
        (home / ".ssh/config").write_text(host)
        self.environment = {"HOME": str(home), "SSH_AUTH_SOCK": ""}

    def start(self):
        self._do(self._listen())

    def stop(self):
        self._do(self._hang_up())

    def write(self, name, data):
        path = self.files / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self._time += 1  # SFTP tells whole seconds
        os.utime(path, (self._time, self._time))

    def remove(self, name):
        (self.files / "runs" / name).unlink()

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, get_loop()).result()

    async def _listen(self):
        place = self

        class Login(asyncssh.SSHServer):
            def connection_made(self, connection):
                place._connections.append(connection)

            def begin_auth(self, username):
                place.users.add(username)
                return True

            def public_key_auth_supported(self):
                return True

            def validate_public_key(self, username, key):
                return place.welcome and (username, key) == place._login

        class Sftp(asyncssh.SFTPServer):
            def __init__(self, channel):
                super().__init__(channel, chroot=str(place.files))

            def scandir(self, path):
                if path.endswith(b"/private"):
                    raise asyncssh.SFTPPermissionDenied(SECRET)
                return super().scandir(path)

            def read(self, file, offset, size):
                place.fetched.append((file.name.decode().partition("runs/")[2], offset, offset + size))
                return super().read(file, offset, size)

        self._listener = await asyncssh.create_server(
            Login, "127.0.0.1", self._port, server_host_keys=[self._key], sftp_factory=Sftp
        )
        self._port = self._listener.get_port()

    async def _hang_up(self):
        self._listener.close()
        for connection in self._connections:
            connection.abort()
        self._connections.clear()
        await self._listener.wait_closed()  # from Python 3.12 on, for the connections, too
