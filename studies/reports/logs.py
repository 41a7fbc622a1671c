"""The logs of the reports, in the form in which each framework prints them.

Numbers that a report names are kept; what lies between them is drawn at random.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from studies.reports.report import report

NAN = ("GE-nan", "A-nan-debug", "N-nan-first-backward", "A-nan-data")
BLOWN = ("GE", "A-nan-explode", "G1", "A-grad-norm", "GE-nan", "A-nan-debug")


def lines(path: Path, rows: Iterable[str]) -> None:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def printed(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Dictionaries as Hugging Face's Trainer prints them."""
    lines(path, (str(dict(row)).replace(": inf", ": 'inf'") for row in rows))


def jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    lines(path, (json.dumps(dict(row)) for row in rows))


def noisy(random: np.random.Generator, value: float, share: float = 0.05) -> float:
    return float(value * (1 + share * random.standard_normal()))


# Language models


@report(
    "axolotl-ai-cloud/axolotl#2262",
    "Axolotl",
    "The loss starts at 83.7; divided by the 8 accumulation steps it is 10.5, so it is their sum.",
    expect=("init-loss-mismatch", "misscaled-gradient"),
    first=("N-loss-items", "O9", "G2"),
)
def summed(folder: Path, random: np.random.Generator) -> None:
    lines(
        folder / "config.yaml",
        [
            "base_model: SmolLM2-135M",
            "sequence_len: 2048",
            "micro_batch_size: 1",
            "gradient_accumulation_steps: 8",
        ],
    )
    rows = (
        {
            "loss": round(noisy(random, 50 + 33.7 * 0.97**i, 0.01), 4),
            "grad_norm": round(noisy(random, 22, 0.2), 3),
            "learning_rate": 1e-5,
            "epoch": round(i / 100, 2),
        }
        for i in range(100)
    )
    printed(folder / "train.log", rows)


@report(
    "axolotl-ai-cloud/axolotl#3453",
    "Axolotl",
    "From the second row on the loss is exactly 0 and the perplexity 1, with a NaN gradient: the packed "
    "batches give NaN.",
    expect=("non-finite-metric", "repeated-loss", "flat-loss-at-init", "perplexity-inconsistency"),
    first=(*NAN, "N-packed-mask", "L2", "O3"),
)
def packed(folder: Path, random: np.random.Generator) -> None:
    rows = [{"loss": 2.137, "grad_norm": 9.31, "learning_rate": 2e-6, "ppl": 8.474, "epoch": 0.0}]
    rows += [
        {
            "loss": 0.0,
            "grad_norm": float("nan"),
            "learning_rate": 2e-6 * i,
            "ppl": 1.0,
            "epoch": round(i / 400, 3),
        }
        for i in range(2, 120)
    ]
    printed(folder / "train.log", rows)


def swift(i: int, total: int, **values: float) -> dict[str, object]:
    return {
        **values,
        "learning_rate": 1e-5,
        "memory(GiB)": 65.89,
        "train_speed(iter/s)": 0.0259,
        "epoch": round(2 * i / total, 4),
        "global_step/max_steps": f"{i}/{total}",
        "percentage": f"{100 * i / total:.2f}%",
    }


@report(
    "modelscope/ms-swift#2280",
    "ms-swift",
    "The gradient norm is NaN from the second step on, and the loss does not fall: no weight moves any more.",
    expect=("non-finite-metric",),
    first=NAN,
)
def swift_nan(folder: Path, random: np.random.Generator) -> None:
    rows = [swift(1, 2046, loss=2.0916, token_acc=0.4778, grad_norm=6.0849)]
    rows += [
        swift(i, 2046, loss=round(noisy(random, 2.09, 0.03), 4), token_acc=0.5, grad_norm=float("nan"))
        for i in range(2, 160)
    ]
    jsonl(folder / "logging.jsonl", rows)


