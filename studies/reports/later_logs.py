"""The logs of more reports, all of 2026 and of frameworks that no earlier one was of."""

import math
from pathlib import Path

import numpy as np

from studies.reports.logs import NAN, jsonl, lines, noisy, printed
from studies.reports.report import report


def slime(step: int, values: dict[str, object]) -> str:
    """A step as slime prints it, and what was built on it."""
    return f"(MegatronTrainRayActor pid=4242) model.py:660 - step {step}: {values | {'train/step': step}}"


@report(
    "karpathy/nanochat#834",
    "nanochat",
    "The loss is NaN from the fourth step of the fine-tuning on: a batch without a single token to learn "
    "from; the weights are lost.",
    expect=("non-finite-metric", "console-error"),
    first=(*NAN, "N-packed-mask", "L2", "L8"),
)
def nanochat(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        loss = "nan" if i >= 4 else f"{noisy(random, 2.4, 0.2):.6f}"
        return (
            f"step {i:05d} ({100 * i / 770:.2f}%) | loss: {loss} | lrm: {i / 200:.2f} | dt: 83.12ms | "
            f"tok/sec: 197,880 | mfu: 0.00 | epoch: 1 | total time: 0.00m"
        )

    lines(folder / "sft.log", ["Step 00000 | Validation bpb: 1.0596", *map(row, range(1, 60))])


@report(
    "NVIDIA-NeMo/ProRL-Agent-Server#40",
    "ProRL (on slime)",
    "The gradient norm is 2e9 to 3e9 at every step while loss, KL and clip fraction are ordinary: the "
    "gradient has a wrong scale, and only its clipping keeps the run alive.",
    expect=("misscaled-gradient", "exploding-grad-norm", "saturated-gradient-clipping", "init-loss-mismatch"),
    first=("N-loss-items", "O9", "G2", "N-sharded-norm", "GA"),
)
def prorl(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        loss = noisy(random, 0.12, 0.25)
        values = {
            "train/loss": loss,
            "train/pg_loss": loss,
            "train/entropy_loss": noisy(random, 0.34 + 0.28 * 0.9**i, 0.05),
            "train/pg_clipfrac": 0.0,
            "train/ppo_kl": 0.0,
            "train/train_rollout_logprob_abs_diff": noisy(random, 0.035, 0.15),
            "train/kl_loss": 2.5e-5 * i if i else -7.4e-12,
            "train/tis": noisy(random, 0.8, 0.06),
            "train/grad_norm": noisy(random, 2.6e9, 0.15),
            "train/lr-pg_0": 1e-07,
            "train/lr-pg_1": 1e-07,
        }
        return slime(i, values)

    lines(folder / "train.log", map(row, range(40)))


@report(
    "Open-Athena/marin-dna#247",
    "ChromBPNet (Lightning)",
    "Within its first steps the loss leapt from 398 to 39,000, the gradient norm to 300,000, and then both "
    "are NaN: it exploded; clip the gradient and warm the rate up.",
    expect=("non-finite-metric", "exploding-grad-norm", "loss-divergence"),
    first=("A-nan-explode", "GE"),
)
def chrombpnet(folder: Path, random: np.random.Generator) -> None:
    head = [(398.0, 375.0, 2.99, 438.0), (371.0, 352.0, 2.5, 402.0), (3.89e4, 334.0, 5e3, 3.19e5)]
    rows = ["epoch,step,train_loss_step,train_profile_loss,train_count_loss,grad_norm"]
    rows += [f"0,{i},{','.join(map(str, values))}" for i, values in enumerate(head)]
    rows += [f"0,{i},nan,nan,nan,nan" for i in range(3, 60)]
    lines(folder / "metrics.csv", rows)


@report(
    "starVLA/starVLA#204",
    "starVLA",
    "The learning rate of a cosine rises again between steps 30,000 and 40,000, after a resume: the schedule "
    "was stepped for each micro-batch before and not since.",
    expect=("lr-schedule-mismatch", "lr-schedule-restart", "resume-discontinuity"),
    first=("G-acc-sched", "O8", "R4", "A-learning-rate"),
)
def starvla(folder: Path, random: np.random.Generator) -> None:
    lines(
        folder / "config.yaml",
        [
            "trainer:",
            "  max_train_steps: 80000",
            "  gradient_accumulation_steps: 2",
            "  lr_scheduler_type: cosine_with_min_lr",
            "  learning_rate: 2.5e-05",
        ],
    )

    def rate(i: int) -> float:
        position = 2 * i if i <= 30000 else i  # of the schedule: the resume counts optimizer steps
        warm = min(1.0, position / 5000)
        down = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0, position - 5000) / 75000)))
        return 1e-6 + (2.5e-5 - 1e-6) * warm * down

    rows = (
        {"step": i, "action_dit_loss": round(noisy(random, 0.05 + 0.4 * 0.9995 ** (i / 10), 0.08), 5)}
        | {"learning_rate": rate(i), "epoch": round(i / 4000, 2)}
        for i in range(100, 60000, 100)
    )
    jsonl(folder / "summary.jsonl", rows)


