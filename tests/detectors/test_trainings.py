"""Small real trainings that go wrong in one way: each is found and named, its healthy twin is left alone."""

import ast
from pathlib import Path
from statistics import median

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay

LOGS = Path(__file__).parent / "trainings"
FOUND = {
    "adversaries-sick.jsonl": ("adversaries-healthy.jsonl", "discriminator-wins", "N-discriminator-wins"),
    "attention-sick.jsonl": ("attention-healthy.jsonl", "attention-logit-growth", "N-attention-logits"),
    "experts-sick.jsonl": ("experts-healthy.jsonl", "router-collapse", "N-router-collapse"),
    "policy-sick.log": ("policy-healthy.log", "entropy-explosion", "N-entropy-explosion"),
    "stale-sick.log": ("sampled-healthy.log", "off-policy-drift", "N-async-staleness"),
    "prefix-sick.log": ("sampled-healthy.log", "off-policy-drift", "N-stale-prefix-cache"),
    "truncated-sick.log": ("sampled-healthy.log", "off-policy-drift", "N-truncated-sampling"),
    "format-sick.log": ("format-healthy.log", "reward-zero-std", "N-format-reward"),
    "averages-sick.jsonl": ("averages-healthy.jsonl", "train-eval-mismatch", "N-ema-lag"),
    "flips-sick.jsonl": ("flips-healthy.jsonl", "loss-spike", "N-silent-corruption"),
    "loading-sick.jsonl": ("loading-healthy.jsonl", "loader-starvation", "N-loader-starved"),
}


def judged(name):
    (run,) = replay([LOGS / name], Config(), lambda *_: None).runs
    return run


def found(name):
    incidents = judged(name).incidents.values()
    return {(one.detector, cause.id) for one in incidents for cause in one.causes}


@pytest.mark.long
@pytest.mark.parametrize("sick", FOUND)
def test_a_training_that_goes_wrong_is_found_and_its_twin_is_not(sick):
    healthy, detector, entry = FOUND[sick]
    assert (detector, entry) in found(sick)
    assert detector not in {name for name, _ in found(healthy)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "told"), [("shapes-sick.log", ["N-recompile"]), ("shapes-healthy.log", [])])
def test_a_model_that_is_compiled_for_each_length_is_worth_a_look(name, told):
    assert [remark.entry for remark in judged(name).tracker.log.console.remarks.values()] == told


@pytest.mark.slow
def test_a_healthy_training_with_probes_is_left_alone():
    assert not found("probed-healthy.jsonl")


@pytest.mark.slow
def test_a_sampler_of_fewer_bits_whose_gap_does_not_grow_is_left_alone():
    assert not found("rounded-healthy.log")


def times(name, metric):
    """How many times larger a metric of the sick training is: the median over the steps."""
    sick, healthy = (
        [
            float(row[metric])
            for row in map(ast.literal_eval, next(LOGS.glob(f"{name}-{kind}.*")).read_text().splitlines())
            if metric in row
        ]
        for kind in ("sick", "healthy")
    )
    return median(one / other for one, other in zip(sick, healthy, strict=True))


def test_the_norm_of_one_of_two_shards_is_smaller_by_the_root_of_two():
    assert times("shards", "grad_norm") == pytest.approx(0.5**0.5, rel=0.1)


def test_a_mask_over_packed_documents_lowers_the_training_loss_and_raises_that_of_single_ones():
    assert times("packed", "loss") == pytest.approx(0.9, rel=0.05)
    assert times("packed", "eval_loss") == pytest.approx(1.09, rel=0.05)


@pytest.mark.parametrize("metric", ["loss", "grad_norm"])
def test_a_loss_that_ignores_the_number_of_tokens_is_larger_by_the_accumulation(metric):
    assert times("items", metric) == pytest.approx(8, rel=0.1)
