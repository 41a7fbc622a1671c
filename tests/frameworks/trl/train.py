"""TRL's trainers on a language of 30 words, a few steps each.

TRL 1.16.0, Transformers 5.23.0, Torch 2.13.0, TensorBoard 2.21.0; half a minute on one CPU.
"""

import os
import random
import socket
import sys
from pathlib import Path

import torch
import trl
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, LlamaForCausalLM, set_seed
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

from sample_logs.make.language import model_that_speaks, sentence, subject, tokenizer

WORDS = tokenizer()
CHANCE = random.Random(0)
ASKED = [subject(CHANCE) for _ in range(64)]
GOOD = [f" {sentence(CHANCE)}" for _ in ASKED]
BAD = [" ".join(CHANCE.sample(text.split(), len(text.split()))) for text in GOOD]
LABELS = [True] * len(GOOD) + [False] * len(BAD)

PROMPTS = Dataset.from_dict({"prompt": ASKED})
TEXTS = Dataset.from_dict({"text": [a + b for a, b in zip(ASKED, GOOD, strict=True)]})
PAIRS = Dataset.from_dict({"prompt": ASKED, "chosen": GOOD, "rejected": BAD})
JUDGED = Dataset.from_dict({"prompt": ASKED * 2, "completion": GOOD + BAD, "label": LABELS})

SPOKEN = {"max_steps": 6, "logging_steps": 1}
GROUPS = {**SPOKEN, "num_generations": 4, "max_completion_length": 16}
KINDS = {
    "sft": (trl.SFTTrainer, trl.SFTConfig, TEXTS, {}),
    "dpo": (trl.DPOTrainer, trl.DPOConfig, PAIRS, {}),
    "kto": (trl.KTOTrainer, trl.KTOConfig, JUDGED, {}),
    "cpo": (CPOTrainer, CPOConfig, PAIRS, {}),
    "orpo": (ORPOTrainer, ORPOConfig, PAIRS, {}),
    "reward": (trl.RewardTrainer, trl.RewardConfig, PAIRS, {}),
    "grpo": (trl.GRPOTrainer, trl.GRPOConfig, PROMPTS, {**GROUPS, "beta": 0.04}),
    "rloo": (trl.RLOOTrainer, trl.RLOOConfig, PROMPTS, GROUPS),
    "online_dpo": (OnlineDPOTrainer, OnlineDPOConfig, PROMPTS, {**SPOKEN, "max_new_tokens": 16}),
}


def variety(completions, **_):
    return [len(set(text.split())) / 10 + CHANCE.gauss(0, 0.05) for text in completions]


def train(name: str, directory: Path) -> None:
    trainer, config, data, settings = KINDS[name]
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(directory)
    common = {
        "output_dir": "out",
        "max_steps": 12,
        "logging_steps": 2,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-5,
        "report_to": "tensorboard",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
    }
    if name == "reward":
        model = AutoModelForSequenceClassification.from_pretrained("speaker", num_labels=1)
    else:
        model = LlamaForCausalLM.from_pretrained("speaker")
    rewarded = {"reward_funcs": variety} if data is PROMPTS else {}
    trainer(
        model, args=config(**common | settings), train_dataset=data, processing_class=WORDS, **rewarded
    ).train()


if __name__ == "__main__":
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    set_seed(0)
    model_that_speaks(WORDS).save_pretrained("speaker")
    for kind in KINDS:
        train(kind, Path(sys.argv[1]) / kind)
