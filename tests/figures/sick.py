"""Simulated faults: for each detector the one that it is made for, in a run that is healthy otherwise."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tests.figures.healthy import (
    learning,
    policy_of_control,
    policy_of_language,
    preferences,
    scaler,
    supervised,
)
from tests.figures.shapes import BACK, ONSET, Floats, Kind, Random, Run, Shape


def overfits(random: Random, shape: Shape) -> Run:
    """The held-out loss turns round and rises by a half."""
    curve = learning(random, shape.time)
    best = np.interp(ONSET, shape.time, curve)
    rising = best * (1 + 0.75 * (shape.time - ONSET))
    return supervised(random, shape, curve, np.where(shape.time < ONSET, curve, rising))


def learns_nothing_of_use(random: Random, shape: Shape) -> Run:
    """The training loss falls to a twentieth, and the held-out loss stays where it began."""
    curve = 2.3 * (0.05 + 0.95 * np.exp(-shape.time / 0.1))
    return supervised(random, shape, curve, np.full(shape.points, 2.3))


def forgets(random: Random, shape: Shape) -> Run:
    """Each evaluation after the first is worse by two fifths."""
    later = np.arange(shape.points) > shape.evaluated[0]
    return supervised(random, shape, learning(random, shape.time), np.where(later, 1.4, 1.0))


def stands(random: Random, shape: Shape) -> Run:
    """The loss stays where it began."""
    return supervised(random, shape, np.full(shape.points, random.choice([np.log(10), 4.4])))


def rests(random: Random, shape: Shape) -> Run:
    """The loss falls for a twentieth of the run and rests at seven tenths of its start."""
    run = supervised(random, shape, 5 * (0.7 + 0.3 * np.exp(-shape.time / 0.02)))
    run = run.but(learning_rate=lambda: np.full(shape.points, 3e-4))
    return replace(run, settings={"max_steps": shape.steps})


def diverges(random: Random, shape: Shape) -> Run:
    """The loss rises to three times its level within a tenth of the run."""
    curve = learning(random, shape.time)
    level = np.interp(ONSET, shape.time, curve)
    rise = 1 + 2 * np.clip((shape.time - ONSET) / 0.1, 0, 1)
    return supervised(random, shape, np.where(shape.time < ONSET, curve, level * rise))


def spikes(random: Random, shape: Shape) -> Run:
    """One point in fifty is six times as high, and three are whatever the run's length."""
    run = supervised(random, shape)
    after = np.flatnonzero(shape.time > ONSET)
    hit = np.isin(np.arange(shape.points), random.choice(after, max(3, len(after) // 50), replace=False))
    loss = run.logged["loss"]
    return run.but(loss=lambda: np.where(hit, 6, 1) * loss())


def breaks(random: Random, shape: Shape) -> Run:
    """The loss is NaN from the onset on."""
    run = supervised(random, shape)
    loss = run.logged["loss"]
    return run.but(loss=lambda: np.where(shape.time < ONSET, loss(), np.nan))


def answers_alike(random: Random, shape: Shape) -> Run:
    """The accuracy is the share of one class."""
    return supervised(random, shape).but(eval_accuracy=lambda: np.full(shape.evaluations, 0.5276))


def finds_nothing(random: Random, shape: Shape) -> Run:
    """No box counts."""
    return supervised(random, shape).but(mean_average_precision=lambda: np.zeros(shape.evaluations))


def explodes(random: Random, shape: Shape) -> Run:
    """The gradient norm grows fiftyfold and the loss fourfold."""
    run, since = supervised(random, shape), shape.since()
    norm, loss = run.logged["grad_norm"], run.logged["loss"]
    return run.but(grad_norm=lambda: norm() * 50**since, loss=lambda: loss() * (1 + 3 * since))


def vanishes(random: Random, shape: Shape) -> Run:
    """The gradient norm falls to a ten-thousandth, and the loss has not moved."""
    run = supervised(random, shape, np.full(shape.points, 2.3))
    norm = run.logged["grad_norm"]
    return run.but(grad_norm=lambda: norm() * 1e-4 ** shape.since())


def is_cut(random: Random, shape: Shape) -> Run:
    """The gradient norm is exactly zero from the first point on."""
    return supervised(random, shape, np.full(shape.points, 2.3)).but(grad_norm=lambda: np.zeros(shape.points))


def is_clipped(random: Random, shape: Shape) -> Run:
    """Each norm is logged after it was clipped to 0.01."""
    run = supervised(random, shape)
    norm = run.logged["grad_norm"]
    return run.but(grad_norm=lambda: np.minimum(0.01, 20 * norm()))


def dies(random: Random, shape: Shape) -> Run:
    """Nearly all units of a layer die."""
    since = shape.since()
    level = 0.45 + 0.5 * since
    return supervised(random, shape).but(dead_fraction=lambda: shape.noisy(random, level, 0.2).clip(0, 1))


def steps_too_little(random: Random, shape: Shape) -> Run:
    """Each step moves a weight by a millionth."""
    return supervised(random, shape).but(update_ratio=lambda: shape.noisy(random, 1e-6, 2))


def ends_early(random: Random, shape: Shape) -> Run:
    """The schedule is over after a third of the planned steps."""
    run = supervised(random, shape)
    rate = 1e-4 * np.maximum(0, 1 - shape.time / ONSET)
    return replace(run.but(learning_rate=lambda: rate), settings={"max_steps": shape.steps})


def overflows(random: Random, shape: Shape) -> Run:
    """Gradients grow without end, so the scaler backs off again and again."""
    fall = 40 * np.maximum(0, shape.time - ONSET)
    return supervised(random, shape).but(loss_scale=lambda: scaler(random, shape, fall))


def counts_padding(random: Random, shape: Shape) -> Run:
    """The loss is a mean over padding too."""
    run = supervised(random, shape)
    padding, loss = run.logged["pad_fraction"](), run.logged["loss"]
    return run.but(pad_fraction=lambda: padding, loss=lambda: loss() * (1 - padding))


def slows_down(random: Random, shape: Shape) -> Run:
    """Training runs at a sixth of its speed."""
    run = supervised(random, shape)
    speed = run.logged["throughput"]
    return run.but(throughput=lambda: speed() * 6 ** -shape.since())


def leaks(random: Random, shape: Shape) -> Run:
    """Memory grows by half, evenly."""
    return supervised(random, shape).but(
        gpu_memory=lambda: shape.noisy(random, 10 * (1 + 0.5 * shape.time), 0.2)
    )


def restarts(random: Random, shape: Shape) -> Run:
    """The run is resumed with a schedule that begins again."""
    once = 1e-4 * np.minimum(1, shape.time / 0.05) * (1 - shape.time)
    run = supervised(random, replace(shape, resumed=ONSET)).but(learning_rate=lambda: once)
    again = np.interp(shape.time - ONSET + BACK, [0, 0.05, 1], [0, 1e-4, 0])
    return replace(run, again={"learning_rate": lambda: again})


def is_clipped_often(random: Random, shape: Shape) -> Run:
    """PPO clips half of the samples."""
    level = 0.1 + 0.4 * shape.since()
    return policy_of_control(random, shape).but(clip_fraction=lambda: shape.noisy(random, level).clip(0, 1))


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


def loses_reward(random: Random, shape: Shape) -> Run:
    """All that was gained is lost again."""
    gained = 1 - np.exp(-shape.time / 0.1)
    curve = 300 * (0.1 + gained * (1 - shape.since()))
    return policy_of_control(random, shape).but(
        reward=lambda: curve + 100 * shape.noise * shape.wander(random)
    )


def gains_nothing(random: Random, shape: Shape) -> Run:
    """The reward rests on one number below its best."""
    curve = np.interp(shape.time, [0, 0.1, ONSET], [20, 120, 60])
    early = shape.time < ONSET
    return policy_of_control(random, shape).but(
        reward=lambda: np.where(early, curve + 20 * shape.noise * shape.wander(random), 60.25)
    )


def earns_alike(random: Random, shape: Shape) -> Run:
    """Nearly all groups lose their spread."""
    share = 0.3 + 0.67 * shape.since()
    return policy_of_language(random, shape).but(frac_reward_zero_std=lambda: random.binomial(8, share) / 8)


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


SICK: Mapping[str, tuple[Kind, float]] = {
    "class-collapse": (answers_alike, 0),
    "clip-fraction-saturation": (is_clipped_often, ONSET),
    "clipped-completion-ratio": (never_stops, ONSET),
    "completion-length-drift": (rambles, ONSET),
    "dead-activation-growth": (dies, ONSET),
    "entropy-collapse": (stops_exploring, ONSET),
    "exploding-grad-norm": (explodes, ONSET),
    "flat-loss-at-init": (stands, 0),
    "generalization-gap": (overfits, ONSET),
    "kl-blowup": (runs_away, ONSET),
    "likelihood-displacement": (displaces, ONSET),
    "loss-divergence": (diverges, ONSET),
    "loss-plateau": (rests, 0.05),
    "loss-scale-collapse": (overflows, ONSET),
    "loss-scales-with-padding": (counts_padding, 0),
    "loss-spike": (spikes, ONSET),
    "lr-schedule-mismatch": (ends_early, ONSET),
    "memory-growth": (leaks, 0),
    "non-finite-metric": (breaks, ONSET),
    "off-policy-drift": (drifts_off, ONSET),
    "preference-margin-stall": (prefers_nothing, 0),
    "resume-discontinuity": (restarts, ONSET),
    "pretrained-regression": (forgets, 0),
    "reward-collapse": (loses_reward, ONSET),
    "reward-stagnation": (gains_nothing, ONSET),
    "reward-zero-std": (earns_alike, ONSET),
    "saturated-gradient-clipping": (is_clipped, 0),
    "throughput-shift": (slows_down, ONSET),
    "train-eval-mismatch": (learns_nothing_of_use, 0),
    "update-ratio-out-of-band": (steps_too_little, 0),
    "vanishing-grad-norm": (vanishes, ONSET),
    "zero-eval-metric": (finds_nothing, 0),
    "zero-gradient": (is_cut, 0),
}
"""By detector: the fault that it is made for, and the share of the run at which that begins."""
