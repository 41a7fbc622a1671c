"""What is read at once is what is read line by line."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.sources.json import lines as jsonl
from sentinel.sources.json.lines import JsonLines
from tests.sources.reader import Reader

LINES = "".join(json.dumps({"step": i, "loss": i / 7, "kl/mean": -1e-9 * i}) + "\n" for i in range(5000))
NUMBERS = ["0.5", "-1e-3", "7", "NaN", "nan", "-inf", "Infinity", "+1", "01", ".5", "1.", "1e400", "9" * 30]
ODDITIES = ["null", "true", '"2"', "", "-", "1_0", "0x1", " 2", "2 ", "[1]", "{}", "1}", '1, "loss": 2']
FORMS = [
    '{{"step": {0}, "loss": {1}}}',
    '{{"step":{0},"loss":{1}}}',
    '{{"step": {0}, "loss": {1}}}\r',
    '{{"loss": {1}, "step": {0}}}',
    '{{"epoch": {0}, "loss": {1}}}',
    '{{"iter": {0}, "epoch": 1, "loss": {1}}}',
    '{{"step": {0}, "time": {1}, "loss": 2}}',
    '{{"step": {0}}}',
]


def read_at_once_whatever_there_is(patch):
    patch.setattr(jsonl, "_MIN_FAST_BYTES", 0)
    patch.setattr(jsonl, "_MIN_FAST_POINTS", 0)


def polls(log, limit=10_000):
    """The batches up to the end of the file."""
    batches = [JsonLines(log).poll({}, limit)]
    while batches[-1].more:
        batches.append(JsonLines(log).poll(batches[-1].cursor, limit))
    return batches


@pytest.mark.slow
@pytest.mark.parametrize("text", [LINES, LINES.replace(" ", ""), LINES.replace("\n", "\r\n"), LINES + '{"st'])
def test_a_regular_log_is_read_at_once(tmp_path, text):
    log = tmp_path / "log.jsonl"
    log.write_text(text, newline="")
    at_once = [chunk for batch in polls(log) for chunk in batch.chunks if chunk.value.ndim == 2]
    assert sum(chunk.value.size for chunk in at_once) > 8000
    assert len(Reader(log).poll().points) == 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        '{"step": 1, "loss": 2, "kl/mean": 3, "lr": 4}',
        '{"step": 1, "loss": 2}',
        '{"loss": 2, "step": 1, "kl/mean": 3}',
        '{"step": 1, "loss": 2, "kl/mean": 3}{"step": 1, "loss": 2, "kl/mean": 3}',
        '{"step": 1, "loss": [2], "kl/mean": 3}',
        '{"step": 1, "loss": 2, "kl/mean": 3',
        '{"step": 1.5, "loss": 2, "kl/mean": 3}',
        "",
        "\udcff",
    ],
)
def test_one_other_line_is_enough_to_look_at_each(tmp_path, line):
    log = tmp_path / "log.jsonl"
    log.write_text(f"{LINES}{line}\n{LINES}", errors="surrogateescape")
    assert all(chunk.value.ndim == 1 for batch in polls(log, 10**6) for chunk in batch.chunks)


def test_what_is_tried_at_once_in_vain_leaves_nothing_behind(tmp_path, monkeypatch):
    read_at_once_whatever_there_is(monkeypatch)
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 0.5, "loss": 0.5}\n{"step": 1, "loss": null}\n')
    assert ("loss", 1, "nan") in Reader(log).poll(limit=1).points


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), limit=st.integers(1, 20))
def test_reading_at_once_is_reading_line_by_line(tmp_path, monkeypatch, data, limit):
    form = st.just(data.draw(st.sampled_from(FORMS)))
    number = st.sampled_from(NUMBERS[: data.draw(st.sampled_from([3, len(NUMBERS)]))])
    if data.draw(st.booleans()):
        form = st.sampled_from(FORMS)
        number = number | st.sampled_from(ODDITIES)
    steps = st.integers(0, 99).map(str) | st.just(data.draw(number))
    lines = data.draw(st.lists(st.builds(str.format, form, steps, number), min_size=1, max_size=12))
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*lines, data.draw(st.sampled_from(["", '{"step": 3, "lo']))]), newline="")
    expected = Reader(log).poll(limit)
    with monkeypatch.context() as patch:
        read_at_once_whatever_there_is(patch)
        reader = Reader(log).poll(limit)
    assert (reader.points, reader.read_issues) == (expected.points, expected.read_issues)
    assert reader.times == pytest.approx(expected.times, nan_ok=True)
