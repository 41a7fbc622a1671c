"""Healthy simulated runs: supervised training, reinforcement learning, preferences, adversarial networks.

Each family logs what its frameworks log, with the noise that such logs have: batches in the loss, a few
prompt groups in a share, heavy tails in an estimate of the KL, episodes in a mean of the last hundred.
"""

from functools import cache
from typing import Any

import numpy as np

from studies.figures.curves import learning, norms, scaler, scheduled
from studies.figures.shapes import Floats, Kind, Random, Run, Shape

GROUPS = 1, 4, 8, 40  # prompt groups in a batch
COMPLETIONS = 8, 64


def epochs(random: Random, shape: Shape) -> tuple[Floats, dict[str, Any]]:
    """The epoch at each point, rounded as it is logged, and what the settings say of its length.

    An epoch has 5 to 200 points. The settings count batches, of which a step may take several.
    """
    steps = shape.every * 10 ** random.uniform(0.7, 2.3)
    taken = int(random.choice([1, 1, 8]))
    settings: dict[str, Any] = {"gradient_accumulation_steps": taken}
    if random.random() < 0.8:
        settings |= {"steps_per_epoch": max(1, round(steps * taken))}
    return np.round(shape.every * np.arange(1, shape.points + 1) / steps, 2), settings


def memory(random: Random, shape: Shape) -> Floats:
    """GiB that rise while caches fill, and scatter with the lengths of the batches; or the peak so far."""
    level = 2 ** random.uniform(1, 6) * (1 - 0.3 * np.exp(-shape.time / 0.03))
    used = shape.noisy(random, level * (1 + 0.1 * random.random(shape.points)), 0.3)
    return np.maximum.accumulate(used) if random.random() < 0.5 else used


