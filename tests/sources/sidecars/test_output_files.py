"""What a training prints beside its log: which files, and each line once."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.sources.base import Run
from sentinel.sources.sidecars.output_files import OutputFiles


def output(path):
    return OutputFiles(Run(path, "jsonl", None))


class Following:
    """Polls with a cursor that it keeps."""

    def __init__(self, path):
        self.files = output(path)
        self.cursor = {}

    def texts(self):
        found = []
        more = True
        while more:
            news = self.files.poll(self.cursor)
            self.cursor = news.cursor
            more = news.more
            found += [line for text in news.text.values() for line in text.split("\n")[:-1]]
        return found


def texts(files):
    return files.texts()


def append(path, text):
    with path.open("ab") as file:
        file.write(text.encode())


def test_lines_come_once_and_whole(tmp_path):
    files = Following(tmp_path)
    log = tmp_path / "train.log"
    assert texts(files) == []
    append(log, "one\n\n  \ntw")
    assert texts(files) == ["one", "", "  "]
    append(log, "o\r\n 10%|# |\r100%|##|\n\x1b[31mred\x1b[0m\n")
    assert texts(files) == ["two\r", " 10%|# |\r100%|##|", "\x1b[31mred\x1b[0m"]
    assert texts(files) == []
    log.write_text("anew\n")
    assert texts(files) == ["anew"]


def test_a_text_called_log_beside_a_log_is_what_was_printed(tmp_path):
    append(tmp_path / "metrics.json", "{}\n")
    append(tmp_path / "log.txt", "RuntimeError: sizes differ\n")
    assert texts(Following(tmp_path / "metrics.json")) == ["RuntimeError: sizes differ"]
    assert not texts(Following(tmp_path / "log.txt"))


@pytest.mark.slow
def test_a_long_log_comes_whole_in_pieces(tmp_path):
    lines = [f"line {i:07}" for i in range(100_000)]
    append(tmp_path / "slurm-1.out", "".join(f"{line}\n" for line in lines))
    first = output(tmp_path).poll({})
    assert first.more
    assert len(first.text["slurm-1.out"]) <= 1 << 20
    assert texts(Following(tmp_path)) == lines


def test_an_endless_line_is_passed_over(tmp_path):
    log = tmp_path / "train.err"
    append(log, "begun\n" + "x" * (3 << 20) + "\nend\n")
    begun, *_, end = texts(Following(tmp_path))
    assert (begun, end) == ("begun", "end")


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
    assert texts(Following(tmp_path / "metrics.jsonl")) == read


def test_a_log_does_not_print_itself(tmp_path):
    append(tmp_path / "train.log", "loss 1\n")
    assert texts(Following(tmp_path / "train.log")) == []


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "folder.log").mkdir()
    append(tmp_path / "train.log", "fine\n")
    assert texts(Following(tmp_path)) == ["fine"]
    assert texts(Following(tmp_path / "gone" / "metrics.jsonl")) == []


printed = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=9)


@pytest.mark.long  # many examples
@given(st.lists(printed), st.data())
def test_any_cut_gives_the_same_lines(tmp_path_factory, lines, data):
    directory = tmp_path_factory.mktemp("run")
    whole = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    files = Following(directory)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with (directory / "train.log").open("ab") as file:
            file.write(whole[start:end])
        found += texts(files)
    assert found == lines
