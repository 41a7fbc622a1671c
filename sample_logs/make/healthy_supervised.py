"""A small language model that learns what it is shown."""

import os
import random
from pathlib import Path

from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

from sample_logs.make.language import sentence, tokenizer, untrained_model


def train(logs: Path) -> None:
    chance = random.Random(0)
    words = tokenizer()
    texts = Dataset.from_list([dict(words(sentence(chance))) for _ in range(4096)]).train_test_split(
        256, seed=0
    )
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(logs)
    arguments = TrainingArguments(
        output_dir="run",
        use_cpu=True,
        max_steps=600,
        per_device_train_batch_size=16,
        learning_rate=2e-3,
        lr_scheduler_type="cosine",
        warmup_steps=60,
        logging_steps=3,
        eval_strategy="steps",
        eval_steps=60,
        report_to="tensorboard",
        save_strategy="no",
        disable_tqdm=True,
    )
    Trainer(
        model=untrained_model(words),
        args=arguments,
        train_dataset=texts["train"],
        eval_dataset=texts["test"],
        data_collator=DataCollatorForLanguageModeling(words, mlm=False),
    ).train()
