"""Which detectors fit a run, and what it should log."""

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.runs.fit import fit


def fit_of(*signals):
    missing = {name: one.demand.missing(signals) for name, one in all_detectors().items()}
    return fit(signals, {name: names for name, names in missing.items() if names}, len(missing))


def test_a_language_model_is_asked_for_no_score_of_an_object_detector():
    found = fit_of("loss", "learning_rate")
    assert found.able < found.fitting < len(all_detectors()) / 2
    assert {*found.would_add} == {"grad_norm", "val_loss", "val_accuracy", "tokens_per_second"}
    assert found.able + sum(found.would_add.values()) == found.fitting


@pytest.mark.parametrize(
    ("signals", "asked", "spared"),
    [
        (("reward", "completion_length"), {"kl", "entropy"}, {"val_loss", "loss"}),
        (("reward", "policy_loss"), {"lr", "grad_norm"}, {"kl", "loss"}),
        (("preference_loss",), {"margin", "val_loss"}, {"reward", "loss"}),
        (("generator_loss", "discriminator_loss"), {"lr", "grad_norm"}, {"loss", "val_accuracy"}),
    ],
)
def test_a_run_is_asked_for_what_its_kind_can_log(signals, asked, spared):
    would_add = fit_of(*signals).would_add
    assert asked <= {*would_add}
    assert not spared & {*would_add}


def test_a_run_that_logs_all_of_it_is_asked_for_nothing():
    signals = ("loss", "eval_loss", "eval_accuracy", "learning_rate", "grad_norm", "tokens_per_second")
    found = fit_of(*signals)
    assert (found.able, found.would_add) == (found.fitting, {})
    assert str(found) == f"{found.able} of the {found.able} that fit"
