"""What is installed by name of the wheel, in an environment of its own."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = ROOT / "sample_logs" / "non-finite-metric"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The directory with the wheel and the source distribution."""
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", directory], cwd=ROOT, check=True)
    return directory


@pytest.mark.slow  # builds, and makes an environment
def test_the_wheel_works_beside_a_directory_of_the_same_name(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    pip = [sys.executable, "-m", "pip", "--python", home, "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--ignore-installed", wheel], check=True)
    mine = tmp_path / "project" / "detectors"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("raise SystemExit('this is not the detectors of sentinel')\n")
    command = [home / "bin" / "sentinel", "replay", RUN, "--fail-on", "warning"]
    done = subprocess.run(command, cwd=mine.parent, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "non-finite-metric" in done.stdout
    where = [home / "bin" / "python", "-I", "-c", "import sentinel; print(sentinel.__file__)"]
    assert str(home) in subprocess.run(where, capture_output=True, text=True, check=True).stdout
    test = f"def test_it(assert_healthy):\n    assert_healthy({str(RUN)!r})\n"
    (mine.parent / "test_training.py").write_text(test)
    pytest_command = [home / "bin" / "python", "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tested = subprocess.run(pytest_command, cwd=mine.parent, capture_output=True, text=True)
    assert "critical non-finite-metric" in tested.stdout, tested.stdout + tested.stderr


@pytest.mark.slow  # builds
def test_the_distributions_hold_everything(built):
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    installed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = set(tracked.stdout.splitlines())
    assert installed == {name for name in files if name.startswith(("sentinel/", "detectors/"))}
    with tarfile.open(source) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert files <= shipped