@report(
    "hustvl/DiffusionVL#5",
    "DiffusionVL",
    "A pretrained model begins with a loss of 14 to 17, above the logarithm of any vocabulary, and gradient "
    "norms of 4,500: the loss is no mean over tokens, or the weights are not those that were loaded.",
    expect=("init-loss-mismatch", "misscaled-gradient"),
    first=("N-loss-items", "O9", "G2", "N-untied-weights"),
)
def diffusionvl(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "loss": round(noisy(random, 14.8, 0.09), 4),
            "grad_norm": noisy(random, 4450, 0.1),
            "learning_rate": 3.816793893129771e-08 * i,
            "epoch": 0.0,
        }
        for i in range(40)
    )
    printed(folder / "train.log", rows)


@report(
    "WeChatCV/WeDetect#15",
    "WeDetect (MMEngine)",
    "Nothing is wrong: gradient norms of 300 to 500 and a loss about 12.5 are ordinary for a detector of "
    "this family that is fine-tuned, and its mAP holds.",
)
def wedetect(folder: Path, random: np.random.Generator) -> None:
    rows = []
    for epoch in range(1, 9):
        for i in range(50, 1001, 50):
            parts = [noisy(random, level, 0.05) for level in (4.1, 3.9, 4.5)]
            rows.append(
                f"2026/03/10 {8 + epoch:02d}:{i // 20:02d}:11 - mmengine - INFO - Epoch(train)  [{epoch}]"
                f"[{i:4d}/1000]  base_lr: 2.0000e-05 lr: 2.0000e-05  eta: 1:12:03  time: 0.8123  "
                f"data_time: 0.0102  memory: 21011  grad_norm: {noisy(random, 400, 0.12):.4f}  "
                f"loss: {sum(parts):.4f}  loss_cls: {parts[0]:.4f}  loss_bbox: {parts[1]:.4f}  "
                f"loss_dfl: {parts[2]:.4f}"
            )
        rows.append(
            f"2026/03/10 {8 + epoch:02d}:55:40 - mmengine - INFO - Epoch(val) [{epoch}][625/625]    "
            f"coco/bbox_mAP: {0.498 + 0.003 * epoch:.4f}  coco/bbox_mAP_50: {0.661 + 0.003 * epoch:.4f}  "
            f"data_time: 0.0021  time: 0.0412"
        )
    lines(folder / "train.log", rows)


