"""sentinel.toml: each bad one, named for its defect, begins with the line it has to give."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.calibration.page_rates import Rate
from sentinel.common.errors import ConfigError
from sentinel.common.state_dir import default_state_dir, state_dir_option
from sentinel.config.file import Config, json_schema, load
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from tests.chosen_detectors import choose_detectors

BAD = sorted((Path(__file__).parent / "configs").glob("*.bad.toml"))
ROOT = Path(__file__).parents[2]


def problems(path):
    with pytest.raises(ConfigError) as caught:
        load(path)
    return [problem.removeprefix(f"{path}:").strip() for problem in caught.value.problems]


@pytest.mark.slow
@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name.removesuffix(".bad.toml"))
def test_a_defect_is_named_with_its_place_and_the_mend(path):
    wanted = path.read_text().splitlines()[0].removeprefix("# ")
    assert problems(path) == [wanted]


def test_every_defect_gets_its_line(tmp_path):
    file = tmp_path / "sentinel.toml"
    file.write_text("pats = []\n[signals]\na = 'los'\n")
    assert problems(file) == [
        "3: signals.a: 'los' is unknown (did you mean 'loss'?)",
        "1: pats: unknown key (did you mean 'paths'?)",
    ]


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert problems(tmp_path / "none.toml") == ["No such file or directory"]


def test_a_file_that_is_not_text_is_named(tmp_path):
    file = tmp_path / "sentinel.toml"
    file.write_bytes(b"a = '\xff'")
    assert problems(file) == ["not UTF-8 at byte 5"]


def test_settings_reach_detectors_and_signals(tmp_path):
    file = tmp_path / "sentinel.toml"
    file.write_text(
        "paths = ['runs', '/data']\n"
        "[detectors.kl-blowup]\ncritical_per_token = 3\n"
        "[detectors.entropy-collapse]\nenabled = false\n"
        "[signals]\n'my/odd/kl' = 'kl'\n'aux/loss' = 'ignore'\n"
    )
    config = load(file)
    assert config.paths == [tmp_path / "runs", Path("/data")]
    assert config.parameters["kl-blowup"] == {"critical_per_token": 3.0}
    assert not config.parameters["entropy-collapse"]
    by_default = {name for name, detector in all_detectors().items() if detector.enabled}
    assert {d.name for d in config.enabled_detectors} == by_default - {"entropy-collapse"}
    assert config.signals == {"my/odd/kl": Signal.KL, "aux/loss": "ignore"}


def test_what_a_detector_declares_holds_until_the_file_says_otherwise(monkeypatch):
    off = {name: replace(d, enabled=name != "kl-blowup") for name, d in all_detectors().items()}
    choose_detectors(monkeypatch, off)
    assert "kl-blowup" not in {d.name for d in Config().enabled_detectors}
    on = Config.model_validate({"detectors": {"kl-blowup": {"enabled": True}}})
    assert "kl-blowup" in {d.name for d in on.enabled_detectors}


def test_without_sinks_the_terminal_is_told():
    assert [sink.name for sink in Config().sinks] == ["terminal"]


def test_a_stricter_detector_asks_for_a_multiple_of_its_thresholds(tmp_path):
    file = tmp_path / "sentinel.toml"
    file.write_text("[detectors.entropy-collapse]\nstricter = 2\ncritical_share = 0.5\nmost_capped = 0.9\n")
    parameters = load(file).parameters["entropy-collapse"]
    assert (parameters["critical_share"], parameters["warning_share"]) == (0.25, 0.1)
    assert parameters["most_capped"] == 0.9, "no threshold that a factor moves"
    file.write_text("[detectors.entropy-collapse]\nstricter = 0.5\n")
    with pytest.raises(ConfigError, match="stricter"):
        load(file)


def json_schema_words(items):
    """The words that the items of a list may be."""
    return items.get("enum") or [items["const"]]


def test_the_schema_holds_every_threshold():
    definitions = json_schema()["$defs"]
    for name, detector in all_detectors().items():
        properties = definitions[name]["properties"]
        factor = {"stricter"} if detector.stricter else set()
        assert set(properties) == {"enabled", "informs", *factor, *detector.parameters}
        assert properties["enabled"]["default"] == detector.enabled
        assert {*json_schema_words(properties["informs"]["items"])} == {*detector.variants}
        for parameter, declared in detector.parameters.items():
            assert properties[parameter]["default"] == declared.default
            assert properties[parameter]["description"] == declared.meaning


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"STATE_DIRECTORY": "/var/lib/sentinel", "XDG_STATE_HOME": "/x"}, Path("/var/lib/sentinel")),
        ({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, Path("/var/lib/a")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/sentinel")),
        ({}, Path.home() / ".local/state/sentinel"),
    ],
)
def test_the_state_lives_where_the_system_says(environment, wanted):
    assert default_state_dir(environment) == wanted


def test_a_command_is_told_where_the_state_is_unless_it_knows(monkeypatch):
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/sentinel")
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert state_dir_option(Path("/var/lib/sentinel")) == " --state-dir /var/lib/sentinel"
    assert state_dir_option(Path("/my state")) == " --state-dir '/my state'"
    assert state_dir_option(Path("/x/sentinel")) == ""
    assert state_dir_option(Path("/x/sentinel/runs-0a1b2c3d")) == "", (
        "a command finds what holds its incident"
    )


def test_the_example_is_fine():
    assert load(ROOT / "deploy" / "sentinel.toml").sinks


@pytest.mark.parametrize(
    ("written", "wanted"),
    [("9464", "127.0.0.1:9464"), ('"0.0.0.0:80"', "0.0.0.0:80"), ('"[::1]:80"', "[::1]:80")],
)
def test_where_the_watch_listens(tmp_path, written, wanted):
    (tmp_path / "sentinel.toml").write_text(f"listen = {written}")
    assert str(load(tmp_path / "sentinel.toml").listen) == wanted


@pytest.mark.parametrize("written", ["true", "70000", '"host"', "[1]"])
def test_an_address_that_none_can_listen_on(tmp_path, written):
    (tmp_path / "sentinel.toml").write_text(f"listen = {written}")
    with pytest.raises(ConfigError, match="listen: should be a port"):
        load(tmp_path / "sentinel.toml")


def test_an_included_file_gives_the_detectors_that_this_one_does_not_set(tmp_path):
    file = tmp_path / "sentinel.toml"
    other = tmp_path / "calibration.toml"
    other.write_text("[detectors.kl-blowup]\ncritical_per_token = 3\ninforms = ['far']\n")
    file.write_text("include = ['calibration.toml']\n[detectors.kl-blowup]\ncritical_per_token = 4\n")
    config = load(file)
    assert config.parameters["kl-blowup"] == {"critical_per_token": 4.0}
    assert [d.informs for d in config.enabled_detectors if d.informs] == [{"far"}]


def test_an_included_file_gives_its_promise(tmp_path):
    file = tmp_path / "sentinel.toml"
    other = tmp_path / "calibration.toml"
    table = "[calibration]\nmade_at = 2026-03-01T12:00:00Z\npages_per_run = 0.01\nruns = 340\npages = 2\n"
    other.write_text(table)
    file.write_text("include = ['calibration.toml']\n")
    promise = load(file).calibration
    assert (promise.since, promise.rate) == (1772366400.0, Rate(2, 340))
    file.write_text(f"include = ['calibration.toml']\n{table.replace('340', '500')}")
    assert load(file).calibration.runs == 500, "this file comes first"


def test_a_mistake_in_an_included_file_is_named_there(tmp_path):
    file = tmp_path / "sentinel.toml"
    other = tmp_path / "calibration.toml"
    other.write_text("[detectors.kl-blowup]\ninforms = ['fart']\n")
    file.write_text("include = ['calibration.toml']\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert [*caught.value.problems] == [
        f"{other}:2: detectors.kl-blowup.informs[0]: 'fart' is unknown (did you mean 'far'?)"
    ]


def test_a_file_cannot_include_one_that_includes_it(tmp_path):
    file = tmp_path / "sentinel.toml"
    file.write_text("include = ['sentinel.toml']\n")
    assert problems(file) == [
        "1: the file: a file that is included cannot include others; name them all in one file"
    ]
