"""Preference trainings by TRL's DPO."""

import os
import random

from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from sample_logs.make.language import ADJECTIVES, END, NOUNS, VERBS, model_that_speaks, subject, tokenizer
from studies.faults.fault import fault
from studies.faults.loggers import Log, own


@fault(
    "L9",
    "L8",
    title="chosen and rejected are drawn by chance in all, nine tenths or six tenths of the pairs",
    strengths=(1.0, 0.9, 0.6),
    logger=own,
)
def flat_margins(strength: float, log: Log) -> None:
    """``strength`` is the share of the pairs whose order is that of a coin."""
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(log.directory)
    words = tokenizer()
    pairs = []
    for _ in range(480):
        start = random.choice(VERBS)
        better, worse = (
            f"the {random.choice(part)} {random.choice(NOUNS)} . {END}"
            for part in (ADJECTIVES[:4], ADJECTIVES[4:])
        )
        if random.random() < strength / 2:
            better, worse = worse, better
        pairs.append({"prompt": f"{subject(random)} {start} ", "chosen": better, "rejected": worse})
    words.save_pretrained("base")
    model_that_speaks(words).save_pretrained("base")
    DPOTrainer(
        model="base",
        args=DPOConfig(
            output_dir="output",
            max_steps=120,
            logging_steps=1,
            learning_rate=1e-4,
            per_device_train_batch_size=16,
            report_to="tensorboard",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(pairs),
        processing_class=words,
    ).train()
