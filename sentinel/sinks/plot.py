"""Draws the signals around an incident, for channels that can show a picture.

matplotlib is an extra. Text from runs is drawn literally, never as mathematics.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pydantic import Field

from sentinel.common.errors import ConfigError
from sentinel.common.text import clean_text
from sentinel.incidents.incident import Incident
from sentinel.notifications.decide import SinkPolicy
from sentinel.series.excerpt import Excerpt, Number
from sentinel.sinks.base import Digest, Notification, SinkConfig
from sentinel.sinks.message import message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# inches; the heights are those of panels
_WIDTH = 8.0
_FIRST_HEIGHT = 3.0
_HEIGHT = 1.6
# inches around the panels
_LEFT = 0.95
_RIGHT = 0.15
_TOP = 0.55
_BOTTOM = 0.5
_BETWEEN = 0.15
_LABEL = -0.11  # the place of an axis' name, as a share of a panel's width
_DECADES = 1e3, 1e60  # a positive signal that spans a factor between these has a logarithmic axis
_LARGEST = 1e100  # matplotlib's own arithmetic overflows not far above
_TITLE = 95, 2  # letters of a line, and lines
_DRAWN = range(0x20, 0x250)  # Latin letters; the font lacks many others
_PACKAGE = "plots need a package: pip install '.[plots]'"

drawing = threading.Lock()
"""Held while something is drawn, because matplotlib shares its fonts between threads."""


class PlottingSinkConfig(SinkConfig):
    """A sink that can show a plot."""

    plots: bool = Field(False, description="attach a plot of the signals; needs `pip install '.[plots]'`")

    def policy(self) -> SinkPolicy:
        """Return which incidents the sink wants, and that it shows a plot of them."""
        return replace(super().policy(), plots=self.plots)

    def check_plots(self) -> None:
        """Raise ConfigError if plots are wanted and cannot be drawn."""
        if self.plots and find_spec("matplotlib") is None:
            raise ConfigError([_PACKAGE])


def png(told: Notification | Digest) -> bytes | None:
    """Return the plot of an incident as a PNG; None for a digest, or where nothing is known to draw."""
    if isinstance(told, Digest) or not told.excerpts:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [_FIRST_HEIGHT, *[_HEIGHT] * (len(told.excerpts) - 1)]
    height = _TOP + sum(heights) + _BETWEEN * (len(heights) - 1) + _BOTTOM
    with drawing:
        # Fixed margins: matplotlib's layouts draw everything twice.
        figure = Figure(figsize=(_WIDTH, height), dpi=100)
        panels = figure.subplots(
            len(heights),
            sharex=True,
            squeeze=False,
            gridspec_kw={
                "height_ratios": heights,
                "left": _LEFT / _WIDTH,
                "right": 1 - _RIGHT / _WIDTH,
                "top": 1 - _TOP / height,
                "bottom": _BOTTOM / height,
                "hspace": _BETWEEN * len(heights) / sum(heights),  # of the mean height of a panel
            },
        )[:, 0]
        title = wrap(drawn(message(told).headline, 1000), _TITLE[0], max_lines=_TITLE[1], placeholder="...")
        figure.suptitle("\n".join(title), y=1 - 0.1 / height, va="top", fontsize=10, parse_math=False)
        for panel, excerpt in zip(panels, told.excerpts, strict=True):
            _panel(panel, excerpt, told.incident)
        panels[0].legend(loc="upper left", fontsize=8)
        panels[-1].set_xlabel(f"step of {drawn(message(told).run, 60)}", parse_math=False)
        picture = BytesIO()
        FigureCanvasAgg(figure).print_png(picture)  # type: ignore[no-untyped-call]
        return picture.getvalue()


def _panel(panel: "Axes", excerpt: Excerpt, incident: Incident) -> None:
    if excerpt.low:
        steps, low, high = _known(excerpt.step, excerpt.low, excerpt.high)
        panel.fill_between(steps, low, high, color="tab:blue", alpha=0.15, linewidth=0)
    panel.plot(*_known(excerpt.step, excerpt.mean), color="tab:blue", alpha=0.6, linewidth=1)
    panel.plot(
        *_known(excerpt.last_step, excerpt.last), color="tab:blue", linewidth=0.8, marker=".", markersize=2
    )
    panel.axvline(incident.onset_step, color="tab:orange", linestyle="--", linewidth=1, label="began")
    panel.axvline(incident.fired_step, color="tab:red", linewidth=1, label="found")
    panel.set_ylabel(drawn(excerpt.tag or excerpt.label, 40), fontsize=8, parse_math=False)
    panel.yaxis.set_label_coords(_LABEL, 0.5)
    panel.grid(alpha=0.2)
    values = [value for value in (*excerpt.mean, *excerpt.low, *excerpt.last) if value is not None]
    if values and min(values) > 1 / _LARGEST and _DECADES[0] < max(values) / min(values) < _DECADES[1]:
        panel.set_yscale("log")


def _known(steps: Sequence[int], *columns: Sequence[Number]) -> list[list[Any]]:
    """Return steps and columns without the rows in which a value is missing or cannot be drawn."""
    rows = [
        row
        for row in zip(steps, *columns, strict=True)
        if all(value is not None and abs(value) < _LARGEST for value in row)
    ]
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in (steps, *columns)]


def drawn(text: str, limit: int) -> str:
    """Text from a run with the letters that the font has."""
    return "".join(c if ord(c) in _DRAWN else "?" for c in clean_text(text, limit).replace("…", "..."))