def supervised(
    random: Random, shape: Shape, loss: Floats | None = None, held_out: Floats | None = None
) -> Run:
    """A run with these curves of training and held-out loss, healthy ones if they are not given."""
    time = shape.time
    at = shape.evaluated
    rate, settings, warm_up = scheduled(random, shape)
    epoch, planned = epochs(random, shape)
    if loss is None:
        loss = learning(random, shape, warm_up / 2)
        if random.random() < 0.25:  # samples that were seen before are known better
            loss = loss * 0.9 ** np.minimum(epoch.astype(int), 3)
    if random.random() < 0.5:  # an untrained model guesses among all tokens
        settings |= {"vocab_size": max(2, round(np.exp(loss[0])))}
    held_out = loss * random.uniform(1, 1.3) if held_out is None else held_out
    learned = 1 - np.clip(loss / loss.max(), 0, 1)
    samples = int(random.choice([100, 500, 10_000]))
    speed = 10 ** random.uniform(0, 5)
    gradient = norms(random, shape)
    padding = random.uniform(0.1, 0.4)
    dead = random.uniform(0.3, 0.6)
    unit = random.choice([1, 1, 1 / np.log(2), 1.3])  # nats and bits per token, nats per word
    best = random.uniform(2, 30)
    soon = random.uniform(0.05, 0.3)
    fitted = time[at] + 1e-2

    @cache
    def held_out_loss() -> Floats:
        return shape.noisy(random, held_out[at], 0.3)

    def accuracy(learned: Floats, samples: int, noise: float) -> Floats:
        share = 0.1 + 0.8 * learned + 0.1 * noise * shape.wander(random, len(learned))
        return random.binomial(samples, share.clip(0, 1)) / samples

    def share(level: Floats | float) -> Floats:
        return shape.noisy(random, level, 0.3).clip(0, 1)

    def pace() -> Floats:
        waits = np.where(random.random(shape.points) < 0.01, 3, 1)  # for a checkpoint
        return np.asarray(shape.noisy(random, 1.0) / waits)

    return Run(
        shape,
        {
            "loss": lambda: shape.noisy(random, loss),
            "perplexity": lambda: np.exp(shape.noisy(random, loss, 0.3)),
            "accuracy": lambda: accuracy(learned, 64, shape.noise),
            "eval_loss": held_out_loss,
            "eval_perplexity": lambda: np.exp(unit * held_out_loss()),
            "eval_accuracy": lambda: accuracy(learned[at], samples, 0.3 * shape.noise),
            "mean_average_precision": lambda: share(0.6 * (1 - np.exp(-fitted / 0.2))),
            "mean_intersection_over_union": lambda: share(0.7 * (1 - np.exp(-fitted / 0.2))),
            "frechet_inception_distance": lambda: shape.noisy(
                random, best + 300 * np.exp(-time[at] / soon), 0.3
            ),
            "epoch": lambda: epoch,
            "learning_rate": lambda: rate,
            "grad_norm": gradient,
            "layer_grad_norm:first": lambda: shape.noisy(random, 0.01, 2),
            "layer_grad_norm:last": lambda: shape.noisy(random, 1.0, 2),
            "update_ratio": lambda: shape.noisy(random, 1e-3 * rate / rate.max() + 1e-7, 2),
            "weight_norm": lambda: 50 * (1 + 0.2 * time),
            "dead_fraction": lambda: np.clip(shape.noisy(random, dead * (1 + 0.2 * time)), 0, 0.85),
            "missing_tensors": lambda: np.zeros(shape.points),
            "unchanged_share": lambda: (random.random(shape.points) < 0.01).astype(float),  # skipped steps
            "training_share": lambda: np.ones(shape.points),
            "narrow_gradients": lambda: np.zeros(shape.points),
            "tensors_held_twice": lambda: np.zeros(shape.points),
            "scheduler_offset": lambda: -np.cumsum(random.random(shape.points) < 20 / shape.points),
            "loss_weight": lambda: shape.noisy(random, 1.0, 0.1),
            "batches_again": lambda: np.zeros(shape.points),
            "eval_input_shift": lambda: shape.noisy(random, 0.05, 2)[at],
            "pad_fraction": lambda: np.clip(padding + 0.08 * random.standard_normal(shape.points), 0, 0.9),
            "throughput": lambda: speed * pace(),
            "data_share": lambda: np.where(random.random(shape.points) < 0.01, 0.9, share(0.1)),
            "moe_auxiliary_loss": lambda: 2 + shape.noisy(random, 0.05 + 0.5 * np.exp(-time / 0.02), 2),
            "moe_max_violation": lambda: shape.noisy(random, 0.5 + 2 * np.exp(-time / 0.02)),
            "codebook_perplexity": lambda: 1 + shape.noisy(random, 200 * (1 - np.exp(-(time + 0.01) / 0.1))),
            "max_attention_logit": lambda: shape.noisy(random, 10 + 40 * (1 - np.exp(-time / 0.2))),
            "max_output_logit": lambda: shape.noisy(random, 3 + 20 * (1 - np.exp(-time / 0.2))),
            "log_partition": lambda: shape.noisy(random, 2.3 + 15 * (1 - np.exp(-time / 0.2))),
            "tokens_per_second": lambda: speed * pace(),
            "step_time": lambda: 1 / pace(),
            "mfu": lambda: 0.4 * pace().clip(0, 2),
            "gpu_memory": lambda: memory(random, shape),
            "host_memory": lambda: memory(random, shape),
            "free_shared_memory": lambda: shape.noisy(random, 8 * (0.9 + 0.1 * np.exp(-time / 0.03)), 0.3),
            "loss_scale": lambda: scaler(random, shape),
            "histogram_zero_share:activations": lambda: share(dead),
            "histogram_std:gradients": lambda: 1e-3 * gradient(),
            "histogram_kurtosis:gradients": lambda: shape.noisy(random, 5 + 20 * time, 3),
        },
        {**settings, **planned},
    )


