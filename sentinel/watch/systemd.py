"""What a watch reports to systemd."""

import os

from sdnotify import SystemdNotifier

from sentinel.telemetry.health import Health


class ServiceManager:
    """Notifies systemd if sentinel is a ``Type=notify`` service, and keeps the health of the watch.

    With ``notifies=False`` systemd is not notified.
    """

    def __init__(self, *, notifies: bool = True) -> None:
        self.health = Health()
        self._notifier = SystemdNotifier() if notifies and os.environ.get("NOTIFY_SOCKET") else None

    def without_systemd(self) -> "ServiceManager":
        """Return one with the same health for a part whose delays must not starve the watchdog."""
        service = ServiceManager(notifies=False)
        service.health = self.health
        return service

    def ready(self) -> None:
        """Report that the watch has begun."""
        self._notify("READY=1")

    def alive(self, status: str) -> None:
        """Feed the watchdog; `systemctl status` shows ``status``."""
        self._notify(f"WATCHDOG=1\nSTATUS={status}")

    def reloading(self, awake: float) -> None:
        """Report a reload, which lasts until `ready`. ``awake`` is the clock's time awake in seconds."""
        self._notify(f"RELOADING=1\nMONOTONIC_USEC={int(awake * 1e6)}")

    def stopping(self) -> None:
        """Report that the service is stopping."""
        self._notify("STOPPING=1")

    def _notify(self, state: str) -> None:
        if self._notifier:
            self._notifier.notify(state)
