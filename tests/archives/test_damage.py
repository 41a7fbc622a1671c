"""Results that are damaged, written by two processes, or written to a disk that is full."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack

import pytest

from sentinel.archives.lock import sole_writer
from sentinel.common.errors import SentinelError
from sentinel.common.shard import Shard
from tests.archives.conftest import archived, config, reported

pytestmark = pytest.mark.slow  # they judge whole runs


def truncate(file):
    with file.open("r+b") as content:
        content.truncate(file.stat().st_size // 2)


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


HARM = {
    "empty": lambda file: file.write_bytes(b""),
    "truncated": truncate,
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "one bit": flip,
    "gone": lambda file: file.unlink(),
    "another part": lambda file: shutil.copy(file.parents[1] / "other.parquet", file),
}


@pytest.fixture
def sick(tree):
    return tree / "kl-blowup"


@pytest.mark.parametrize("kind", ["runs", "incidents", "parts"])
@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("retry_failed", [False, True])
def test_a_part_that_is_not_whole_is_named_and_judged_again(
    tmp_path, sick, sentinel, caplog, kind, harm, retry_failed
):
    out = tmp_path / "out"
    expected = reported(archived(out, sick)[0])
    (file,) = (file for file in (out / kind).iterdir() if file.stem != "siblings")
    (out / "other.parquet").write_bytes(b"PAR1" * 10)
    HARM[harm](file)
    report = sentinel("archive", "report", out)
    assert report.status == 2
    assert f"{file}: damaged or missing" in report.err
    assert "Traceback" not in report.err
    results, judged = archived(out, sick, retry_failed=retry_failed)
    assert (judged.reused, judged.completed) == (0, 1)
    if (kind, harm) != ("parts", "gone"):  # which is the same as a part that was not judged yet
        assert judged.damaged == 1
        assert f"{file}: damaged; its part is judged again" in caplog.text
    assert reported(results) == expected


@pytest.mark.parametrize("harm", ["empty", "truncated", "zeros", "one bit"])
def test_a_manifest_that_is_not_whole_is_named_and_written_again(tmp_path, sick, sentinel, harm):
    out = tmp_path / "out"
    expected = reported(archived(out, sick)[0])
    (file,) = out.glob("manifest-*")
    HARM[harm](file)
    report = sentinel("archive", "report", out)
    assert (report.status, "Traceback" in report.err) == (2, False)
    assert str(out) in report.err
    assert reported(archived(out, sick)[0]) == expected


def test_results_of_an_older_form_are_judged_again(tmp_path, sick):
    out = tmp_path / "out"
    expected = reported(archived(out, sick)[0])
    shutil.rmtree(out / "parts")
    results, judged = archived(out, sick)
    assert judged.completed == 1
    assert reported(results) == expected


def test_two_processes_do_not_write_to_one_place(tmp_path, sick, sentinel):
    out = tmp_path / "out"
    archived(out, sick)
    code = (
        "import sys; from pathlib import Path; from sentinel.archives.lock import sole_writer\n"
        "from sentinel.common.shard import WHOLE\n"
        "with sole_writer(Path(sys.argv[1]), WHOLE): print('holds', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"holds\n"
        for shard in ("0/1", "1/2"):
            ran = sentinel("archive", "judge", sick.parent / "two-logs", "--out", out, "--shard", shard)
            assert ran.status == 2
            assert f"process {other.pid} on " in ran.err
            assert "writes its results here" in ran.err
        other.communicate()
    assert len([*out.glob("runs/*")]) == 1


def test_shards_write_at_the_same_time(tmp_path):
    with ExitStack() as stack:
        for index in range(3):
            stack.enter_context(sole_writer(tmp_path, Shard(index, 3)))
        with pytest.raises(SentinelError, match="writes its results here"):
            stack.enter_context(sole_writer(tmp_path, Shard(0, 2)))


def test_nobody_removes_what_another_shard_wrote(tmp_path, tree):
    out = tmp_path / "out"
    for index in range(2):
        archived(out, tree, shard=Shard(index, 2))
    before = {*out.glob("*/*.*")}
    for run in tree.iterdir():
        if run.is_dir() and run.name != "kl-blowup":
            shutil.rmtree(run)
    archived(out, tree, shard=Shard(0, 2))
    after = {*out.glob("*/*.*")}
    others = {file for file in (out / "parts").iterdir() if '"1/2"' in file.read_text()}
    assert others <= before & after
    assert all(
        (out / kind / f"{file.stem}.parquet").exists() for file in others for kind in ("runs", "incidents")
    )


@pytest.mark.parametrize("room", [0, 1 << 13])  # bytes; the first table takes more
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(small_disk, sick, sentinel, room):
    filler = small_disk / "filler"
    out = small_disk / "out"
    free = os.statvfs(small_disk)
    filler.write_bytes(bytes(free.f_bavail * free.f_bsize - room))
    ran = sentinel("archive", "judge", sick, "--out", out, "--workers", 1)
    assert ran.status == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert "No space left on device" in ran.err
    assert not [
        *out.glob("runs/*"),
        *out.glob("runs/.*"),
        *out.glob("incidents/*"),
        *out.glob("incidents/.*"),
    ]
    filler.unlink()
    assert sentinel("archive", "judge", sick, "--out", out, "--workers", 1).status == 0


@pytest.mark.parametrize("shard", ["0/1", "0/2"])
def test_what_was_judged_at_other_paths_is_not_removed(tmp_path, tree, sentinel, shard):
    """Instead, one line says what lies there and what to do."""
    out = tmp_path / "out"
    results, _ = archived(out, settings=config(tree / "kl-blowup", tree / "two-logs"), path=None)
    expected = reported(results)
    ran = sentinel("archive", "judge", tree / "two-logs", "--out", out, "--shard", shard)
    assert ran.status == 2
    assert f"{out}: holds results of {tree / 'kl-blowup'}, which would be removed" in ran.err
    assert reported(results) == expected


def test_what_holds_all_paths_from_before_may_be_judged(tmp_path, tree):
    out = tmp_path / "out"
    before, _ = archived(out, tree / "kl-blowup")
    assert len(reported(before)["runs"]) == 1
    after, _ = archived(out, tree)
    assert len(reported(after)["runs"]) > 1
    shutil.rmtree(tree / "two-logs")  # what is there no longer is no other path
    archived(out, tree)
