"""Draws the signals around an incident, for channels that can show a picture.

matplotlib is an extra. Text from runs is drawn literally, never as mathematics.
"""

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pydantic import Field

from sentinel.common.errors import ConfigError
from sentinel.common.installation import install
from sentinel.common.text import clean_text
from sentinel.incidents.incident import Incident
from sentinel.notifications.decide import SinkPolicy
from sentinel.series.excerpt import Excerpt, Number
from sentinel.sinks.base import Digest, Notification, SinkConfig
from sentinel.sinks.message import message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLOT_WIDTH = 8.0  # inches, of the picture
_FIRST_PANEL_HEIGHT = 3.0  # inches
_PANEL_HEIGHT = 1.6  # inches, of each further panel
_LEFT_MARGIN = 0.95  # inches, around the panels
_RIGHT_MARGIN = 0.15  # inches
_TOP_MARGIN = 0.55  # inches
_BOTTOM_MARGIN = 0.5  # inches
_AXIS_GAP = 0.15  # inches, between two panels
_LABEL_POSITION = -0.11  # of an axis' name, in widths of a panel
_LOGARITHMIC_SPANS = 1e3, 1e60  # a positive signal that spans such a factor has a logarithmic axis
_MAX_PLOTTED_VALUE = 1e100  # matplotlib's own arithmetic overflows not far above
_TITLE_CHARACTERS = 95  # of a line
_TITLE_LINES = 2
_FONT_CHARACTERS = range(0x20, 0x250)  # Latin letters; the font lacks many others

drawing = threading.Lock()
"""Held while something is drawn, because matplotlib shares its fonts between threads."""


class PlottingSinkConfig(SinkConfig):
    """A sink that can show a plot."""

    plots: bool = Field(False, description="attach a plot of the signals; needs the extra `plots`")

    def policy(self) -> SinkPolicy:
        """Return which incidents the sink gets, and that it shows a plot of them."""
        return replace(super().policy(), plots=self.plots)

    def check_plots(self) -> None:
        """Raise ConfigError if plots are configured and cannot be drawn."""
        if self.plots and find_spec("matplotlib") is None:
            raise ConfigError([f"plots need a package: {install('plots')}"])


def png(notification: Notification | Digest) -> bytes | None:
    """Return the plot of an incident as a PNG; None for a digest, or where there is nothing to draw."""
    if isinstance(notification, Digest) or not notification.excerpts:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    content = message(notification)
    heights = [_FIRST_PANEL_HEIGHT, *[_PANEL_HEIGHT] * (len(notification.excerpts) - 1)]
    height = _TOP_MARGIN + sum(heights) + _AXIS_GAP * (len(heights) - 1) + _BOTTOM_MARGIN
    with drawing:
        # Fixed margins: matplotlib's layouts draw everything twice.
        figure = Figure(figsize=(_PLOT_WIDTH, height), dpi=100)
        panels = figure.subplots(
            len(heights),
            sharex=True,
            squeeze=False,
            gridspec_kw={
                "height_ratios": heights,
                "left": _LEFT_MARGIN / _PLOT_WIDTH,
                "right": 1 - _RIGHT_MARGIN / _PLOT_WIDTH,
                "top": 1 - _TOP_MARGIN / height,
                "bottom": _BOTTOM_MARGIN / height,
                "hspace": _AXIS_GAP * len(heights) / sum(heights),  # of the mean height of a panel
            },
        )[:, 0]
        headline = drawn(content.headline, 1000)
        title = wrap(headline, _TITLE_CHARACTERS, max_lines=_TITLE_LINES, placeholder="...")
        figure.suptitle("\n".join(title), y=1 - 0.1 / height, va="top", fontsize=10, parse_math=False)
        for panel, excerpt in zip(panels, notification.excerpts, strict=True):
            _draw_panel(panel, excerpt, notification.incident)
        panels[0].legend(loc="upper left", fontsize=8)
        panels[-1].set_xlabel(f"step of {drawn(content.run, 60)}", parse_math=False)
        picture = BytesIO()
        FigureCanvasAgg(figure).print_png(picture)  # type: ignore[no-untyped-call]
        return picture.getvalue()


def _draw_panel(panel: "Axes", excerpt: Excerpt, incident: Incident) -> None:
    if excerpt.low:
        steps, low, high = _drawable(excerpt.step, excerpt.low, excerpt.high)
        panel.fill_between(steps, low, high, color="tab:blue", alpha=0.15, linewidth=0)
    panel.plot(*_drawable(excerpt.step, excerpt.mean), color="tab:blue", alpha=0.6, linewidth=1)
    newest = _drawable(excerpt.last_step, excerpt.last)
    panel.plot(*newest, color="tab:blue", linewidth=0.8, marker=".", markersize=2)
    panel.axvline(incident.onset_step, color="tab:orange", linestyle="--", linewidth=1, label="began")
    panel.axvline(incident.fired_step, color="tab:red", linewidth=1, label="found")
    panel.set_ylabel(drawn(excerpt.tag or excerpt.label, 40), fontsize=8, parse_math=False)
    panel.yaxis.set_label_coords(_LABEL_POSITION, 0.5)
    panel.grid(alpha=0.2)
    values = [value for value in (*excerpt.mean, *excerpt.low, *excerpt.last) if value is not None]
    if values and min(values) > 1 / _MAX_PLOTTED_VALUE:
        shortest, longest = _LOGARITHMIC_SPANS
        if shortest < max(values) / min(values) < longest:
            panel.set_yscale("log")


def _drawable(steps: Sequence[int], *columns: Sequence[Number]) -> list[list[Any]]:
    """Return steps and columns without the rows in which a value is missing or cannot be drawn."""
    rows = [
        row
        for row in zip(steps, *columns, strict=True)
        if all(value is not None and abs(value) < _MAX_PLOTTED_VALUE for value in row)
    ]
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in (steps, *columns)]


def drawn(text: str, limit: int) -> str:
    """Return text from a run with a question mark for each letter that the font lacks."""
    letters = clean_text(text, limit).replace("…", "...")
    return "".join(letter if ord(letter) in _FONT_CHARACTERS else "?" for letter in letters)
