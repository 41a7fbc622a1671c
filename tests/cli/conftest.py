"""Runs commands in this process, as their own would."""

from typing import NamedTuple

import pytest

from sentinel.cli.app import main


class Ran(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def sentinel(capsys, tmp_path, monkeypatch):
    """Call with the words of a command line; the current directory and the state are the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return Ran(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def sick_run(tmp_path):
    """A run whose KL per token leaves the reference behind from step 100 on."""
    run = tmp_path / "runs" / "sick"
    run.mkdir(parents=True)
    lines = [f'{{"step": {i}, "my/odd/kl": {0.01 if i < 100 else 3.0}}}\n' for i in range(200)]
    (run / "metrics.jsonl").write_text("".join(lines))
    (tmp_path / "sentinel.toml").write_text('paths = ["runs"]\n[signals]\n"my/odd/kl" = "kl"\n')
    return run
