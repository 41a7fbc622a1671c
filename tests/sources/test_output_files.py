"""What a training prints beside its log: which files, and each line once."""

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.sources.base import Run
from sentinel.sources.output_files import LONGEST_LINE, OutputFiles


def output(path):
    return OutputFiles(Run(path, "jsonl", None))


def texts(files):
    return [line.text for line in files.new_lines()]


def append(path, text):
    with path.open("ab") as file:
        file.write(text.encode())


def test_lines_come_once_and_whole(tmp_path):
    files, log = output(tmp_path), tmp_path / "train.log"
    assert texts(files) == []
    append(log, "one\n\n  \ntw")
    assert texts(files) == ["one"]
    append(log, "o\r\n 10%|# |\r100%|##|\n\x1b[31mred\x1b[0m\n")
    assert texts(files) == ["two", "100%|##|", "\x1b[31mred\x1b[0m"]
    assert texts(files) == []
    log.write_text("anew\n")
    assert texts(files) == ["anew"]


def test_a_time_at_the_beginning_is_the_lines(tmp_path):
    append(tmp_path / "train.out", "2026-01-02 03:04:05,500 INFO begun\nno time\n")
    begun, other = output(tmp_path).new_lines()
    assert begun.time == 1767323045.5
    assert math.isnan(other.time)


def test_of_a_long_log_only_the_end_is_old_news(tmp_path):
    lines = "".join(f"line {i:07}\n" for i in range(100_000))
    append(tmp_path / "slurm-1.out", lines)
    found = texts(output(tmp_path))
    assert 1000 < len(found) < 30_000
    assert found[-1] == "line 0099999"
    assert all(text.startswith("line ") and len(text) == 12 for text in found)


def test_a_line_without_end_is_cut(tmp_path):
    files, log = output(tmp_path), tmp_path / "train.err"
    append(log, "begun\n")
    assert texts(files) == ["begun"]
    append(log, "x" * (3 << 20) + "\nend\n")
    found = texts(files)
    assert found[-1] == "end"
    assert max(map(len, found)) == LONGEST_LINE


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["metrics.jsonl", "train.log"], ["train.log"]),
        (["metrics.jsonl", "other.jsonl", "train.log", "metrics.log"], ["metrics.log"]),
        (["metrics.jsonl", "notes.txt", "checkpoint.bin"], []),
        (["metrics.jsonl", *(f"{i}.log" for i in range(51))], []),
    ],
)
def test_a_log_file_has_the_output_that_is_plainly_its_own(tmp_path, names, read):
    for name in names:
        append(tmp_path / name, f"{name}\n")
    assert texts(output(tmp_path / "metrics.jsonl")) == read


def test_a_log_does_not_print_itself(tmp_path):
    append(tmp_path / "train.log", "loss 1\n")
    assert texts(output(tmp_path / "train.log")) == []


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "folder.log").mkdir()
    append(tmp_path / "train.log", "fine\n")
    assert texts(output(tmp_path)) == ["fine"]
    assert texts(output(tmp_path / "gone" / "metrics.jsonl")) == []


printed = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=9)


@given(
    st.lists(printed),
    st.data(),
)
def test_any_cut_gives_the_same_lines(tmp_path_factory, lines, data):
    directory = tmp_path_factory.mktemp("run")
    whole = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    files, found = output(directory), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with (directory / "train.log").open("ab") as file:
            file.write(whole[start:end])
        found += texts(files)
    assert found == [line for line in lines if not line.isspace()]