def policy_of_language(random: Random, shape: Shape) -> Run:
    """GRPO and its kin: the reward rises, the entropy falls, the policy leaves its reference evenly."""
    time = shape.time
    noise = shape.noise
    learned = 1 - np.exp(-time / random.uniform(0.1, 0.5))
    low = random.uniform(0.05, 0.3)
    reward = low + random.uniform(0.3, 0.6) * learned
    groups = int(random.choice(GROUPS))
    completions = int(random.choice(COMPLETIONS))
    entropy = random.uniform(0.4, 1.5) * (0.2 + 0.8 * np.exp(-2 * time))
    length = random.uniform(80, 800)
    growth = random.choice([0.7, 1, 1.5])
    far = random.choice([0.02, 0.2])
    gap = random.uniform(0.005, 0.05)
    rate, settings, _ = scheduled(random, shape)

    def kl() -> Floats:
        hit = (random.random(shape.points) < 0.03) * random.pareto(1.1, shape.points)
        return np.asarray(far * (1e-4 + learned) * np.exp(2 * noise * shape.wander(random)) * (1 + 5 * hit))

    return Run(
        shape,
        {
            "reward": lambda: reward + noise * reward.max() * shape.wander(random),
            "reward_std": lambda: shape.noisy(random, 0.3 * (1 - 0.5 * learned)),
            "frac_reward_zero_std": lambda: random.binomial(groups, 0.1 + 0.5 * learned) / groups,
            "reward_function:format": lambda: np.clip(learned + 0.05 * shape.wander(random), 0, 1),
            "reward_function:answer": lambda: np.clip(reward + noise * shape.wander(random), 0, 1),
            "entropy": lambda: shape.noisy(random, entropy),
            "kl": kl,
            "completion_length": lambda: shape.noisy(random, length * growth**time),
            "completion_length_max": lambda: shape.noisy(random, 2.0 * length),
            "terminated_length": lambda: shape.noisy(random, 0.9 * length),
            "clipped_completion_ratio": lambda: (
                random.binomial(completions, 0.02 + 0.15 * (1 - learned)) / completions
            ),
            "clip_fraction": lambda: np.clip(0.05 + 0.1 * noise * shape.wander(random), 0, 1),
            "sampling_logp_difference": lambda: shape.noisy(random, gap, 2),
            "sampling_kl": lambda: shape.noisy(random, gap**2, 3),
            "sampling_probability_difference": lambda: shape.noisy(random, gap / 5, 2),
            "turns": lambda: shape.noisy(random, 3 * growth**time),
            "tool_failure_share": lambda: random.binomial(64, 0.05 + 0.3 * (1 - learned)) / 64,
            "importance_ratio_mean": lambda: 1 + 0.1 * noise * shape.wander(random),
            "importance_ratio_min": lambda: shape.noisy(random, 0.1, 2),
            "importance_ratio_max": lambda: shape.noisy(random, 3.0, 2),
            "ebft_alignment": lambda: shape.noisy(random, 0.3 + 0.5 * learned),
            "ebft_diversity": lambda: shape.noisy(random, 0.02 + 0.05 * learned),
            "ebft_cfm_loss": lambda: shape.noisy(random, 8.0 - 5 * learned),
            "policy_loss": lambda: 0.1 * noise * shape.wander(random),
            "grad_norm": norms(random, shape),
            "learning_rate": lambda: rate,
        },
        settings,
    )