@report(
    "modelscope/ms-swift#7128",
    "ms-swift",
    "All answers of each prompt earn the same reward (1.0), so advantage and loss are 0: nothing is "
    "left to learn.",
    expect=("reward-zero-std",),
    first=("A-frac-zero-std", "A-reward-std"),
    note_is_enough=True,
)
def swift_solved(folder: Path, random: np.random.Generator) -> None:
    rows = (
        swift(
            i,
            8400,
            loss=0.0,
            grad_norm=round(noisy(random, 0.06, 0.3), 5),
            **{
                "completions/mean_length": round(noisy(random, 66, 0.05), 2),
                "completions/clipped_ratio": 0.0,
                "reward": round(min(1.0, 0.4 + i / 1200), 4),
                "reward_std": round(max(0.0, 0.3 - i / 2000), 4),
                "frac_reward_zero_std": round(min(1.0, 0.2 + i / 750), 3),
                "kl": round(noisy(random, 0.065 * min(1, i / 2000), 0.1), 5),
            },
        )
        for i in range(10, 8400, 10)
    )
    jsonl(folder / "logging.jsonl", rows)


@report(
    "modelscope/ms-swift#7229",
    "ms-swift",
    "The gradient norm and the KL are exactly 0 at every step although the rewards of a group differ: "
    "nothing reaches the weights.",
    expect=("zero-gradient", "weights-unchanged"),
    first=("O3", "O2", "O21"),
)
def swift_cut(folder: Path, random: np.random.Generator) -> None:
    rows = (
        swift(
            i,
            2000,
            loss=0.0,
            grad_norm=0.0,
            **{
                "completions/mean_length": round(noisy(random, 240, 0.05), 2),
                "reward": round(noisy(random, 0.42, 0.1), 4),
                "reward_std": round(noisy(random, 0.31, 0.1), 4),
                "frac_reward_zero_std": 0.25,
                "kl": 0.0,
            },
        )
        for i in range(5, 1000, 5)
    )
    jsonl(folder / "logging.jsonl", rows)


@report(
    "Time-MoE/Time-MoE#71",
    "Time-MoE",
    "Nothing to page: one gradient norm in six is NaN, those steps are skipped, and the loss goes on as "
    "before.",
)
def skipped(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "loss": round(noisy(random, 0.14 + 0.04 * 0.99**i, 0.08), 4),
            "grad_norm": float("nan") if random.random() < 1 / 6 else round(noisy(random, 0.5, 0.5), 4),
            "learning_rate": 1e-4,
            "epoch": round(0.04 * (i + 1), 2),
        }
        for i in range(250)
    )
    printed(folder / "train.log", rows)


@report(
    "Time-MoE/Time-MoE#31",
    "Time-MoE",
    "After a few rows the loss is exactly 0 and the gradient norm NaN: the weights are NaN.",
    expect=("non-finite-metric",),
    first=NAN,
)
def time_moe_nan(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "loss": round(noisy(random, 0.21, 0.1), 4) if i < 30 else 0.0,
            "grad_norm": round(noisy(random, 0.8, 0.3), 4) if i < 30 else float("nan"),
            "learning_rate": 5e-5,
            "epoch": round(0.0125 * (i + 1), 4),
        }
        for i in range(80)
    )
    printed(folder / "train.log", rows)


@report(
    "unslothai/unsloth#1067",
    "Unsloth (evaluations)",
    "The held-out loss is equal to the last digit from the fourth evaluation on while the training loss "
    "falls: the evaluation no longer sees the model.",
    expect=("train-eval-mismatch", "repeated-loss", "class-collapse"),
)
def frozen_evaluation(folder: Path, random: np.random.Generator) -> None:
    rows: list[dict[str, object]] = []
    for i in range(1, 161):
        loss = round(noisy(random, 0.55 + 1.1 * 0.985**i, 0.05), 4)
        rows.append({"loss": loss, "grad_norm": 0.61, "learning_rate": 2e-4, "epoch": round(i / 30, 3)})
        if i % 10 == 0:
            held_out = 1.0937843561172485 if i > 30 else round(1.2 - i / 400, 6)
            rows.append({"eval_loss": held_out, "eval_runtime": 21.4, "epoch": round(i / 30, 3)})
    printed(folder / "train.log", rows)


@report(
    "facebookresearch/SPG#2",
    "SPG (on TRL)",
    "The reward fell from 0.9 to 0 within twenty steps at step 650 and all answers run into the cap: "
    "the policy is lost.",
    expect=("reward-collapse", "completion-length-drift", "clipped-completion-ratio"),
    first=("R1", "R2", "A-clipped-ratio", "A-nan-debug", "A-mean-length"),
)
def spg(folder: Path, random: np.random.Generator) -> None:
    def level(i: int) -> float:
        return min(1.0, max(0.0, (i - 650) / 20))

    rows = (
        {
            "loss": round(0.01 * random.standard_normal(), 4),
            "grad_norm": round(noisy(random, 0.4, 0.3), 4),
            "learning_rate": 3e-6,
            "reward": round(max(0.0, noisy(random, (0.5 + 0.4 * min(1, i / 400)) * (1 - level(i)), 0.08)), 4),
            "reward_std": round(0.4 * (1 - level(i)), 4),
            "completion_length": round(noisy(random, 140, 0.06) * (1 - level(i)) + 256 * level(i), 2),
            "kl": round(noisy(random, 0.05 + 3 * level(i), 0.2), 4),
            "epoch": round(i / 1000, 3),
        }
        for i in range(1, 1000)
    )
    printed(folder / "train.log", rows)


