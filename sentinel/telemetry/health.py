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

    def report(self, component: str, problem: str, awake: float) -> None:
        """Note that a part goes on. ``problem`` says what is wrong with it; empty if nothing is."""
        self._reports[component] = (awake, problem)

    def problems(self, awake: float) -> list[str]:
        """Return one line for each part with a problem; empty if all is well."""
        if not self._reports:
            return ["the watch has not begun to read"]
        problems = []
        for component, (reported_at, problem) in sorted(self._reports.items()):
            if awake - reported_at > SILENT_SECONDS:
                problems.append(f"{component}: reported nothing for {duration_text(awake - reported_at)}")
            elif problem:
                problems.append(f"{component}: {problem}")
        return problems
