"""Draws a signal of a run, with the beginnings of its incidents."""

from io import BytesIO
from itertools import groupby

from sentinel.common.errors import SentinelError
from sentinel.common.text import clean_text
from sentinel.replays.judged import JudgedRun
from sentinel.sinks.plot import drawing, drawn

_SIZE_INCHES = 8.0, 4.0
_MAX_CURVES_PLOTTED = 8  # tags of one signal
_MAX_MAGNITUDE = 1e100  # matplotlib's own arithmetic overflows not far above


def tags_of(run: JudgedRun, signal: str) -> list[str]:
    """Return the tags of a signal, or the one tag of this name. Raises SentinelError if the run logs none."""
    signals = run.run_pipeline.log.understanding().signals
    curves = run.curves.of if run.curves else {}
    names = dict.fromkeys([*signals.get(signal, ()), signal])
    tags = [tag for tag in names if tag in curves][:_MAX_CURVES_PLOTTED]
    if not tags:
        available = ", ".join(signals) or "none"
        raise SentinelError(
            f"the run logs no {clean_text(signal, 60)!r}; the signals that it logs: {available}"
        )
    return tags


def png(run: JudgedRun, signal: str) -> bytes:
    """Return all tags of a signal, or one tag, over the steps. Raises SentinelError if the run logs none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tags = tags_of(run, signal)
    curves = run.curves.of if run.curves else {}
    with drawing:
        figure = Figure(figsize=_SIZE_INCHES, dpi=100, layout="tight")
        axes = figure.subplots()
        for number, tag in enumerate(tags):
            for attempt, points in groupby(curves[tag].points(), key=lambda point: point.attempt):
                rows = [(point.step, point.value) for point in points if abs(point.value) < _MAX_MAGNITUDE]
                steps = [step for step, _ in rows]
                values = [value for _, value in rows]
                label = None if attempt else drawn(tag, 60)
                axes.plot(steps, values, color=f"C{number}", linewidth=1, label=label)
        for incident in run.own:
            axes.axvline(
                incident.onset_step, color="tab:red", linestyle="--", linewidth=1, label=incident.detector
            )
        for text in axes.legend(fontsize=8).get_texts():
            text.set_parse_math(False)
        axes.set_xlabel("step")
        axes.grid(alpha=0.2)
        axes.set_title(drawn(run.run_pipeline.log.name, 90), fontsize=10, parse_math=False)
        picture = BytesIO()
        FigureCanvasAgg(figure).print_png(picture)  # type: ignore[no-untyped-call]
        return picture.getvalue()
