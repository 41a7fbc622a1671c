"""Messages say how this installation gets an extra."""

import shlex
from pathlib import Path

import pytest

from sentinel.common.installation import _direct, command, install

GIT = {"url": "https://example.org/x/sentinel", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}}
CHECKOUT = {"url": "file:///src/sentinel", "dir_info": {"editable": True}}


@pytest.mark.parametrize(
    ("recorded", "source"),
    [
        (GIT, " @ git+https://example.org/x/sentinel"),
        (
            {**GIT, "vcs_info": {**GIT["vcs_info"], "requested_revision": "v1"}},
            " @ git+https://example.org/x/sentinel@v1",
        ),
        (CHECKOUT, " @ file:///src/sentinel"),
    ],
)
def test_an_origin_is_said_as_a_requirement(recorded, source):
    assert _direct(recorded) == source


def test_a_tool_of_uv_is_installed_again_with_the_extra(tmp_path):
    (tmp_path / "uv-receipt.toml").touch()
    said = command("mcp", _direct(GIT), tmp_path, has_pip=False)
    assert said == "uv tool install 'training-sentinel[mcp] @ git+https://example.org/x/sentinel'"


@pytest.mark.parametrize("place", ["archive-v0", "environments-v2"])
def test_what_uvx_made_is_called_with_the_extra(place):
    said = command("s3", _direct(GIT), Path("/home/me/.cache/uv") / place / "x", has_pip=False)
    assert said == "uvx --from 'training-sentinel[s3] @ git+https://example.org/x/sentinel' sentinel"


def test_an_environment_with_pip_gets_it_by_its_own_python():
    said = command("s3", "", Path("/my envs/one"), has_pip=True)
    assert shlex.split(said) == [
        *("/my envs/one/bin/python", "-m", "pip", "install", "training-sentinel[s3]")
    ]


def test_an_environment_without_pip_gets_it_by_uv():
    said = command("s3", "", Path("/env"), has_pip=False)
    assert said == "uv pip install --python /env/bin/python 'training-sentinel[s3]'"


def test_this_installation_names_the_extra():
    assert "training-sentinel[mcp]" in install("mcp")
