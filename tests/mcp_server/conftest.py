"""Commands run here as in tests/cli."""

from tests.cli.conftest import sentinel, sick_run

__all__ = ["sentinel", "sick_run"]
