"""Commands run here as in tests/cli."""

from tests.cli.conftest import sentinel

__all__ = ["sentinel"]
