"""Shows Markdown: laid out on a terminal, as it is in a file or a pipe."""

import sys

import typer

WIDTH = 80


def show(text: str, width: int = WIDTH) -> None:
    """Show a page, on a terminal at most so many characters wide."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, width)).print(Markdown(text))
