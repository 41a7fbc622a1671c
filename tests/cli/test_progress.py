"""The progress bar on a terminal: seen by who waits, and not by who need not."""

import io
import sys
import threading

import pytest

from sentinel.cli import progress


class Terminal(io.StringIO):
    """A standard error stream that is a terminal, and says when something is drawn on it."""

    def __init__(self):
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        self.drawn.set()
        return super().write(text)


def on_terminal(monkeypatch):
    """Let standard error be a terminal. A fixture could not: pytest sets the stream anew before the test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


@pytest.mark.slow
def test_who_waits_sees_how_many_runs_are_done(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    with progress.progress_bar() as show:
        show(64, 351)
        assert terminal.drawn.wait(60)
        show(128, 351)
        show(351, 351)
        drawn = terminal.getvalue()
        assert "351" in drawn
        print("the report", file=terminal)
    assert terminal.getvalue() == f"{drawn}the report\n"


def test_who_need_not_wait_sees_no_bar(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.progress_bar() as show:
        show(0, 1)
        show(1, 1)
    assert terminal.getvalue() == ""


def test_a_bar_that_comes_too_late_is_not_shown(monkeypatch):
    terminal = on_terminal(monkeypatch)
    bar = progress._LateBar()
    bar.show(1, 1)
    bar.start()
    assert terminal.getvalue() == ""
