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
    "tools-down.jsonl": ("tools-healthy.jsonl", "tool-failures", "N-tool-failures"),
    "tools-loops.jsonl": ("tools-healthy.jsonl", "completion-length-drift", "N-tool-loops"),
    "resumed-sick.log": ("resumed-healthy.log", "console-error", "N-checkpoint-cut"),
}


def judged(name):
    (run,) = replay([LOGS / name], Config(), lambda *_: None).runs
    return run


def found(name):
    run = judged(name)
    assert any(stream.attempt.series for stream in run.run_pipeline.log.streams.values()), "no row was judged"
    incidents = run.incidents.values()
    return {(one.detector, cause.id) for one in incidents for cause in one.causes}


@pytest.mark.long
@pytest.mark.parametrize("sick", FOUND)
def test_a_training_that_goes_wrong_is_found_and_its_twin_is_not(sick):
    healthy, detector, entry = FOUND[sick]
    assert (detector, entry) in found(sick)
    assert detector not in {name for name, _ in found(healthy)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shapes-sick.log", ["N-recompile"]),
        ("shapes-healthy.log", []),
        ("marked-sick.log", ["N-no-generation-mask"]),
        ("marked-healthy.log", []),
    ],
)
def test_a_line_that_ends_no_training_is_worth_a_look(name, told):
    assert [remark.entry for remark in judged(name).run_pipeline.log.console.remarks.values()] == told


@pytest.mark.slow
def test_a_healthy_training_with_probes_is_left_alone():
    assert not found("probed-healthy.jsonl")


@pytest.mark.slow
def test_a_sampler_of_fewer_bits_whose_gap_does_not_grow_is_left_alone():
    assert not found("rounded-healthy.log")


TIMES = [
    ("shards", "grad_norm", 0.5**0.5),  # the norm of one of two shards
    ("mixed-norm", "grad_norm", 4 / 3),  # the dense layers count twice
    ("packed", "loss", 0.9),  # a mask over packed documents, which hides nothing of the one before
    ("packed", "eval_loss", 1.09),
    ("items", "loss", 8),  # the number of accumulated batches
    ("items", "grad_norm", 8),
    ("adapters", "lora/scaled_norm", 1 / 8),  # the root of the rank
    ("muon", "update_ratio/square", 0.64),
    ("muon", "update_ratio/narrow", 0.35),  # a matrix of another shape, whose update has another size
    ("routing", "mismatch_kl", 19),  # the experts that one engine chose and the other did not
    ("flows", "diffusion/loss_by_timestep/0.97-1.0", 1.2),
    ("critic", "rollout/ep_rew_mean", 3.6),  # a cost: the reward of a pendulum is at most 0
    ("eight-bits", "loss", 2),  # most values beside an outlier become zero
]
"""How many times larger a metric is where a training goes wrong that no metric alone can tell."""


def pairs(name, metric):
    """The values of a metric in the sick training and in its twin."""
    sick, healthy = (
        [
            float(row[metric])
            for row in map(ast.literal_eval, next(LOGS.glob(f"{name}-{kind}.*")).read_text().splitlines())
            if metric in row
        ]
        for kind in ("sick", "healthy")
    )
    return [*zip(sick, healthy, strict=True)]


@pytest.mark.parametrize(("name", "metric", "times"), TIMES)
def test_a_metric_is_as_much_larger_as_its_page_says(name, metric, times):
    assert median(sick / healthy for sick, healthy in pairs(name, metric)) == pytest.approx(times, rel=0.1)


def test_a_temperature_of_four_leaves_a_sixteenth_of_the_gradient():
    sick, healthy = pairs("distilled", "grad_norm/soft")[0]
    assert sick / healthy == pytest.approx(1 / 16, rel=0.1)