def policy_of_control(random: Random, shape: Shape) -> Run:
    """PPO and its kin: a mean return with a long memory, or single episodes; updates in the trust region."""
    time = shape.time
    noise = shape.noise
    late = random.uniform(0.1, 0.5)
    rise = 1 - np.exp(-time / 0.2) if random.random() < 0.5 else 1 / (1 + np.exp(-(time - late) / 0.05))
    if random.random() < 0.25:  # it may fall back for a while
        rise = rise - 0.4 * np.exp(-(((time - random.uniform(0.3, 0.8)) / 0.03) ** 2))
    start, end = random.choice([[20, 500], [-1500, -150], [-20, 20], [0, 1]])
    single = random.random() < 0.25
    spread, rho = (0.3, 0.0) if single else (0.5 * noise, 0.9)
    actions = random.choice([np.log(4), 1.4, 6.0])
    entropy = actions * (1 - random.uniform(0.3, 0.7) * time)
    far = random.uniform(0.003, 0.03)
    clipped = random.uniform(0.03, 0.15)

    def returns(spread: float, rho: float, n: int) -> Floats:
        curve = np.interp(np.linspace(0, 1, n), time, rise)
        return np.asarray(start + (end - start) * (curve + spread * shape.wander(random, n, rho)))

    return Run(
        shape,
        {
            "reward": lambda: returns(spread, rho, shape.points),
            "eval_reward": lambda: returns(0.5 * noise, 0.0, shape.evaluations),
            "episode_length": lambda: shape.noisy(random, 100 + 200 * rise),
            "policy_entropy": lambda: shape.noisy(random, entropy, 0.5),
            "approx_kl": lambda: shape.noisy(random, far * (1 + time), 2),
            "clip_fraction": lambda: np.clip(clipped * (1 + 2 * noise * shape.wander(random)), 0, 1),
            "value_clip_fraction": lambda: np.clip(0.1 * (1 + noise * shape.wander(random)), 0, 1),
            "replay_size": lambda: np.minimum(1e6, 1000 + 3e6 * time).round(),
            "observations_counted": lambda: 1 + (3e6 * time).round(),
            "explained_variance": lambda: np.clip(rise + noise * shape.wander(random), -1, 1),
            "value_loss": lambda: shape.noisy(random, 10 * (0.1 + np.abs(rise)), 3),
            "policy_loss": lambda: 0.1 * noise * shape.wander(random),
            "grad_norm": norms(random, shape),
            "learning_rate": lambda: 3e-4 * (1 - time),
            "throughput": lambda: shape.noisy(random, 1000.0),
        },
        {"max_steps": shape.steps} if random.random() < 0.5 else {},
    )


def preferences(random: Random, shape: Shape) -> Run:
    """DPO: the margin grows out of its noise, and both log-probabilities fall a little."""
    time = shape.time
    noise = shape.noise
    soon = random.uniform(0.05, 0.3) * min(
        1, 200 / shape.points
    )  # preferences are learned in some dozen points
    margin = random.uniform(0.5, 4) * (1 - np.exp(-time / soon))
    answer = random.uniform(50, 400)
    rate, settings, _ = scheduled(random, shape)

    def log_probability(fall: float) -> Floats:
        return -answer * (1 + fall * time) * np.exp(0.15 * shape.wander(random, rho=0.0))

    return Run(
        shape,
        {
            "preference_loss": lambda: np.log1p(np.exp(-margin)) * np.exp(noise * shape.wander(random)),
            "preference_margin": lambda: (
                margin * (1 + noise * shape.wander(random)) + 0.02 * shape.wander(random)
            ),
            "preference_accuracy": lambda: random.binomial(16, 0.5 + 0.4 * np.tanh(margin)) / 16,
            "logps_chosen": lambda: log_probability(0.05),
            "logps_rejected": lambda: log_probability(0.2),
            "grad_norm": norms(random, shape),
            "learning_rate": lambda: rate,
        },
        settings,
    )


def adversaries(random: Random, shape: Shape) -> Run:
    """Two networks of which neither wins: the discriminator leads by less or more, and not from the start."""
    lead = random.uniform(0, 1) * (1 - np.exp(-shape.time / random.uniform(0.05, 0.5)))
    return Run(
        shape,
        {
            "discriminator_loss": lambda: shape.noisy(random, 1.386 * 0.07**lead),
            "generator_loss": lambda: shape.noisy(random, 0.7 + 4 * lead),
        },
    )


FAMILIES: tuple[Kind, ...] = (supervised, policy_of_language, policy_of_control, preferences, adversaries)