# Robots


def lerobot(step: int, batch: int, loss: str, norm: str, rate: str) -> str:
    clock = f"{10 + step // 3600 % 12:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
    samples = f"{step * batch // 1000}K" if step * batch >= 1000 else f"{step * batch}"
    return (
        f"INFO 2025-11-17 {clock} ot_train.py:351 step:{step} smpl:{samples} ep:{step // 25} "
        f"epch:{step / 6600:.2f} loss:{loss} grdn:{norm} lr:{rate} updt_s:4.478 data_s:0.038"
    )


@report(
    "huggingface/lerobot#2465",
    "LeRobot",
    "Loss and gradient norm are NaN from the first row on: stop, nothing is trained.",
    expect=("non-finite-metric",),
    first=NAN,
)
def lerobot_nan(folder: Path, random: np.random.Generator) -> None:
    lines(
        folder / "train.log",
        (lerobot(200 * i, 32, "nan", "nan", f"{2.5e-06 * min(i, 10):.1e}") for i in range(1, 40)),
    )


@report(
    "huggingface/lerobot#1066",
    "LeRobot",
    "The gradient norm doubles every 200 steps and the loss follows, until both are NaN: it explodes.",
    expect=("exploding-grad-norm", "loss-divergence", "non-finite-metric", "loss-spike"),
    first=BLOWN,
)
def lerobot_explodes(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        if i >= 110:
            return lerobot(200 * i, 8, "nan", "nan", "1.0e-05")
        grown = 2.0 ** max(0, i - 85)
        loss = noisy(random, 0.9 + 6 * 0.93**i, 0.05) * grown**0.5
        return lerobot(200 * i, 8, f"{loss:.3f}", f"{noisy(random, 14, 0.2) * grown:.3f}", "1.0e-05")

    lines(folder / "train.log", map(row, range(1, 125)))


@report(
    "huggingface/lerobot#2194",
    "LeRobot",
    "Nothing is wrong: a flow-matching loss that starts at 0.47 is ordinary for a pretrained policy, "
    "and it falls.",
)
def lerobot_low(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        loss = noisy(random, 0.06 + 0.42 * 0.98**i, 0.06)
        norm = noisy(random, 0.6 + 3.2 * 0.985**i, 0.1)
        return lerobot(10 * i, 32, f"{loss:.3f}", f"{norm:.3f}", f"{min(2.5e-07 * i, 2.5e-05):.1e}")

    lines(folder / "train.log", map(row, range(1, 400)))


@report(
    "Physical-Intelligence/openpi#814",
    "openpi",
    "The loss is 3e8 instead of below 1 and does not fall, with gradient norms of 1e6: the actions are "
    "not normalised.",
    expect=(
        "flat-loss-at-init",
        "exploding-grad-norm",
        "loss-divergence",
        "init-loss-mismatch",
        "saturated-gradient-clipping",
    ),
    first=("DP12", "L8", "GE", "G10", "A-grad-norm"),
)
def openpi(folder: Path, random: np.random.Generator) -> None:
    lines(
        folder / "train.log",
        (
            f"Step {100 * i}: grad_norm={noisy(random, 2.5e5 + 9e3 * i, 0.15):.4f}, "
            f"loss={noisy(random, 4.1e8, 0.3):.4f}, param_norm={1802.3 + 0.0045 * i:.4f}"
            for i in range(120)
        ),
    )


def learning_iteration(i: int, total: int, values: Mapping[str, float]) -> str:
    head = "#" * 80
    body = "\n".join(f"{name + ':':>35} {value:.4f}" for name, value in values.items())
    return (
        f"{head}\n{f'Learning iteration {i}/{total}':^80}\n\n"
        f"{'Computation:':>35} 14963 steps/s (collection: 6.407s, learning 0.163s)\n{body}\n" + "-" * 80
    )


@report(
    "isaac-sim/IsaacLab#1999",
    "Isaac Lab",
    "The value loss exploded within some iterations and is infinite at iteration 8391 while the reward "
    "is at its best: clip or scale what the critic sees.",
    expect=("non-finite-metric", "loss-divergence"),
    first=("R3", "A-nan-explode", "GE-nan", "A-nan-debug", "N-critic-overestimates"),
)
def isaac_inf(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        blown = 10.0 ** max(0, i - 8380)
        value = noisy(random, 0.02, 0.2) * blown if i < 8391 else float("inf")
        return learning_iteration(
            i,
            10000,
            {
                "Value function loss": value,
                "Surrogate loss": 0.0 if i > 8385 else -0.004,
                "Mean action noise std": 0.56,
                "Mean total reward": noisy(random, 25.6, 0.02),
                "Mean episode length": noisy(random, 990, 0.01),
            },
        )

    lines(folder / "train.log", map(row, range(8100, 8400)))


@report(
    "unitreerobotics/unitree_rl_gym#80",
    "unitree_rl_gym",
    "The reward rose to 24, began to fall at iteration 16,000 with ever shorter episodes and is 0 at "
    "the end: go back to the best checkpoint, with smaller updates.",
    expect=("reward-collapse",),
    first=("R1", "R3", "R2", "N-entropy-explosion"),
)
def unitree(folder: Path, random: np.random.Generator) -> None:
    def row(k: int) -> str:
        i = 100 * k
        rise = min(1.0, i / 6000)
        fall = min(1.0, max(0.0, (i - 16000) / 50000))
        return learning_iteration(
            i,
            150000,
            {
                "Mean action noise std": 0.9 - 0.4 * rise + 0.5 * fall,
                "Mean value_function loss": noisy(random, 0.02 + 0.1 * fall, 0.2),
                "Mean surrogate loss": -0.003,
                "Mean reward": max(0.0, noisy(random, 24 * rise * (1 - fall), 0.03)),
                "Mean episode length": noisy(random, 100 + 880 * rise - 500 * fall, 0.03),
            },
        )

    lines(folder / "train.log", map(row, range(1400)))


# Images, video, speech


@report(
    "tdrussell/diffusion-pipe#531",
    "diffusion-pipe",
    "The loss is NaN from step 18 on, after ordinary ones: the weights are lost.",
    expect=("non-finite-metric",),
    first=NAN,
)
def diffusion_pipe(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        loss = "nan" if i >= 18 else f"{noisy(random, 0.65, 0.1):.4f}"
        return (
            f"[2026-07-30 09:{16 + i // 19:02d}:{3 * i % 57:02d},681] [INFO] [logging.py:123:log_dist] "
            f"[Rank 0] step={i}, skipped=0, lr=[1e-06], mom=[0.0]\n"
            f"steps: {i} loss: {loss} iter time (s): 3.108 samples/sec: 0.322"
        )

    lines(folder / "train.log", map(row, range(1, 60)))


@report(
    "zai-org/CogVideo#785",
    "CogVideo",
    "Nothing is wrong: gradient norms of 3e-4 are small because the loss is a mean over millions of "
    "values; the loss creeps down within its noise.",
)
def cogvideo(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "step": i,
            "loss": round(noisy(random, 0.11 - 2e-5 * i, 0.35), 5),
            "grad_norm": round(noisy(random, 3e-4, 0.3), 7),
            "lr": 1e-4,
        }
        for i in range(1, 1200)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "SWivid/F5-TTS#790",
    "F5-TTS",
    "The loss is NaN from update 600,000 on, without a rise before: float16 overflowed; resume in bfloat16.",
    expect=("non-finite-metric",),
    first=(*NAN, "O24", "A-nan-explode"),
)
def f5(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "update": 1000 * i,
            "loss": float("nan") if i >= 600 else round(noisy(random, 0.6 + 0.4 * 0.99**i, 0.06), 4),
        }
        | {"lr": 7.5e-5 * (1 - i / 1200)}
        for i in range(1, 640)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "ZhikangNiu/A-DMA#3",
    "A-DMA (on F5-TTS)",
    "Nothing is wrong: the alignment term is a negative similarity, so the total falls below zero as it "
    "should.",
)
def negative(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "step": 100 * i,
            "loss": round(0.65 + 0.3 * 0.98**i - 0.9 * (1 - 0.985**i) + 0.03 * random.standard_normal(), 4),
            "diff_loss": round(noisy(random, 0.65 + 0.3 * 0.98**i, 0.04), 4),
            "proj_loss": round(-0.9 * (1 - 0.985**i) + 0.01 * random.standard_normal(), 4),
            "lr": 1e-4,
        }
        for i in range(1, 400)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "Peterande/D-FINE#273",
    "D-FINE",
    "The mAP stays at 0.0003 over 40 epochs while the loss of 38 hardly falls: no box is found. Labels "
    "or weights are wrong.",
    expect=("zero-eval-metric", "flat-loss-at-init", "eval-metric-collapse", "class-collapse"),
)
def d_fine(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "train_lr": 2.5e-5,
            "train_loss": round(noisy(random, 38.4 - 0.01 * i, 0.004), 4),
            "test_coco_eval_bbox": [
                round(abs(noisy(random, 3e-4, 0.5)), 6),
                *[round(7e-4 * random.random(), 6)] * 11,
            ],
            "epoch": i,
            "n_parameters": 19_500_000,
        }
        for i in range(40)
    )
    jsonl(folder / "log.txt", rows)


