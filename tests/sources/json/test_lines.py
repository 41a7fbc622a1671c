import json
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.discovery import discover
from sentinel.sources.json import lines as jsonl
from sentinel.sources.json.lines import FORMAT, JsonLines
from tests.sources.reader import Reader
from tests.tools.fuzz_jsonl import fuzz_jsonl


@pytest.fixture
def log(tmp_path):
    return tmp_path / "metrics.jsonl"


def read(log, content):
    log.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Reader(log).poll(limit=7)


def steps(reader):
    return [step for _, step, _ in reader.points]


LINES = '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n'


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        LINES.replace("\n", "\r\n"),
        LINES.replace("\n", "\n\n"),
        LINES.rstrip(),
        "\ufeff" + LINES,
        LINES.replace("\n", "\n\ufeff"),
        LINES.replace("\n", ""),
        "\0\0\0" + LINES,
        "\ufeff\n" + LINES,
        LINES.replace('"loss"', '"note": "caf\xe9", "loss"').encode("latin-1"),
    ],
    ids=[
        "plain", "CRLF", "blank lines", "no last line break", "BOM", "BOM amid the file",
        "no line breaks", "zeros", "only a BOM in the first line", "Latin-1 in a text",
    ],
)  # fmt: skip
def test_ways_to_write_two_lines(log, content):
    reader = read(log, content)
    assert reader.points == [("loss", 1, "0.5"), ("loss", 2, "0.25")]
    assert not reader.read_issues


@pytest.mark.parametrize(
    ("key", "ending"), [("split", ""), ("type", ""), ("event", ""), ("kind", ""), ("event", "_step")]
)
def test_a_text_tells_what_is_held_out(log, key, ending):
    rows = [{key: part + ending, "step": n, "loss": n / 2} for n in (1, 2) for part in ("train", "eval")]
    points = read(log, "".join(json.dumps(row) + "\n" for row in rows).encode()).points
    assert [tag for tag, _, _ in points] == ["loss", "eval/loss", "loss", "eval/loss"]


def test_literals_that_are_no_json(log):
    reader = read(log, '{"step": 1, "a": NaN, "note": "NaN, -Infinity", "b": [NaN], "c": -Infinity}\n')
    assert reader.points == [("a", 1, "nan"), ("c", 1, "-inf")]
    assert not reader.read_issues


@pytest.mark.parametrize(
    ("number", "value"),
    [("nan", "nan"), ("-Inf", "-inf"), ("+1", "1.0"), (".5", "0.5"), ("1.", "1.0"), ("1.e3", "1000.0")],
)
def test_numbers_as_other_languages_print_them(log, number, value):
    reader = read(log, f'{{"step": 1, "loss": {number}, "note": "not .5 , nan"}}\n')
    assert reader.points == [("loss", 1, value)]
    assert not reader.read_issues


def test_a_name_that_comes_twice_has_its_last_value(log):
    assert read(log, '{"step": 1, "loss": 1, "loss": 2}\n').points == [("loss", 1, "2.0")]


@pytest.mark.parametrize(
    "line", ['{"step": 1, "lo', "Traceback (most recent call last):", "[1, 2]", "17", "{]}", "}" * 9]
)
def test_a_broken_line_is_named_and_skipped(log, line):
    reader = read(log, LINES + line + "\n" + LINES)
    assert steps(reader) == [1, 2, 1, 2]
    assert reader.read_issues == [f"{log} at line 3: is not a JSON object and was skipped"]


@pytest.mark.slow
def test_nesting_without_end_is_a_broken_line(log):
    reader = read(log, '{"a":' * 100_000 + "\n" + "[" * 100_000 + "\n" + LINES)
    assert steps(reader) == [1, 2]
    assert len(reader.read_issues) == 2


