"""GRPO by TRL on a model that speaks the small language."""

import os
import random
from collections.abc import Callable
from pathlib import Path

from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from sample_logs.make.language import model_that_speaks, subject, tokenizer

Reward = Callable[..., list[float]]


class Impatience(TrainerCallback):
    """Somebody who stops the training early."""

    def __init__(self, last_step: int):
        self.last_step = last_step

    def on_step_end(self, _args, state, control, **_):
        control.should_training_stop = state.global_step >= self.last_step


def grpo(
    logs: Path,
    reward: Reward | list[Reward],
    *,
    max_steps: int,
    last_step: int | None = None,
    trainer: type[GRPOTrainer] = GRPOTrainer,
    **settings,
) -> None:
    """Train against a reward or several, with the log in ``logs``; ``settings`` are GRPOConfig's."""
    words = tokenizer()
    model_that_speaks(words).save_pretrained("base")
    words.save_pretrained("base")
    chance = random.Random(1)
    prompts = Dataset.from_dict({"prompt": [subject(chance) for _ in range(512)]})
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(logs)
    defaults = {
        "output_dir": "run",
        "max_steps": max_steps,
        "use_cpu": True,
        "bf16": False,
        "per_device_train_batch_size": 32,
        "num_generations": 8,
        "max_completion_length": 32,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": 10,
        "logging_steps": 2,
        "report_to": "tensorboard",
        "save_strategy": "no",
        "disable_tqdm": True,
        "gradient_checkpointing": False,
    }
    trainer(
        model="base",
        reward_funcs=reward,
        args=GRPOConfig(**defaults | settings),
        train_dataset=prompts,
        callbacks=[Impatience(last_step or max_steps)],
    ).train()
