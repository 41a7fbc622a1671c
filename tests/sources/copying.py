"""Ways to renew the copy of a directory, as people and their tools do."""

import shutil
import subprocess

import pytest

from tests.sources.runs import files


def rsync(*options):
    def renew(original, copy):
        precise = "--modify-window=-1"  # else two changes in one second are one
        subprocess.run(["rsync", "--archive", precise, *options, f"{original}/", copy], check=True)

    return renew


def cp(original, copy):
    subprocess.run(["cp", "--archive", f"{original}/.", copy], check=True)


def each_file(put):
    """Renew the files one by one: ``put`` is given each of them and its place among the copies."""

    def renew(original, copy):
        for path in files(original):
            place = copy / path.relative_to(original)
            place.parent.mkdir(parents=True, exist_ok=True)
            put(path, place)

    return renew


def rename(path, place):
    """As rsync, editors and NFS do: write another file and rename it."""
    shutil.copy2(path, place.parent / ".new")
    (place.parent / ".new").replace(place)


def write_over(path, place):
    place.write_bytes(path.read_bytes())


def move_over(path, place):
    shutil.copyfile(path, place.parent / ".new")
    subprocess.run(["mv", "--force", place.parent / ".new", place], check=True)


needs_rsync = pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")
WAYS = [
    pytest.param(rsync(), id="rsync", marks=needs_rsync),
    pytest.param(rsync("--inplace"), id="rsync --inplace", marks=needs_rsync),
    pytest.param(cp, id="cp"),
    pytest.param(each_file(move_over), id="mv"),
    pytest.param(each_file(rename), id="rename"),
    pytest.param(each_file(write_over), id="write"),
]
"""How `renew(original, copy)` is called with two directories, the copy's being there."""
