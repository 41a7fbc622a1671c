"""The log lines of a command, on stderr."""

import logging
import sys
import time

_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: int = logging.INFO) -> None:
    """Log to stderr, with times in UTC. Other libraries log only warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("sentinel").setLevel(level)
