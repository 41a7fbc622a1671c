"""Where a server listens."""

import msgspec


class Address(msgspec.Struct, frozen=True):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address in ``PORT``, ``HOST:PORT`` or ``[IPV6]:PORT``.

        A port alone means this machine only. Raises ValueError.
        """
        host, _, port = text.rpartition(":")
        is_port = port.isdecimal() and port.isascii() and int(port) < 2**16
        lacks_brackets = ":" in host and host[0] != "["
        if not is_port or lacks_brackets:
            raise ValueError("should be a port or HOST:PORT, such as 9464 or 0.0.0.0:9464")
        return cls(host.strip("[]") or "127.0.0.1", int(port))
