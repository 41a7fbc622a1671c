"""Which state a command means: each thing that is watched has its own."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from sentinel.cli.options import beside_a_watch
from sentinel.storage.lock import sole_watcher
from sentinel.storage.states import one_of, state_of_config, state_of_paths
from tests.tools.docs import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def projects(sentinel, tmp_path):
    """Two directories with a run each, both watched by name from the directory."""
    for name, sample in (("one", "kl-blowup"), ("two", "non-finite-metric")):
        shutil.copytree(ROOT / "sample_logs" / sample, tmp_path / name / "runs" / sample)
        os.chdir(tmp_path / name)
        assert sentinel("watch", "runs", "--once").status == 0
    return tmp_path


def runs_of(sentinel):
    return [Path(run["path"]).name for run in json.loads(sentinel("status", "--format", "json").out)["runs"]]


def test_two_projects_do_not_meet(sentinel, projects):
    os.chdir(projects / "one")
    assert runs_of(sentinel) == ["kl-blowup"]
    os.chdir(projects / "two" / "runs" / "non-finite-metric")
    assert runs_of(sentinel) == ["non-finite-metric"]


def test_a_second_project_can_be_watched_beside_the_first(sentinel, projects, monkeypatch):
    with sole_watcher(state_of_paths([projects / "one" / "runs"])):
        os.chdir(projects / "two")
        assert sentinel("watch", "runs", "--once").status == 0
        os.chdir(projects / "one")
        refused = sentinel("watch", "runs", "--once")
    assert refused.status == 2
    assert "end it, or name another --state-dir" in refused.err


def test_from_elsewhere_a_command_names_the_states_and_what_each_is_of(sentinel, projects):
    os.chdir(projects)
    (projects / "elsewhere").mkdir()
    os.chdir(projects / "elsewhere")
    told = sentinel("status")
    assert told.status == 2
    assert told.err.startswith("sentinel: 2 watches have a state here; name one of them:\n")
    options = re.findall(r"--state-dir (\S+)   # of (\S+)", told.err)
    assert [of for _, of in options] == [str(projects / name / "runs") for name in ("one", "two")]
    assert sentinel("status", "--state-dir", options[0][0]).status == 0


def test_an_incident_is_found_from_anywhere(sentinel, projects):
    os.chdir(projects / "two")
    body = json.loads(sentinel("status", "--format", "json").out)
    incident = next(one for one in body["incidents"] if one["detector"] == "non-finite-metric")
    os.chdir(projects)
    shown = sentinel("show", incident["id"])
    assert "non-finite-metric" in shown.out
    assert "--state-dir" not in shown.out
    assert sentinel("ack", incident["id"]).status == 0


def test_a_configuration_has_the_same_state_whatever_it_names(sentinel, projects):
    os.chdir(projects / "one")
    config = projects / "one" / "sentinel.toml"
    config.write_text('paths = ["runs"]\n')
    assert sentinel("watch", "--once").status == 0
    assert (state_of_config(config) / "sentinel.sqlite").is_file()
    config.write_text('paths = ["runs", "more"]\n')
    assert runs_of(sentinel) == ["kl-blowup"]
    os.chdir(projects)
    assert sentinel("status", "--config", config).status == 0


def test_the_shares_of_a_tree_have_a_state_each(projects):
    runs = [projects / "one" / "runs"]
    assert len({state_of_paths(runs, share) for share in ("", "0/2", "1/2")}) == 3


def test_one_state_needs_no_choice(projects):
    state = state_of_paths([projects / "one" / "runs"])
    assert one_of([state]) == state


def test_a_command_that_judges_paths_finds_the_state_of_their_watch(projects):
    os.chdir(projects)
    one = beside_a_watch(None, None, ["one/runs"])
    assert one.state_dir == state_of_paths([projects / "one" / "runs"])
