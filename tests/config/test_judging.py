"""What holds without a configuration is what an empty one says."""

from sentinel.config.file import Config
from sentinel.config.judging import Defaults


def test_the_defaults_are_those_of_an_empty_configuration():
    empty = Config()
    defaults = Defaults()
    assert [*defaults.enabled_detectors] == [*empty.enabled_detectors]
    assert dict(defaults.parameters) == empty.parameters
    assert dict(defaults.signals) == empty.signals
    assert tuple(defaults.forms) == empty.forms
    assert [*defaults.policies] == empty.policies