@report(
    "VIAME/VIAME#271",
    "RF-DETR (Lightning)",
    "mAP, precision and recall are exactly 0 in all 50 epochs although the training loss falls: the "
    "classes of the evaluation are not those of the training.",
    expect=("zero-eval-metric", "class-collapse"),
)
def viame(folder: Path, random: np.random.Generator) -> None:
    rows = ["epoch,step,train/loss,val/mAP_50_95,val/precision,val/recall"]
    rows += [
        f"{i},{212 * (i + 1)},{noisy(random, 3.2 + 6 * 0.9**i, 0.02):.4f},0.0,0.0,0.0" for i in range(50)
    ]
    lines(folder / "metrics.csv", rows)


@report(
    "NVIDIA-NeMo/Speech#15382",
    "NeMo ASR",
    "The word error rate was 2.5 % before any step and is 7 % after each evaluation since: the "
    "fine-tuning damages the pretrained model; take a tenth of the rate.",
    expect=("pretrained-regression", "eval-metric-collapse", "generalization-gap"),
    first=("O19", "X1", "X3", "O7"),
)
def nemo_asr(folder: Path, random: np.random.Generator) -> None:
    rows = ["epoch,step,train_loss,val_wer,learning_rate"]
    rows += [
        f"{i // 4},{250 * i},{noisy(random, 0.9, 0.05):.4f},"
        f"{0.025 if i == 0 else noisy(random, 0.073, 0.02):.4f},8e-05"
        for i in range(24)
    ]
    lines(folder / "metrics.csv", rows)


