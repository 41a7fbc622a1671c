"""A state that is shared with a group, tried as the users of one machine: an owner, a member, a stranger."""

import grp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"  # root's own interpreter may lie where no other user comes
GROUP = grp.getgrgid(100).gr_name if any(group.gr_gid == 100 for group in grp.getgrall()) else ""
OWNER = 61001
MEMBER = 61002
STRANGER = 61003


@dataclass(frozen=True)
class User:
    """Runs commands as a user of this machine."""

    number: int
    groups: str
    python: str

    def __call__(self, *words, at="/"):
        """The exit status, the standard output and the standard error of a command of sentinel."""
        process = self.begin(*words, at=at)
        out, err = process.communicate()
        return process.returncode, out, err

    def begin(self, *words, at="/"):
        packages = [path for path in sys.path if path.endswith("site-packages")]
        environment = {
            "HOME": "/nonexistent",
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *packages]),
        }
        user = ["setpriv", "--reuid", str(self.number), "--regid", str(self.number)]
        groups = ["--groups", self.groups] if self.groups else ["--clear-groups"]
        command = [*user, *groups, self.python, "-m", "sentinel", *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=at, env=environment, stdout=pipe, stderr=pipe, text=True)


def usable_python():
    """An interpreter that another user can run with these packages; empty if there is none."""
    if os.geteuid() != 0 or not GROUP or shutil.which("setpriv") is None:
        return ""
    for python in (sys.executable, SYSTEM_PYTHON):
        try:
            if User(STRANGER, "", python)("--version")[0] == 0:
                return python
        except OSError:
            continue
    return ""


pytestmark = pytest.mark.long  # real processes


@pytest.fixture(scope="module")
def python():
    return usable_python() or pytest.skip("needs root, setpriv and an interpreter that other users can run")


@pytest.fixture
def home():
    """A home of mode 0700 with a run in it, and a state outside that is shared with a group."""
    with tempfile.TemporaryDirectory(prefix="sentinel-users-") as directory:
        top = Path(directory)
        top.chmod(0o755)
        home = top / "alice"
        run = home / "runs" / "a"
        run.mkdir(parents=True)
        state = top / "state"
        state.mkdir()
        rows = ({"step": s, "loss": 2 / (1 + s / 50) if s < 100 else float("nan")} for s in range(200))
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (home / "sentinel.toml").write_text(
            f'paths = ["runs"]\nstate_dir = "{state}"\nstate_group = "{GROUP}"\nsinks = []\n'
        )
        for path in (state, home, *home.rglob("*")):
            os.chown(path, OWNER, OWNER)
        home.chmod(0o700)
        yield home


def incident_of(user, state):
    status, out, err = user("status", "--state-dir", state, "--format", "json")
    assert status == 0, err
    (incident,) = json.loads(out)["incidents"]
    return incident["id"]


def test_members_read_what_the_owner_watches_and_change_nothing(python, home):
    owner = User(OWNER, "100", python)
    member = User(MEMBER, "100", python)
    stranger = User(STRANGER, "", python)
    state = home.parent / "state"
    status, _, err = owner("watch", "--once", at=home)
    assert status == 0, err
    incident = incident_of(member, state)
    status, out, err = member("show", incident, "--state-dir", state)
    assert "non-finite-metric" in out, err
    status, out, err = member("wait", home / "runs", "--state-dir", state, "--timeout", "1s")
    assert status == 4, (out, err)  # nobody watches, and the home is closed
    status, _, err = member("ack", incident, "--state-dir", state)
    assert (status, err) == (2, f"sentinel: {state}: you may read it, and only {OWNER} may change it\n")
    status, _, err = stranger("status", "--state-dir", state)
    assert status == 2
    assert "closed to you; " in err
    assert "`state_group`" in err
    watch = owner.begin("watch", at=home)
    try:
        while "found" not in (line := watch.stderr.readline()):
            assert line
        assert incident_of(member, state) == incident
    finally:
        watch.kill()
        watch.communicate()
    assert incident_of(member, state) == incident  # its log lies there as the kill left it


def test_a_home_that_is_closed_is_said(python, home):
    member = User(MEMBER, "100", python)
    closed = f"{home} is closed to you (mode 0700, of {OWNER})"
    with tempfile.TemporaryDirectory() as state:
        os.chown(state, MEMBER, MEMBER)
        status, _, err = member("watch", "--once", home / "runs", "--state-dir", state, at=home.parent)
    assert status == 0, err
    assert closed in err
    (home.parent / "sentinel.toml").write_text('paths = ["*/runs"]\n')
    out = member("check-config", at=home.parent)[1]
    assert f"{closed}, so the runs below it are not watched" in out


def test_a_state_below_a_closed_home_cannot_be_shared(python, home):
    owner = User(OWNER, "100", python)
    (home / "sentinel.toml").write_text(
        f'paths = ["runs"]\nstate_dir = "state"\nstate_group = "{GROUP}"\nsinks = []\n'
    )
    out = owner("check-config", at=home)[1]
    assert f"missing here: the group {GROUP} cannot enter {home} (mode 0700)" in out
    (home / "sentinel.toml").write_text('paths = ["runs"]\nstate_dir = "state"\nstate_group = "0"\n')
    status, _, err = owner("watch", "--once", at=home)
    assert status == 2
    assert "the user of the watch must own it and belong to the group" in err
