from tests.cli.conftest import sentinel

__all__ = ["sentinel"]