# Schedules, resumes and speed


@report(
    "Lightricks/LTX-Video-Trainer#67",
    "LTX-Video-Trainer",
    "The learning rate reaches its end after 2,500 of 10,000 steps and rests there: the schedule is "
    "stepped once for each of the four processes.",
    expect=("lr-schedule-mismatch", "lr-schedule-restart"),
    first=("G-acc-sched", "O8", "A-learning-rate"),
)
def ltx(folder: Path, random: np.random.Generator) -> None:
    lines(folder / "training_config.yaml", ["steps: 10000", "max_steps: 10000", "lr_scheduler_type: linear"])
    rows = (
        {
            "step": i,
            "train/loss": round(noisy(random, 0.3 + 0.5 * 0.9995**i, 0.08), 4),
            "train/lr": 1e-4 * max(0.0, 1 - i / 2500),
        }
        for i in range(20, 8000, 20)
    )
    jsonl(folder / "metrics.jsonl", rows)


@report(
    "modelscope/ms-swift#6049",
    "ms-swift",
    "After the resume at step 601 the loss is 0.9 where it had been 0.67, and it stays: the resume lost "
    "what belongs to the weights.",
    expect=("resume-loss-jump", "resume-discontinuity"),
    first=("R4", "O8"),
)
def swift_resume(folder: Path, random: np.random.Generator) -> None:
    def row(i: int, level: float) -> dict[str, object]:
        loss = round(noisy(random, level, 0.02), 6)
        return swift(i, 2161, loss=loss, grad_norm=round(noisy(random, 0.25, 0.2), 6))

    before = [row(i, 0.66 + 0.7 * 0.99**i) for i in range(1, 606)]
    after = [row(i, 0.9 - 0.0001 * (i - 601)) for i in range(601, 1000)]
    jsonl(folder / "logging.jsonl", [*before, *after])


