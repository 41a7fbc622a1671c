"""Draws the picture of the docs page about probes: `python -m studies.silent.picture LOG PICTURE`.

LOG is the directory that the training of that page wrote.
"""

import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import sentinel

SHOWN = {"train/loss": "train/loss", "grad/carried_over": "grad/carried_over\n(norm left / norm of the step)"}


def draw(log: Path, picture: Path) -> None:
    """Draw what metrics show of the training, and below it what the probe shows."""
    points = sentinel.replay(log).points()
    figure = Figure(figsize=(8.0, 3.6), dpi=100, layout="constrained")
    for axes, (tag, label) in zip(figure.subplots(len(SHOWN), sharex=True), SHOWN.items(), strict=True):
        curve = points.filter(tag=tag)
        axes.plot(curve["step"].to_numpy(), curve["value"].to_numpy(), linewidth=1.2)
        axes.set_yscale("log")
        axes.set_ylabel(label, fontsize=8)
        axes.grid(alpha=0.3)
    axes.set_xlabel("step")
    FigureCanvasAgg(figure).print_png(picture)


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:3]))
