"""What programs read has the documented form."""

from pathlib import Path

import pytest

from tests.tools.schemas import fits, texts

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.mark.parametrize(
    ("path", "text"), [*texts()], ids=lambda value: value.stem if isinstance(value, Path) else ""
)
def test_the_schemas_are_up_to_date(path, text):
    assert path.read_text() == text, "run `make docs`"


@pytest.fixture
def written(sentinel):
    """What a command prints about a run with incidents, a quiet one and one that nobody can read."""
    Path("broken").mkdir()
    Path("broken/metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": \n')
    names = "loss-scale-collapse", "healthy-rl", "lr-schedule-mismatch"
    paths = [*(SAMPLES / name for name in names), "broken"]
    return lambda *words: sentinel(words[0], *paths, *words[1:]).out


@pytest.mark.long  # replays whole runs
def test_a_replay_is_as_documented(written):
    fits("replay", written("replay", "--format", "json"))


@pytest.mark.long  # replays whole runs
def test_each_line_is_as_documented(written):
    lines = written("replay", "--format", "jsonl").splitlines()
    assert len(lines) == 4
    for line in lines:
        fits("replay-line", line)


@pytest.mark.slow
def test_a_listing_is_as_documented(written):
    fits("runs", written("runs", "--format", "json"))