@report(
    "huggingface/sentence-transformers#3756",
    "Sentence Transformers",
    "The loss was 0.91 when the run ended and begins the resume at 2.4: the weights were not restored.",
    expect=("resume-loss-jump", "resume-discontinuity", "lr-schedule-restart"),
    first=("R4", "O8"),
)
def sentences(folder: Path, random: np.random.Generator) -> None:
    def row(epoch: float, loss: float, rate: float) -> dict[str, object]:
        return {
            "loss": f"{noisy(random, loss, 0.01):.4g}",
            "grad_norm": f"{noisy(random, 0.79, 0.05):.4g}",
            "learning_rate": f"{rate:.4g}",
            "epoch": f"{epoch:.4g}",
        }

    before = [row(0.0022 * i, 0.9 + 1.6 * 0.98**i, 2e-5 * (1 - i / 320)) for i in range(1, 310)]
    after = [row(0.0022 * (309 + i), 0.9 + 1.5 * 0.985**i, 2e-5 * (1 - i / 320)) for i in range(1, 150)]
    printed(folder / "train.log", [*before, *after])


@report(
    "kohya-ss/musubi-tuner#667",
    "musubi-tuner",
    "Nothing to page: the average loss of a resumed run begins anew, 0.0104 after 0.0091, and settles "
    "within a thousand steps.",
)
def musubi(folder: Path, random: np.random.Generator) -> None:
    def row(i: int, average: float) -> str:
        return f"steps: {i / 200:.0f}%|###| {i}/20000 [1:02:03<2:03:04,  1.36s/it, avr_loss={average:.4f}]"

    first = [row(i, noisy(random, 0.0091 + 0.004 * 0.999**i, 0.004)) for i in range(10, 6645, 10)]
    then = [row(i, noisy(random, 0.0094 + 0.001 * 0.998 ** (i - 6000), 0.004)) for i in range(6010, 7300, 10)]
    lines(folder / "train.log", [*first, *then])