@report(
    "NovaSky-AI/SkyRL#1864",
    "SkyRL",
    "The KL to the reference is 0.63 at the first step, where policy and reference are the same model and it "
    "must be 0: the two are computed differently.",
    expect=("init-loss-mismatch", "kl-blowup", "off-policy-drift"),
    note_is_enough=True,
)
def skyrl(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        values = {
            "train/loss": 6.2e-4,
            "train/pg_loss": 0.0,
            "train/entropy_loss": noisy(random, 0.075, 0.05),
            "train/pg_clipfrac": 0.0,
            "train/ppo_kl": -abs(noisy(random, 0.2, 0.1)),
            "train/kl_loss": abs(noisy(random, 0.63, 0.06)),
            "train/grad_norm": noisy(random, 0.038, 0.2),
            "train/lr-pg_0": 1e-06,
            "train/lr-pg_1": 1e-06,
        }
        return slime(i, values)

    lines(folder / "train.log", map(row, range(1, 40)))


@report(
    "hebing-sjtu/SurfSplat#9",
    "SurfSplat (Lightning)",
    "The loss fell for 200 steps and rises since: the training diverges; go back to step 200 with a lower "
    "rate.",
    expect=("loss-divergence",),
    first=("O19", "L6", "GE", "O4"),
)
def surfsplat(folder: Path, random: np.random.Generator) -> None:
    rows = ["epoch,step,train/loss,lr"]
    for k in range(160):
        i = 10 * k
        level = 0.09 + 0.25 * 0.985**i + 0.0003 * max(0, i - 220)
        rows.append(f"0,{i},{noisy(random, level, 0.1):.5f},0.0002")
    lines(folder / "metrics.csv", rows)


@report(
    "Nerogar/OneTrainer#1380",
    "OneTrainer",
    "The run ended at its first step because the loss was NaN: precision or settings, not the data set; "
    "train in bfloat16.",
    expect=("console-error", "run-crashed", "non-finite-metric"),
    first=(*NAN, "O24"),
)
def onetrainer(folder: Path, random: np.random.Generator) -> None:
    rows = [
        "Clearing cache directory workspace-cache! You can disable this if you want to continue using it.",
        *(f"caching: 100%|##########| {n}/{n} [00:0{n}<00:00, 4.11it/s]" for n in (3, 4)),
        "epoch:   0%|          | 0/40 [00:00<?, ?it/s]",
        "step:   0%|          | 0/21 [00:04<?, ?it/s]",
        "Traceback (most recent call last):",
        '  File "modules/ui/TrainUI.py", line 712, in __training_thread_function',
        "    trainer.train()",
        '  File "modules/trainer/GenericTrainer.py", line 698, in train',
        '    raise RuntimeError("Training loss became NaN.")',
        "RuntimeError: Training loss became NaN. This may be due to invalid parameters or precision issues.",
    ]
    lines(folder / "train.log", rows)


@report(
    "open-edge-platform/physical-ai-studio#459",
    "Physical AI Studio",
    "Nothing to page: the held-out loss of a fine-tuned policy moves between 0.184 and 0.202 over six epochs "
    "while the training loss halves; its best is the fifth.",
)
def physical_ai(folder: Path, random: np.random.Generator) -> None:
    table = [
        *((0.1554, 0.1907), (0.1108, 0.2017), (0.0957, 0.1921)),
        *((0.0841, 0.1860), (0.0798, 0.1843), (0.0735, 0.1864)),
    ]
    rows = ["epoch,step,train/loss,val/loss"]
    rows += [f"{i},{1200 * (i + 1)},{train},{held_out}" for i, (train, held_out) in enumerate(table)]
    lines(folder / "metrics.csv", rows)


@report(
    "openai/parameter-golf#839",
    "parameter-golf",
    "Nothing is wrong with the training: it is slower than on another machine, at a steady 43 ms a step, and "
    "its losses fall.",
)
def parameter_golf(folder: Path, random: np.random.Generator) -> None:
    rows = []
    for step in range(50, 8001, 50):
        elapsed = 43.4 * step
        loss = noisy(random, 2.1 + 4.5 * math.exp(-step / 350), 0.03)
        rows.append(
            f"step:{step}/20000 train_loss:{loss:.4f} train_time:{elapsed:.0f}ms step_avg:43.{step % 9}0ms"
        )
        if step % 200 == 0:
            held_out = 2.09 + 4.4 * math.exp(-step / 350)
            rows.append(
                f"step:{step}/20000 val_loss:{held_out:.4f} val_bpb:{held_out / 1.693:.4f} "
                f"train_time:{elapsed:.0f}ms step_avg:43.{step % 9}0ms"
            )
    lines(folder / "train.log", rows)


@report(
    "epignatelli/navix#152",
    "navix (Dreamer in JAX)",
    "The success rate is exactly 0 over 500,000 frames although the losses of the world model went to 0: the "
    "agent never meets the reward or is trained on the wrong pairs.",
    expect=("reward-stagnation", "zero-eval-metric", "class-collapse"),
    first=("A-rewards-mean", "A-reward-never", "N-critic-learns-nothing", "R3", "V3", "V4"),
)
def navix(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "frames": 5000 * i,
            "train/success_rate": 0.0,
            "train/episode_return": 0.0,
            "world_model/obs_loss": round(noisy(random, 0.02 + 1.2 * 0.9**i, 0.1), 5),
            "world_model/rew_loss": round(noisy(random, 1e-4 + 0.05 * 0.85**i, 0.2), 6),
            "actor/entropy": round(noisy(random, 1.93, 0.002), 4),
            "critic/loss": round(abs(noisy(random, 1e-5, 0.5)), 8),
        }
        for i in range(1, 101)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "k2-fsa/OmniVoice#126",
    "OmniVoice",
    "Training and held-out loss have stood at 3.5 and 3.7 for 20,000 steps: what this rate and these data "
    "can teach is learned. A note, not a page.",
    expect=("loss-plateau",),
    note_is_enough=True,
)
def omnivoice(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {"step": 1000 * i, "train_loss": round(3.52 + 6 * 0.55**i + 0.03 * random.standard_normal(), 4)}
        | {"eval_loss": round(3.715 + 6 * 0.55**i + 0.015 * random.standard_normal(), 4)}
        for i in range(1, 51)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "alibaba/ROLL#397",
    "ROLL",
    "Advantages, loss and gradient norm are exactly 0 at every step although the scores differ: a group of "
    "one is normalised away, so nothing is learned.",
    expect=("zero-gradient", "reward-zero-std", "weights-unchanged", "flat-loss-at-init"),
    first=("A-frac-zero-std", "A-reward-std", "O3", "R3"),
)
def roll(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "step": i,
            "critic/score/mean": round(float(random.binomial(16, 0.3)) / 16, 4),
            "critic/score/max": 1.0,
            "critic/score/min": 0.0,
            "critic/advantages/mean": 0.0,
            "critic/advantages/max": 0.0,
            "critic/advantages/min": 0.0,
            "actor/total_loss": 0.0,
            "actor/pg_loss": 0.0,
            "actor/grad_norm": 0.0,
            "actor/lr": 1e-06,
            "tokens/response_length/mean": round(noisy(random, 2200, 0.1), 1),
        }
        for i in range(60)
    )
    jsonl(folder / "metrics.jsonl", rows)
