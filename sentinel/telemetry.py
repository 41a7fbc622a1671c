"""What sentinel says about itself: log lines on stderr and notices to systemd."""

import logging
import os
import sys
import time

from sdnotify import SystemdNotifier

_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the log lines of sentinel's own modules to stderr, in UTC; other libraries only warn."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("sentinel").setLevel(level)


class ServiceManager:
    """systemd, where sentinel is a ``Type=notify`` service; elsewhere every method does nothing.

    Nor does one that does not speak, for a part on which the service does not depend.
    """

    def __init__(self, *, speaks: bool = True) -> None:
        self._notifier = SystemdNotifier() if speaks and os.environ.get("NOTIFY_SOCKET") else None

    def ready(self) -> None:
        """The logs are being watched."""
        self._tell("READY=1")

    def alive(self, status: str) -> None:
        """A round ended: feed the watchdog; `systemctl status` shows the status."""
        self._tell(f"WATCHDOG=1\nSTATUS={status}")

    def reloading(self, awake: float) -> None:
        """The configuration is being read again, until `ready`. ``awake`` is the clock's time awake."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={int(awake * 1e6)}")

    def stopping(self) -> None:
        """The end is wanted."""
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if self._notifier:
            self._notifier.notify(state)
