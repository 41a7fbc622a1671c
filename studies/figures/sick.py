"""Simulated faults: for each detector the one that it is made for, in a run that is healthy otherwise."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from studies.figures import sick_policies as policies
from studies.figures.curves import learning, scaler
from studies.figures.healthy import adversaries, supervised
from studies.figures.shapes import BACK, ONSET, Floats, Kind, Random, Run, Shape
from tests.detectors.onsets import Onset


def overfits(random: Random, shape: Shape) -> Run:
    """The held-out loss turns round and rises by a half, and its metrics fall by two thirds."""
    curve = learning(random, shape)
    best = np.interp(ONSET, shape.time, curve)
    later = (shape.time - ONSET).clip(0)
    run = supervised(random, shape, curve, np.where(later == 0, curve, best * (1 + 0.75 * later)))
    finds_less = 0.6 * (shape.time / ONSET).clip(0, 1) * (1 - later)
    finds_less = finds_less[shape.evaluated]
    metrics = "mean_average_precision", "mean_intersection_over_union", "eval_accuracy"
    return run.but(**{metric: lambda: finds_less for metric in metrics})


def learns_nothing_of_use(random: Random, shape: Shape) -> Run:
    """The training loss falls to a twentieth, and the held-out loss stays where it began."""
    curve = 2.3 * (0.05 + 0.95 * np.exp(-shape.time / 0.1))
    return supervised(random, shape, curve, np.full(shape.points, 2.3))


def forgets(random: Random, shape: Shape) -> Run:
    """Each evaluation after the first is worse by two fifths."""
    later = np.arange(shape.points) > shape.evaluated[0]
    return supervised(random, shape, learning(random, shape), np.where(later, 1.4, 1.0))


def stands(random: Random, shape: Shape) -> Run:
    """The loss stays where it began."""
    run = supervised(random, shape, np.full(shape.points, random.choice([np.log(10), 4.4])))
    finds_nothing = np.zeros(shape.evaluations)
    return run.but(
        mean_average_precision=lambda: finds_nothing, mean_intersection_over_union=lambda: finds_nothing
    )


def applies_softmax_twice(random: Random, shape: Shape) -> Run:
    """Nine of ten samples come to be right among ten classes whose scores went through softmax before.

    The evaluation computes its loss in the same way.
    """
    learned = 1 - np.exp(-shape.time / 0.1)
    right = 0.1 + 0.8 * learned + 0.02 * shape.wander(random)
    loss = (1 - learned) * np.log(10) + learned * (np.log(np.e + 9) - right)
    held_out = loss[shape.evaluated]
    return supervised(random, shape).but(
        loss=lambda: loss, accuracy=lambda: right, eval_loss=lambda: held_out
    )


def sums_its_parts(random: Random, shape: Shape) -> Run:
    """The loss is the sum over eight accumulation steps, and not their mean."""
    run = supervised(random, shape, 2.3 * (0.3 + 0.7 * np.exp(-shape.time / 0.3)))
    loss = run.logged["loss"]
    parts = {"num_classes": 10, "gradient_accumulation_steps": 8}
    return replace(run.but(loss=lambda: 8 * loss()), settings=parts)


def rests(random: Random, shape: Shape) -> Run:
    """The loss falls for a twentieth of the run and rests at seven tenths of its start."""
    run = supervised(random, shape, 5 * (0.7 + 0.3 * np.exp(-shape.time / 0.02)))
    run = run.but(learning_rate=lambda: np.full(shape.points, 3e-4))
    return replace(run, settings={"max_steps": shape.steps})


def repeats(random: Random, shape: Shape) -> Run:
    """The evaluation sees weights of earlier."""
    run = supervised(random, shape)
    count = shape.evaluations
    kept = np.minimum(np.arange(count), int(ONSET * count))
    return run.but(eval_loss=lambda now=run.logged["eval_loss"]: now()[kept])


def falls_silent(random: Random, shape: Shape) -> Run:
    """The loss is no longer logged, so the last one stands beside all later points."""
    run = supervised(random, shape)
    last = np.minimum(np.arange(shape.points), int(ONSET * shape.points))
    return run.but(loss=lambda now=run.logged["loss"]: now()[last])


def diverges(random: Random, shape: Shape) -> Run:
    """The loss rises to three times its level within a tenth of the run."""
    curve = learning(random, shape)
    level = np.interp(ONSET, shape.time, curve)
    rise = 1 + 2 * np.clip((shape.time - ONSET) / 0.1, 0, 1)
    return supervised(random, shape, np.where(shape.time < ONSET, curve, level * rise))


def spikes(random: Random, shape: Shape) -> Run:
    """One point in fifty is six times as high, as is its gradient; three are whatever the run's length."""
    run = supervised(random, shape)
    after = np.flatnonzero(shape.time > ONSET)
    hit = np.isin(np.arange(shape.points), random.choice(after, max(3, len(after) // 50), replace=False))
    height = np.where(hit, 6, 1)
    loss = run.logged["loss"]
    norm = run.logged["grad_norm"]
    return run.but(loss=lambda: height * loss(), grad_norm=lambda: height * norm())


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
    run = supervised(random, shape)
    since = shape.since()
    norm = run.logged["grad_norm"]
    loss = run.logged["loss"]
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


def leaves_out(random: Random, shape: Shape) -> Run:
    """A layer of two tensors is in no optimizer."""
    return supervised(random, shape).but(missing_tensors=lambda: np.full(shape.points, 2.0))


def moves_nothing(random: Random, shape: Shape) -> Run:
    """Each step leaves all tensors as they were."""
    return supervised(random, shape).but(unchanged_share=lambda: np.ones(shape.points))


def holds_twice(random: Random, shape: Shape) -> Run:
    """A second optimizer holds four tensors."""
    return supervised(random, shape).but(tensors_held_twice=lambda: np.full(shape.points, 4.0))


def forgets_its_scheduler(random: Random, shape: Shape) -> Run:
    """The scheduler begins anew at a resume from step 5,000."""
    return supervised(random, shape).but(scheduler_offset=lambda: np.full(shape.points, 5000.0))


def divides_twice(random: Random, shape: Shape) -> Run:
    """The loss is divided twice by four accumulation steps."""
    return supervised(random, shape).but(loss_weight=lambda: shape.noisy(random, 0.25, 0.1))


def reads_a_shard_twice(random: Random, shape: Shape) -> Run:
    """Two workers give each batch twice."""
    return supervised(random, shape).but(batches_again=lambda: np.full(shape.points, 0.5))


def normalises_otherwise(random: Random, shape: Shape) -> Run:
    """The evaluation leaves out the normalisation."""
    shift = lambda: shape.noisy(random, 1.2, 0.3)[shape.evaluated]  # noqa: E731
    return supervised(random, shape).but(eval_input_shift=shift)


def stays_in_evaluation(random: Random, shape: Shape) -> Run:
    """The model stays in evaluation mode after an evaluation."""
    return supervised(random, shape).but(training_share=lambda: (shape.time < ONSET).astype(float))


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
    padding = run.logged["pad_fraction"]()
    loss = run.logged["loss"]
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


def reads_all_with_each_worker(random: Random, shape: Shape) -> Run:
    """An epoch takes four times the planned steps, since each of four workers reads all samples."""
    length = 10  # points
    step = shape.every * np.arange(1, shape.points + 1)
    run = supervised(random, shape).but(epoch=lambda: np.round(step / (length * shape.every), 2))
    return replace(run, settings={"steps_per_epoch": max(1, length * shape.every // 4)})


def keeps_the_order(random: Random, shape: Shape) -> Run:
    """Each epoch takes its 25 batches in the same order; what they differ by is twice the noise."""
    run = supervised(random, shape)
    place = np.arange(shape.points)
    order = np.exp(2 * shape.noise * random.standard_normal(25))[place % 25]
    loss = run.logged["loss"]
    return run.but(epoch=lambda: (place + 1) / 25, loss=lambda: loss() * order)


def leaps(random: Random, shape: Shape) -> Run:
    """The accuracy goes up and down by a fifth from evaluation to evaluation."""
    leap = 0.1 * (-1) ** np.arange(shape.evaluations)

    def accuracy() -> Floats:
        return np.asarray(0.6 + leap + 0.1 * shape.noise * shape.wander(random, shape.evaluations)).clip(0, 1)

    return supervised(random, shape).but(eval_accuracy=accuracy)


def empties(random: Random, shape: Shape) -> Run:
    """Nearly all activations of a layer come to be zero."""
    level = 0.3 + 0.69 * shape.since()
    return supervised(random, shape).but(
        **{"histogram_zero_share:activations": lambda: shape.noisy(random, level, 0.01).clip(0, 1)}
    )


def averages_perplexities(random: Random, shape: Shape) -> Run:
    """The perplexity is the mean over a hundred batches, whose losses scatter by a half."""
    run = supervised(random, shape)
    loss = run.logged["eval_loss"]
    batches = np.exp(0.5 * random.standard_normal((shape.evaluations, 100))).mean(axis=1)
    return run.but(eval_perplexity=lambda: np.exp(loss()) * batches)


def unlearns(random: Random, shape: Shape) -> Run:
    """The accuracy on held-out data falls back to a guess among ten classes."""
    learned = 0.1 + 0.7 * (1 - np.exp(-shape.time / 0.1))
    right = np.where(shape.time < ONSET, learned, 0.1)[shape.evaluated]
    return supervised(random, shape).but(eval_accuracy=lambda: shape.noisy(random, right, 0.3).clip(0, 1))


def looks_worse(random: Random, shape: Shape) -> Run:
    """The loss falls, and the samples become worse by half."""
    curve = 2 - shape.time
    best = 10 * (1 + 2 * np.exp(-shape.time / 0.05) + 0.5 * shape.since())[shape.evaluated]
    return supervised(random, shape, curve).but(
        frechet_inception_distance=lambda: shape.noisy(random, best, 0.3)
    )


def crowds_one_expert(random: Random, shape: Shape) -> Run:
    """The balancing loss grows from 2 to 5."""
    return supervised(random, shape).but(
        moe_auxiliary_loss=lambda: 2 + shape.noisy(random, 0.05 + 3 * shape.since())
    )


def sharpens_its_attention(random: Random, shape: Shape) -> Run:
    """The largest attention logit doubles eight times from the onset to the end."""
    level = 20 * 256 ** (np.maximum(0, shape.time - ONSET) / (1 - ONSET))
    return supervised(random, shape).but(max_attention_logit=lambda: shape.noisy(random, level))


def lets_its_logits_drift(random: Random, shape: Shape) -> Run:
    """Log Z doubles eight times from the onset to the end."""
    level = 5 * 256 ** (np.maximum(0, shape.time - ONSET) / (1 - ONSET))
    return supervised(random, shape).but(log_partition=lambda: shape.noisy(random, level))


def waits_for_data(random: Random, shape: Shape) -> Run:
    """The loader takes four fifths of a step."""
    level = 0.1 + 0.7 * shape.since()
    return supervised(random, shape).but(data_share=lambda: shape.noisy(random, level, 0.3).clip(0, 1))


def restarts(random: Random, shape: Shape) -> Run:
    """The run is resumed with a schedule that begins again."""
    once = 1e-4 * np.minimum(1, shape.time / 0.05) * (1 - shape.time)
    run = supervised(random, replace(shape, resumed=ONSET)).but(learning_rate=lambda: once)
    again = np.interp(shape.time - ONSET + BACK, [0, 0.05, 1], [0, 1e-4, 0])
    return replace(run, again={"learning_rate": lambda: again})


def outplays_its_generator(random: Random, shape: Shape) -> Run:
    """The discriminator of adversarial networks becomes sure within a twentieth of the run."""
    sure = np.clip((shape.time - ONSET) / 0.05, 0, 1)
    return adversaries(random, shape).but(
        discriminator_loss=lambda: shape.noisy(random, 1.386 * 0.002**sure),
        generator_loss=lambda: shape.noisy(random, 0.7 + 8 * sure),
    )


def restores_nothing(random: Random, shape: Shape) -> Run:
    """The run is resumed with new weights, and learns from the start."""
    curve = learning(random, shape)
    run = supervised(random, replace(shape, resumed=ONSET), curve)
    anew = np.interp(shape.time - ONSET + BACK, shape.time, curve)
    return replace(run, again={"loss": lambda: shape.noisy(random, anew)})


def forgets_its_schedule(random: Random, shape: Shape) -> Run:
    """The schedule begins again with its warm-up, and the steps go on."""
    passed = np.where(shape.time < ONSET, shape.time, shape.time - ONSET)
    rate = 1e-4 * np.minimum(1, passed / 0.05) * (1 - passed)
    return supervised(random, shape).but(learning_rate=lambda: rate)


SICK: Mapping[str, tuple[Kind, float]] = {
    "attention-logit-growth": (sharpens_its_attention, ONSET),
    "broken-batches": (reads_a_shard_twice, 0),
    "broken-evaluation": (normalises_otherwise, 0),
    "broken-wiring": (holds_twice, 0),
    "class-collapse": (answers_alike, 0),
    "clip-fraction-saturation": (policies.is_clipped_often, ONSET),
    "clipped-completion-ratio": (policies.never_stops, ONSET),
    "completion-length-drift": (policies.rambles, ONSET),
    "dead-activation-growth": (dies, ONSET),
    "entropy-collapse": (policies.stops_exploring, ONSET),
    "discriminator-wins": (outplays_its_generator, ONSET),
    "entropy-explosion": (policies.writes_noise, ONSET),
    "epoch-length-mismatch": (reads_all_with_each_worker, 0),
    "epoch-periodic-loss": (keeps_the_order, 0),
    "eval-metric-collapse": (unlearns, ONSET),
    "eval-metric-instability": (leaps, 0),
    "evaluation-mode": (stays_in_evaluation, ONSET),
    "exploding-grad-norm": (explodes, ONSET),
    "flat-loss-at-init": (stands, 0),
    "generalization-gap": (overfits, ONSET),
    "histogram-degeneration": (empties, ONSET),
    "init-loss-mismatch": (sums_its_parts, 0),
    "kl-blowup": (policies.runs_away, ONSET),
    "likelihood-displacement": (policies.displaces, ONSET),
    "loader-starvation": (waits_for_data, ONSET),
    "loss-accuracy-mismatch": (applies_softmax_twice, 0),
    "loss-divergence": (diverges, ONSET),
    "loss-plateau": (rests, 0.05),
    "loss-scale-collapse": (overflows, ONSET),
    "loss-scales-with-padding": (counts_padding, 0),
    "loss-spike": (spikes, ONSET),
    "lr-schedule-mismatch": (ends_early, ONSET),
    "lr-schedule-restart": (forgets_its_schedule, ONSET),
    "memory-growth": (leaks, 0),
    "missing-loss": (falls_silent, ONSET),
    "metric-band": (policies.repeats_itself, ONSET),
    "misscaled-gradient": (divides_twice, 0),
    "non-finite-metric": (breaks, ONSET),
    "lost-environment-state": (policies.empties_its_buffer, ONSET),
    "off-policy-drift": (policies.drifts_off, ONSET),
    "output-logit-growth": (lets_its_logits_drift, ONSET),
    "perplexity-inconsistency": (averages_perplexities, 0),
    "preference-margin-stall": (policies.prefers_nothing, 0),
    "repeated-loss": (repeats, ONSET),
    "resume-discontinuity": (restarts, ONSET),
    "resume-loss-jump": (restores_nothing, ONSET),
    "pretrained-regression": (forgets, 0),
    "quality-loss-divergence": (looks_worse, ONSET),
    "reward-collapse": (policies.loses_reward, ONSET),
    "reward-scale-instability": (policies.scales_with_its_reward, 0),
    "reward-stagnation": (policies.gains_nothing, ONSET),
    "reward-zero-std": (policies.earns_alike, ONSET),
    "router-collapse": (crowds_one_expert, ONSET),
    "saturated-gradient-clipping": (is_clipped, 0),
    "tool-failures": (policies.loses_its_tool, ONSET),
    "scheduler-out-of-step": (forgets_its_scheduler, 0),
    "throughput-shift": (slows_down, ONSET),
    "train-eval-mismatch": (learns_nothing_of_use, 0),
    "update-ratio-out-of-band": (steps_too_little, 0),
    "vanishing-grad-norm": (vanishes, ONSET),
    "weights-left-out": (leaves_out, 0),
    "weights-unchanged": (moves_nothing, 0),
    "zero-eval-metric": (finds_nothing, 0),
    "zero-gradient": (is_cut, 0),
}
"""By detector: the fault that it is made for, and the share of the run at which that begins.

A detector that has none here gets the onset of its golden (`of_onset`).
"""


LEARNS = 0.1
"""Share of the run in which a metric becomes good that does not begin so."""


def of_onset(case: Onset, *, evaluated: bool) -> Kind:
    """A fault from the onset in a detector's golden: the metric leaves its good level for the bad one."""

    def kind(random: Random, shape: Shape) -> Run:
        since = shape.since()
        learned = np.clip(shape.time / LEARNS, 0, 1)
        start = case.good if case.learns_from is None else case.learns_from
        level = start + learned * (case.good - start)
        bad = case.good * (case.bad / case.good) ** since if case.by_factors else None
        level = np.where(since > 0, level + since * (case.bad - case.good) if bad is None else bad, level)
        values = shape.noisy(random, level, 1.0 if case.noise else 0.0)
        logged = {case.signal.value: lambda: values[shape.evaluated] if evaluated else values}
        for signal, (before, after) in case.beside.items():
            logged[signal.value] = partial(shape.noisy, random, before + since * (after - before))
        return Run(shape, logged)

    return kind
