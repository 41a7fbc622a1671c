"""Whether the parts of a watch still read and record."""

from sentinel.common.text import duration_text

SILENT_SECONDS = 300.0
"""A part that reports nothing for so long hangs; the watchdog of the systemd unit uses the same time."""


class Health:
    """What the parts of a watch reported last. All times are times awake."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, str]] = {}

    def begin(self) -> None:
        """Forget the parts of an earlier configuration."""
        self._reports.clear()

    def report(self, part: str, trouble: str, awake: float) -> None:
        """Note that a part goes on. ``trouble`` says what is wrong with it; empty if nothing is."""
        self._reports[part] = (awake, trouble)

    def problems(self, awake: float) -> list[str]:
        """Return one line for each part that is not well. Empty if all is well."""
        if not self._reports:
            return ["the watch has not begun to read"]
        problems = []
        for part, (at, trouble) in sorted(self._reports.items()):
            if awake - at > SILENT_SECONDS:
                problems.append(f"{part}: reported nothing for {duration_text(awake - at)}")
            elif trouble:
                problems.append(f"{part}: {trouble}")
        return problems
