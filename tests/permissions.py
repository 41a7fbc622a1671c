"""Code that permissions bind, also where the tests run as root."""

import json
import os
import shutil
import subprocess
import sys

import pytest

UNPRIVILEGED = ("setpriv", "--bounding-set", "-all", "--")

needs_permissions = pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and shutil.which("setpriv") is None),
    reason="permissions do not bind this user",
)


def unprivileged(code, *words):
    """What Python code prints as JSON in a process of this user that may do nothing but what permissions
    allow.
    """
    before = UNPRIVILEGED if os.geteuid() == 0 else ()
    command = [*before, sys.executable, "-c", code, *map(str, words)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def commanded(*words):
    """What a command answers in such a process: its status, and all that it prints."""
    before = UNPRIVILEGED if os.geteuid() == 0 else ()
    command = [*before, sys.executable, "-m", "sentinel", *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    return result.returncode, result.stdout + result.stderr
