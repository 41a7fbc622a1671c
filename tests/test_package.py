"""What is installed by the file name of a distribution, in an environment of its own.

The tests use the Python that runs them. `make test-package` makes environments for the other supported ones
that are on the PATH, and tests those as well.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
import zlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
RUN = ROOT / "sample_logs" / "non-finite-metric"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: Python :: 3." in one]
OFFLINE = "--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel that is made of it alone."""
    place = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", place], cwd=ROOT, check=True
    )
    (source,) = place.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", place, source], check=True)
    (wheel,) = place.glob("*.whl")
    return source, wheel


def installed(distribution, home, python=sys.executable):
    """The commands of a new environment with the distribution. It sees the packages of that Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    (own,) = home.glob("lib/python*/site-packages")
    asked = [python, "-c", "import sys; print(*sys.path, sep='\\n')"]
    paths = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    (own / "dependencies.pth").write_text("\n".join(path for path in paths if "site-packages" in path))
    pip = [python, "-m", "pip", "--python", home, "install", *OFFLINE, "--ignore-installed", "--no-compile"]
    subprocess.run([*pip, distribution], check=True)
    return home / "bin"


@pytest.mark.long  # builds, and makes an environment
def test_the_wheel_works_beside_a_directory_of_the_same_name(built, tmp_path):
    commands = installed(built[1], tmp_path / "venv")
    mine = tmp_path / "project" / "detectors"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("raise SystemExit('this is not the detectors of sentinel')\n")
    command = [commands / "sentinel", "replay", RUN, "--fail-on", "warning"]
    done = subprocess.run(command, cwd=mine.parent, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "non-finite-metric" in done.stdout
    where = [commands / "python", "-I", "-c", "import sentinel; print(sentinel.__file__)"]
    assert str(tmp_path / "venv") in subprocess.run(where, capture_output=True, text=True, check=True).stdout
    test = f"def test_it(assert_healthy):\n    assert_healthy({str(RUN)!r})\n"
    (mine.parent / "test_training.py").write_text(test)
    pytest_command = [commands / "python", "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tested = subprocess.run(pytest_command, cwd=mine.parent, capture_output=True, text=True)
    assert "critical non-finite-metric" in tested.stdout, tested.stdout + tested.stderr


@pytest.mark.long  # builds, and makes environments
@pytest.mark.parametrize("version", PYTHONS)
def test_both_distributions_work_on_every_python_that_is_supported(built, tmp_path, version):
    python = ROOT / ".venv" / "pythons" / version / "bin" / "python"
    if not python.exists():
        pytest.skip(f"`make test-package` makes {python.parent.parent}, if python{version} is on the PATH")
    for distribution in built:
        sentinel = installed(distribution, tmp_path / distribution.name, python) / "sentinel"
        strictly = {**os.environ, "PYTHONWARNINGS": "error"}
        said = subprocess.run(
            [sentinel, "--version"], capture_output=True, text=True, env=strictly, check=True
        )
        assert said.stdout == f"sentinel {PROJECT['version']}\n"
        command = [sentinel, "replay", RUN, "--fail-on", "warning"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=strictly)
        assert done.returncode == 1, done.stderr
        assert "non-finite-metric" in done.stdout


def tally(path, rewards):
    """Writes a log of the format that the example of a plugin reads."""
    lines = (f"{step}\treward={reward}" for step, reward in enumerate(rewards))
    path.write_text("".join(f"{zlib.crc32(line.encode()):08x}\t{line}\n" for line in lines))


BROKEN = "sentinel-broken 0.1 is left out: its entry point bad in sentinel.detectors: "


@pytest.mark.long  # builds, and makes an environment
def test_a_package_of_others_adds_to_what_the_wheel_knows(built, tmp_path):
    source = shutil.copytree(ROOT / "deploy" / "examples" / "plugin", tmp_path / "plugin")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", tmp_path, source], check=True)
    home = tmp_path / "venv"
    commands = installed(built[1], home)
    (wheel,) = tmp_path.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", home, "install", *OFFLINE, "--no-compile"]
    subprocess.run([*pip, wheel], check=True)
    place = tmp_path / "here"
    place.mkdir()
    tally(place / "run.tally", [0.5] * 30 + [3.5] * 20)
    (place / "sentinel.toml").write_text(
        'paths = ["run.tally"]\n[[sinks]]\ntype = "journal"\nfile = "journal.tsv"\ninclude_preview = true\n'
        "[detectors.reward-out-of-bounds]\nmost = 2\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")

    def ran(*words, status=0, cwd=place):
        done = subprocess.run([*words], cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    pytest_command = [commands / "python", "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert "failed" not in ran(*pytest_command, cwd=source).stdout
    sentinel = commands / "sentinel"
    assert re.match(r"run\.tally  tally, custom-rl, \w+, 50 points", ran(sentinel, "runs", ".").stdout)
    assert "reward is 3.5, above 2" in ran(sentinel, "replay", ".", "--fail-on", "critical", status=1).stdout
    assert ran(sentinel, "explain", "reward-out-of-bounds").stdout.startswith("# reward-out-of-bounds\n")
    assert "The scale of a reward changed" in ran(sentinel, "explain", "EX1").stdout
    assert ran(sentinel, "check-config").stdout == "sentinel.toml: no mistakes; sinks: journal\n"
    ran(sentinel, "watch", "--once")
    assert "Reward is 3.5, above 2" in (place / "journal.tsv").read_text()

    (packages,) = home.glob("lib/python*/site-packages")
    metadata = packages / "sentinel_broken-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sentinel-broken\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[sentinel.detectors]\nbad = sentinel_broken\n")
    for command in (["runs", "."], ["status"], ["check-config"]):
        named = ran(sentinel, *command).stderr
        assert named == f"sentinel: {BROKEN}ModuleNotFoundError: No module named 'sentinel_broken'\n"
    assert "reward is 3.5" in ran(sentinel, "replay", ".").stdout


def test_the_distributions_hold_everything(built):
    source, wheel = built
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = set(tracked.stdout.splitlines())
    files.remove("sentinel/detectors")  # a link, in whose place the wheel has the folder
    own = {name for name in files if name.startswith("sentinel/")}
    assert packed == own | {f"sentinel/{name}" for name in files if name.startswith("detectors/")}
    with tarfile.open(source) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert files <= shipped