@report(
    "jingyaogong/minimind#480",
    "MiniMind",
    "The estimate for an epoch grows from 1,200 to 1,617 minutes within 100,000 steps: each step takes "
    "longer than the one before, so something fills up.",
    expect=("throughput-shift", "odd-metric", "memory-growth"),
    first=("DP5", "A-memory", "A-logging"),
    note_is_enough=True,
)
def minimind(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        total = 1199 + 418 * max(0.0, (i - 360_000) / 100_000)
        loss = noisy(random, 2.05, 0.08)
        return (
            f"Epoch:[1/2]({i}/850049) loss:{loss:.3f} lr:{5e-7 - 1e-13 * i:.12f} epoch_Time:{total:.1f}min:"
        )

    lines(folder / "train.log", map(row, range(300_000, 461_100, 500)))


# More


@report(
    "HKU-MedAI/EndoGS#15",
    "EndoGS",
    "The loss is NaN at every row and the PSNR rests at 5: one point is left and nothing is trained.",
    expect=("non-finite-metric",),
    first=NAN,
)
def endogs(folder: Path, random: np.random.Generator) -> None:
    lines(
        folder / "train.log",
        (
            f"Training progress: {i / 600:.0f}%|##| {i}/60000 [06:52<1:07:23, 13.35it/s, Loss=nan, "
            f"psnr={noisy(random, 5.1, 0.02):.2f}, point=1]"
            for i in range(100, 42000, 100)
        ),
    )


@report(
    "ultralytics/ultralytics#21765",
    "Ultralytics",
    "The held-out losses are NaN in every epoch although mAP rises to 0.56: the validation overflows or "
    "its labels are empty; the training is sound.",
    expect=("non-finite-metric",),
    first=("A-nan-data", "GE-nan"),
)
def ultralytics(folder: Path, random: np.random.Generator) -> None:
    rows = [
        "epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),metrics/recall(B),"
        "metrics/mAP50(B),metrics/mAP50-95(B),val/box_loss,val/cls_loss,val/dfl_loss,lr/pg0,lr/pg1,lr/pg2"
    ]
    for i in range(1, 56):
        quality = 1 - 0.85**i
        rate = 0.01 * (1 - i / 56)
        rows.append(
            f"{i},{550 * i},{0.9 - 1.15 * quality:.5f},{noisy(random, 4.2 + 6 * 0.9**i, 0.02):.5f},"
            f"{noisy(random, 2.9, 0.01):.5f},{0.93 * quality:.5f},{0.9 * quality:.5f},"
            f"{noisy(random, 0.94 * quality, 0.005):.5f},{noisy(random, 0.57 * quality, 0.005):.5f},"
            f"nan,nan,nan,{rate:.6f},{rate:.6f},{rate:.6f}"
        )
    lines(folder / "results.csv", rows)


@report(
    "PrimeIntellect-ai/prime-rl#964",
    "prime-rl",
    "The reward climbed to 0.7 and fell to 0.1 within fifty steps while trainer and sampler came to "
    "disagree: the samples are too old for the policy.",
    expect=("reward-collapse", "off-policy-drift"),
    first=("R1", "N-engine-mismatch", "N-async-staleness", "R2"),
)
def prime_rl(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> dict[str, object]:
        lost = min(1.0, max(0.0, (i - 320) / 50))
        return {
            "step": i,
            "reward/mean": round(noisy(random, (0.2 + 0.5 * min(1, i / 250)) * (1 - 0.85 * lost), 0.06), 4),
            "entropy/mean": round(noisy(random, 0.4 * (1 + 2 * lost), 0.05), 4),
            "mismatch_kl/mean": round(noisy(random, 0.002 + 0.2 * lost, 0.2), 5),
            "optim/grad_norm": round(noisy(random, 0.2 + lost, 0.2), 4),
            "seq_len/mean": round(noisy(random, 900 + 300 * lost, 0.05), 1),
        }

    jsonl(folder / "metrics.jsonl", map(row, range(1, 480)))


@report(
    "hellopipu/PromptMR-plus#7",
    "PromptMR-plus (Lightning)",
    "After about 200 steps the loss leapt from 0.05 to 1 and rests there: without a normalisation the "
    "gradient exploded, and the weights are lost.",
    expect=("loss-divergence", "loss-spike"),
    first=("GE", "G1", "O19", "L6", "A-nan-explode"),
)
def prompt_mr(folder: Path, random: np.random.Generator) -> None:
    rows = ["epoch,step,train_loss"]
    rows += [
        f"0,{i},{noisy(random, 0.045 + 0.25 * 0.97**i, 0.1) if i < 205 else 1.0:.5f}"
        for i in range(0, 600, 2)
    ]
    lines(folder / "metrics.csv", rows)


@report(
    "speechbrain/speechbrain#2808",
    "SpeechBrain",
    "The held-out word error rate rises from 19 to 26 % while the training loss goes to 0: the model "
    "memorises; the best checkpoint lies early.",
    expect=("generalization-gap", "eval-metric-collapse", "pretrained-regression", "train-eval-mismatch"),
    first=("A-overfit", "A-eval-loss", "O19"),
)
def speechbrain(folder: Path, random: np.random.Generator) -> None:
    def row(i: int) -> str:
        rise = 7 * min(1.0, i / 40)
        return (
            f"epoch: {i}, lr_whisper: 1.00e-05 - "
            f"train loss: {noisy(random, 0.005 + 0.8 * 0.9**i, 0.05):.2e} - "
            f"valid loss: {noisy(random, 0.45 + 0.4 * min(1, i / 50), 0.01):.2e}, "
            f"valid CER: {noisy(random, 6 + rise / 3, 0.01):.2f}, "
            f"valid WER: {noisy(random, 19 + rise, 0.01):.2f}"
        )

    lines(folder / "train_log.txt", map(row, range(1, 60)))


@report(
    "X-GenGroup/Flow-Factory#134",
    "Flow-Factory",
    "Two gradient norms in five are NaN: those updates are lost; the numerics of the policy's ratio in "
    "bfloat16 are the place to look.",
    expect=("non-finite-metric",),
    first=NAN,
    note_is_enough=True,
)
def flow_factory(folder: Path, random: np.random.Generator) -> None:
    rows = (
        {
            "step": i,
            "train/loss": round(0.02 * random.standard_normal(), 5),
            "train/grad_norm": float("nan") if random.random() < 0.4 else round(noisy(random, 0.03, 0.5), 5),
            "train/reward_mean": round(noisy(random, 21.2 + i / 500, 0.01), 4),
        }
        for i in range(1, 300)
    )
    jsonl(folder / "metrics.jsonl", rows)
