import shutil
from pathlib import Path

import polars as pl
import pytest

from sentinel.sources import neptune
from sentinel.sources.base import Line
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader
from tests.sources.runs import STEPS, write
from tests.sources.tracker_writers import NeptuneWriter

EXPORT = Path(__file__).parent / "fixtures" / "neptune"
BEGIN = 1767312000.0


@pytest.mark.slow
def test_a_run_that_the_exporter_wrote():
    for limit in (1, 100):
        reader = Reader(EXPORT).poll(limit)
        assert reader.points == [
            ("train/loss", 0, "4.0"),
            ("train/loss", 10, "3.0"),
            ("val/loss", 0, "3.0"),
            ("train/loss", 20, "2.0"),
            ("train/loss", 30, "nan"),
            ("val/loss", 1, "2.0"),
        ]
        assert reader.times == [BEGIN + seconds for seconds in (0, 10, 15, 20, 30, 35)]
        assert not reader.read_issues
    assert reader.batch.lines == [Line(BEGIN, "epoch 1"), Line(BEGIN, "epoch 2")]
    assert reader.batch.config == {"parameters/lr": 0.1, "parameters/max_steps": 40, "parameters/bf16": True}


def test_an_export_that_lost_a_part_waits_for_no_part(tmp_path):
    shutil.copytree(EXPORT, tmp_path / "data")
    next(tmp_path.rglob("*_part_2.parquet")).unlink()
    assert {tag for tag, _, _ in Reader(tmp_path).poll().points} == {"train/loss"}
    next(tmp_path.rglob("*_part_0.parquet")).unlink()
    assert not discover([tmp_path]).runs, "the exporter names part 0 last"


def test_a_part_that_is_still_copied_is_waited_for(tmp_path):
    shutil.copytree(EXPORT, tmp_path / "data")
    part = next(tmp_path.rglob("*_part_1.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:-1])
    reader = Reader(tmp_path).poll()
    assert not reader.points
    part.write_bytes(whole)
    assert len(reader.poll().points) == 6
    assert not reader.read_issues


def test_other_parquet_files_are_no_runs(tmp_path):
    pl.DataFrame({"step": [1], "loss": [1.0]}).write_parquet(tmp_path / "data_part_0.parquet")
    (tmp_path / "torn_part_0.parquet").write_bytes(b"PAR1")
    (tmp_path / "text_part_0.parquet").write_bytes(b"PAR1" + b"x" * 20 + b"\xff\xff\xff\xffPAR1")
    assert not discover([tmp_path]).runs


def test_a_file_that_parquet_cannot_read_is_complained_about_once(tmp_path):
    path = next(write(NeptuneWriter(), tmp_path / "run", STEPS).iterdir())
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:4] + b"\xff" * (len(data) - 4 - footer) + data[-footer:])
    reader = Reader(path).poll().poll()
    assert not reader.points
    assert len(reader.read_issues) == 1
    assert reader.read_issues[0].startswith(f"{path}: cannot be read (no sound export of Neptune: ")


@pytest.mark.slow
def test_a_part_that_is_rewritten_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path = next(write(NeptuneWriter(), tmp_path, STEPS).iterdir())
    read = neptune._bytes

    def rewritten(part: Path) -> bytes:
        monkeypatch.setattr(neptune, "_bytes", read)
        data = read(part)
        part.write_bytes(data + data[-8:])
        part.write_bytes(data)
        return data[:4] + b"\xff" * (len(data) - 12) + data[-8:]

    monkeypatch.setattr(neptune, "_bytes", rewritten)
    reader = Reader(path).poll()
    assert not reader.points
    assert len(reader.poll().points) == 2 * len(STEPS)
    assert not reader.read_issues


@pytest.mark.parametrize(("limit", "value", "said"), [("ROWS", 15, "15 rows"), ("BYTES", 1 << 10, "0 MiB")])
def test_an_export_that_is_too_large_is_refused(tmp_path, monkeypatch, limit, value, said):
    monkeypatch.setattr(neptune, f"_MAX_PARQUET_{limit}", value)
    path = next(write(NeptuneWriter(), tmp_path, STEPS).iterdir())
    reader = Reader(path).poll().poll()
    assert reader.read_issues == [f"{path}: has more than {said} and is not read"]
    assert reader.batch.cursor["refused"] == f"has more than {said} and is not read"
