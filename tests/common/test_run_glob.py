"""A pattern for runs matches the same runs wherever one writes it."""

import pytest

from sentinel.common.run_glob import fits, run_glob

PATH = "/data/runs/ablation-1"


@pytest.mark.parametrize(
    "pattern",
    [
        "runs/ablation-*",
        "ablation-*",
        "./runs/ablation-1",
        "runs/",
        "/data/*",
        PATH,
        "*ablation*",
        "data/runs/",
    ],
)
def test_a_pattern_matches_the_end_of_a_path(pattern):
    assert fits(pattern, PATH)


@pytest.mark.parametrize(
    "pattern", ["uns/ablation-*", "ablation", "/runs/ablation-1", "ablation-", "tion-1", "ablation-1/x"]
)
def test_a_pattern_begins_at_a_directory(pattern):
    assert not fits(pattern, PATH)


def test_a_pattern_may_be_a_path_of_this_machine(tmp_path, monkeypatch):
    (tmp_path / "disk" / "runs").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    monkeypatch.chdir(tmp_path / "disk")
    monkeypatch.setenv("HOME", str(tmp_path))
    real = f"{tmp_path.resolve()}/disk/runs/a"
    for pattern in (f"{tmp_path}/data/runs/*", "~/data/runs/*", "../disk/r*/a", f"{tmp_path}/data/runs/"):
        assert fits(run_glob(pattern), real), pattern
    assert run_glob("runs/*") == "runs/*"