def test_complaints_have_an_end(log):
    reader = read(log, "no JSON\n" * 1000 + LINES)
    assert steps(reader) == [1, 2]
    assert len(reader.read_issues) == 5
    assert "skipped silently" in reader.read_issues[-1]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("rows", [40, 10_000])
def test_utf_16_is_read_while_it_grows(tmp_path, encoding, rows):
    text = "".join(json.dumps({"step": i, "損失": i / 8}, ensure_ascii=False) + "\n" for i in range(rows))
    whole = tmp_path / "train.log.jsonl"
    data = text.encode(encoding)
    reader = Reader(whole)
    written = 0
    for end in (1, 2, 3, 40, 41, len(data) // 2 + 1, len(data)):
        with whole.open("ab") as file:
            file.write(data[written:end])
        written = end
        reader.poll(10**6)
    assert reader.points == [("損失", i, str(i / 8)) for i in range(rows)]
    assert not reader.read_issues
    assert not reader.restarts


@pytest.mark.parametrize("polled_while_torn", [True, False])
def test_a_line_that_is_too_long_is_skipped(log, polled_while_torn, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_LINE", 100_000)
    long = json.dumps({"step": 3, "text": "x" * 250_000}) + "\n"
    log.write_text(LINES)
    reader = Reader(log).poll()
    for piece in (long[:150_000], long[150_000:], LINES):
        with log.open("a") as file:
            file.write(piece)
        if polled_while_torn:
            reader.poll()
    assert steps(reader.poll()) == [1, 2, 1, 2]
    assert reader.read_issues == [f"{log} at line 3: is longer than 0 MiB and was skipped"]


@pytest.mark.long  # long logs
@pytest.mark.parametrize("pieces", [1, 7])
def test_a_file_without_line_breaks_is_read_however_long_it_grows(log, pieces, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_LINE", 100_000)
    content = "".join(json.dumps({"step": i, "loss": 0.5}) for i in range(20_000))
    reader = Reader(log)
    for start in range(0, len(content), len(content) // pieces + 1):
        with log.open("a") as file:
            file.write(content[start : start + len(content) // pieces + 1])
        reader.poll()
    assert steps(reader) == list(range(20_000))
    assert not reader.read_issues


def test_a_long_line_is_read_whole(log):
    text = "x" * 1_000_000
    assert steps(read(log, json.dumps({"step": 1, "text": text, "loss": 0.5}) + "\n" + LINES)) == [1, 1, 2]


@pytest.mark.slow
def test_two_processes_that_write_one_file(log):
    first = log.open("a")
    second = log.open("a")
    reader = Reader(log)
    for step in range(20):
        for file in (first, second):
            file.write(json.dumps({"step": step, "loss": 0.5}) + "\n")
            file.flush()
            reader.poll(limit=1)
    first.close()
    second.close()
    assert steps(reader) == sorted([*range(20), *range(20)])


@pytest.mark.long
def test_a_poll_reads_about_as_much_as_it_may(log):
    log.write_text("".join(json.dumps({"step": i, "a": 1.0, "b": 2.0}) + "\n" for i in range(100_000)))
    batch = JsonLines(log).poll({}, 1000)
    assert batch.more
    assert sum(c.value.size for c in batch.chunks) == 1000
    assert batch.cursor["mark"]["offset"] < 100_000


def test_nothing_new_leaves_the_cursor_as_it_is(log):
    log.write_text(LINES + '{"step": 3,')
    source = JsonLines(log)
    cursor = source.poll({}, 100).cursor
    again = source.poll(cursor, 100)
    assert again.cursor == cursor
    assert not again.chunks
    assert not again.read_issues
    assert not again.more


ODD_PIECES = [
    b'{"step": 7, "loss": 1.0}', b'{"loss": null, "x": 1}', b'{"loss": "2", "lr": NaN}', b'{"epoch": 2}',
    b'{"epoch": 0.5, "loss": 3}', b'{"iter": 3, "epoch": 1, "a": {"b": 1}}', b'{"step": "4/9"}', b"no JSON",
    b'{"torn', b"17", b'{"\xff": 1}', b" ", b"\n", b"\n", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\0\0", b"[1]",
    b'{"a":' * 2000,
]  # fmt: skip


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(ODD_PIECES), max_size=30),
    cuts=st.lists(st.floats(0, 1), max_size=6),
    limit=st.integers(1, 5),
)
def test_chunking_changes_nothing_however_odd_the_content(pieces, cuts, limit):
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole", "log.jsonl")
        grown = Path(scratch, "grown", "log.jsonl")
        whole.parent.mkdir()
        grown.parent.mkdir()
        content = b"".join(pieces)
        whole.write_bytes(content)
        reader = Reader(grown)
        cuts = sorted(int(cut * len(content)) for cut in cuts)
        for start, end in pairwise([0, *cuts, len(content)]):
            with grown.open("ab") as file:
                file.write(content[start:end])
            reader.poll(limit)
        at_once = Reader(whole).poll()
        assert reader.points == at_once.points
        assert [c.partition(" at ")[2] for c in reader.read_issues] == [
            c.partition(" at ")[2] for c in at_once.read_issues
        ]


@pytest.mark.slow
def test_which_files_count(tmp_path):
    metrics = '{"iteration": 1, "loss": NaN}\n{"iteration": 2, "loss": 0.5}\n'
    openmmlab = (
        json.dumps({"env_info": "x" * 20_000}) + '\n{"mode": "train", "epoch": 1, "iter": 10, "loss": 1}\n'
    )
    contents = {
        "yes/lines.ndjson": metrics,
        "yes/metrics.txt": metrics,
        "yes/20230321_204005.json": "".join(
            f'{{"step": {69 * epoch}, "loss": 1}}\n{{"step": {epoch}, "acc": 0.5}}\n' for epoch in range(1, 6)
        ),
        "yes/metrics.json": metrics,
        "yes/None.log.json": openmmlab,
        "yes/train.log": metrics,
        "yes/vis_data/scalars.json": metrics,
        "no/vis_data/20230321_204005.json": metrics,
        "no/trainer_state.json": json.dumps({"epoch": 1.0, "global_step": 5}, indent=2),
        "no/one_line.json": '{"epoch": 1.0, "global_step": 5}\n',
        "no/array.json": '[\n{"step": 1, "loss": 2}\n]\n',
        "no/config.json": '{"a": 1}\n{"b": 2}\n',
        "no/console.log": "step 1 loss 0.5\nstep 2 loss 0.4\n",
        "no/mixed.log": metrics + "done\n",
        "no/empty.json": "",
        "no/answers.json": '{"step": 7, "score": 1.0}\n' * 5,
    }
    for name, content in contents.items():
        path = tmp_path / name.partition("/")[2]
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    runs = [run for run in discover([tmp_path]).runs if run.format == FORMAT]
    found = {str(run.path.relative_to(tmp_path)) for run in runs}
    assert found == {name.partition("/")[2] for name in contents if name.startswith("yes/")}


@pytest.mark.long
def test_mutated_files():
    assert fuzz_jsonl(300, seed=0)


SETTINGS = '{"time": 1.7e9, "config": {"lr": 0.001, "optimizer": {"name": "sgd"}}}\n'


@pytest.mark.slow
@pytest.mark.parametrize("lines", [3, 20_000])
@pytest.mark.parametrize("limit", [7, 100_000])
def test_a_line_of_settings_holds_from_there_on(log, lines, limit):
    points = "".join(f'{{"step": {step}, "loss": 0.5}}\n' for step in range(1, lines + 1))
    log.write_text(SETTINGS + points + '{"hparams": {"lr": 1.0}}\n' + '{"step": 0, "loss": 0.25}\n')
    cursor = {}
    chunks = []
    more = True
    while more:
        batch = JsonLines(log).poll(cursor, limit)
        cursor = batch.cursor
        more = batch.more
        chunks += batch.chunks
    stated = [(chunk.config, sum(c.value.size for c in chunks[:i])) for i, chunk in enumerate(chunks)]
    assert [told for told in stated if told[0]] == [
        ({"lr": 0.001, "optimizer.name": "sgd"}, 0),
        ({"lr": 1.0}, lines),
    ]
    assert {tag for chunk in chunks for tag in chunk.tags} == {"loss"}
    assert sum(chunk.value.size for chunk in chunks) == lines + 1


@pytest.mark.parametrize(
    "line", ['{"step": 3, "config": {"lr": 1}}', '{"config": {"lr": 1}, "loss": 2}', '{"config": "lr=1"}']
)
def test_a_line_that_has_more_than_settings_states_none(log, line):
    log.write_text(line + "\n")
    assert not any(chunk.config for chunk in JsonLines(log).poll({}, 10).chunks)


@pytest.mark.parametrize("name", [rb"a\ud83d", b"a\xff"])
def test_a_name_that_is_no_text(tmp_path, name):
    (tmp_path / "log.jsonl").write_bytes(b'{"step": 1, "%b": 0.5}\n' % name)
    assert Reader(tmp_path).poll().points == [("a?", 1, "0.5")]


@pytest.mark.parametrize(
    ("name", "row", "is_log"),
    [
        ("scores.jsonl", {"prompt_id": 3, "reward": 0.5, "kl": 0.1}, False),
        ("train.jsonl", {"id": 3, "text": "a b c", "label": 1}, False),
        ("dialogs.jsonl", {"turn": 3, "score": 0.5}, False),
        ("7.jsonl", {"input": "2+2", "output": "4", "score": 1.0, "step": 7}, False),
        ("chats.jsonl", {"step": "N", "answer": "why " * 100, "reward": 0.5}, False),
        ("events.jsonl", {"timestamp": "TIME", "user": 17, "amount": 3.5}, False),
        ("metrics.jsonl", {"text": "a b c"}, False),
        ("eval_log.jsonl", {"prompt": "why " * 100, "score": 0.5}, False),
        ("run-3.jsonl", {"step": "N", "anything": 0.5}, True),
        ("run-3.jsonl", {"train": {"global_step": "N"}, "anything": 0.5}, True),
        ("run-3.jsonl", {"step": "N/500", "anything": 0.5}, True),
        ("run-3.jsonl", {"timestamp": "TIME", "loss": 0.5}, True),
        ("train_log.jsonl", {"anything": 0.5}, True),
        ("log.jsonl", {"step": "N", "sample": "why " * 100, "loss": 0.5}, True),
    ],
)
def test_a_data_set_is_no_run(tmp_path, name, row, is_log):
    rows = (
        json.dumps(row)
        .replace('"N"', str(n))
        .replace("N/", f"{n}/")
        .replace("TIME", f"2026-01-01T00:00:0{n}")
        for n in range(1, 6)
    )
    (tmp_path / name).write_text("".join(f"{line}\n" for line in rows))
    assert len(discover([tmp_path]).runs) == is_log


def test_a_log_that_is_no_data_set_may_be_empty_only_where_its_name_says_so(tmp_path):
    (tmp_path / "metrics.jsonl").touch()
    (tmp_path / "answers.jsonl").touch()
    assert [run.path.name for run in discover([tmp_path]).runs] == ["metrics.jsonl"]


def test_lines_of_a_merge_conflict_are_named_and_skipped(tmp_path):
    (tmp_path / "metrics.json").write_text("<<<<<<< HEAD\n" + 4 * LINES)
    reader = Reader(tmp_path).poll()
    assert steps(reader) == 4 * [1, 2]
    assert [line.partition(" at ")[2] for line in reader.read_issues] == [
        "line 1: is not a JSON object and was skipped"
    ]
