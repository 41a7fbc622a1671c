"""Simulated faults of reinforcement learning and of preference training."""

import numpy as np

from studies.figures.healthy import policy_of_control, policy_of_language, preferences
from studies.figures.shapes import ONSET, Floats, Random, Run, Shape


def is_clipped_often(random: Random, shape: Shape) -> Run:
    """PPO clips half of the samples, and what the reward had gained is lost."""
    level = 0.1 + 0.4 * shape.since()
    run = policy_of_control(random, shape)
    healthy_reward = run.logged["reward"]

    def reward() -> Floats:
        curve = healthy_reward()
        return curve - shape.since() * (curve - curve[0])

    return run.but(clip_fraction=lambda: shape.noisy(random, level).clip(0, 1), reward=reward)


def runs_away(random: Random, shape: Shape) -> Run:
    """The KL to the reference grows to 4 nats per token."""
    run = policy_of_language(random, shape)
    near = run.logged["kl"]
    return run.but(kl=lambda: near() + 4 * shape.noisy(random, shape.since()))


def never_stops(random: Random, shape: Shape) -> Run:
    """Nine in ten completions run into the cap."""
    share = 0.05 + 0.85 * shape.since()
    return policy_of_language(random, shape).but(
        clipped_completion_ratio=lambda: random.binomial(64, share) / 64
    )


def rambles(random: Random, shape: Shape) -> Run:
    """Completions become four times as long, and the reward falls to half."""
    since = shape.since()
    return policy_of_language(random, shape).but(
        completion_length=lambda: shape.noisy(random, 200 * 4**since),
        reward=lambda: 0.6 - 0.3 * since + 0.3 * shape.noise * shape.wander(random),
    )


def stops_exploring(random: Random, shape: Shape) -> Run:
    """The entropy falls to a fiftieth, and the reward stays where it was."""
    return policy_of_language(random, shape).but(
        entropy=lambda: shape.noisy(random, 0.02 ** shape.since()),
        reward=lambda: 0.3 + 0.3 * shape.noise * shape.wander(random),
    )


def drifts_off(random: Random, shape: Shape) -> Run:
    """Trainer and sampler come to differ by half a nat per token."""
    return policy_of_language(random, shape).but(
        sampling_logp_difference=lambda: shape.noisy(random, 0.02 + 0.5 * shape.since(), 2)
    )


def writes_noise(random: Random, shape: Shape) -> Run:
    """The entropy falls, turns, and grows to four nats per token; the reward falls to a quarter."""
    since = shape.since()
    return policy_of_language(random, shape).but(
        entropy=lambda: shape.noisy(random, 0.4 + 0.4 * np.exp(-shape.time / 0.1) + 4 * since),
        reward=lambda: 0.4 - 0.3 * since + 0.2 * shape.noise * shape.wander(random),
    )


def loses_its_tool(random: Random, shape: Shape) -> Run:
    """Most calls of the tool fail, and the reward falls to a third."""
    since = shape.since()
    return policy_of_language(random, shape).but(
        tool_failure_share=lambda: random.binomial(64, 0.05 + 0.8 * since) / 64,
        reward=lambda: 0.6 - 0.4 * since + 0.3 * shape.noise * shape.wander(random),
    )


def repeats_itself(random: Random, shape: Shape) -> Run:
    """The completions of a prompt become near copies."""
    return policy_of_language(random, shape).but(
        ebft_diversity=lambda: shape.noisy(random, 0.05 + 1.6 * shape.since())
    )


def loses_reward(random: Random, shape: Shape) -> Run:
    """All that was gained is lost again."""
    gained = 1 - np.exp(-shape.time / 0.1)
    curve = 300 * (0.1 + gained * (1 - shape.since()))
    return policy_of_control(random, shape).but(
        reward=lambda: curve + 100 * shape.noise * shape.wander(random)
    )


def gains_nothing(random: Random, shape: Shape) -> Run:
    """The reward rests on one number below its best, in training and in evaluations."""
    curve = np.interp(shape.time, [0, 0.1, ONSET], [20, 120, 60])
    early = shape.time < ONSET
    rests = np.where(early, curve + 20 * shape.noise * shape.wander(random), 60.25)
    return policy_of_control(random, shape).but(
        reward=lambda: rests, eval_reward=lambda: rests[shape.evaluated]
    )


def earns_alike(random: Random, shape: Shape) -> Run:
    """Nearly all groups lose their spread."""
    share = 0.3 + 0.67 * shape.since()
    return policy_of_language(random, shape).but(frac_reward_zero_std=lambda: random.binomial(8, share) / 8)


def scales_with_its_reward(random: Random, shape: Shape) -> Run:
    """The spread of the reward varies by more than its size, and the gradient norm with it."""
    spread = 0.3 * np.exp(1.2 * random.standard_normal(shape.points))
    return policy_of_language(random, shape).but(
        reward_std=lambda: spread, grad_norm=lambda: shape.noisy(random, spread)
    )


def prefers_nothing(random: Random, shape: Shape) -> Run:
    """The policy stays the reference."""
    run = preferences(random, shape)
    return run.but(
        preference_margin=lambda: 0.01 * shape.noise * shape.wander(random),
        preference_loss=lambda: np.log(2) * np.exp(0.01 * shape.noise * shape.wander(random)),
        preference_accuracy=lambda: random.binomial(16, np.full(shape.points, 0.5)) / 16,
        learning_rate=lambda: np.full(shape.points, 1e-9),
    )


def displaces(random: Random, shape: Shape) -> Run:
    """Both answers become unlikely, and the margin stays."""
    fall = 1 + 2 * shape.since()

    def log_probability() -> Floats:
        return -200 * fall * np.exp(0.15 * shape.wander(random, rho=0.0))

    return preferences(random, shape).but(
        logps_chosen=log_probability,
        logps_rejected=log_probability,
        preference_margin=lambda: 1 - 0.3 * shape.since() + 0.1 * shape.noise * shape.wander(random),
    )


def empties_its_buffer(random: Random, shape: Shape) -> Run:
    """The replay buffer begins again at the onset."""
    since = np.where(shape.time < ONSET, shape.time, shape.time - ONSET)
    return policy_of_control(random, shape).but(replay_size=lambda: (1000 + 1e6 * since).round())
