"""Hugging Face's Trainer: a GPT-2 of one layer learns to count. What it prints goes to ``log/train.log``.

Transformers 5.23.0, Torch 2.13.0, TensorBoard 2.21.0; a few seconds on one CPU.
"""

import os
import socket
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


def main(directory: Path) -> None:
    socket.gethostname = lambda: "localhost"
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(directory / "runs")
    torch.set_num_threads(1)
    set_seed(0)
    data = [{"input_ids": t, "labels": t} for t in (torch.arange(i, i + 8) % 16 for i in range(256))]
    config = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1)
    arguments = TrainingArguments(
        output_dir=str(directory / "out"),
        max_steps=60,
        logging_steps=3,
        eval_strategy="steps",
        eval_steps=30,
        warmup_steps=6,
        learning_rate=0.01,
        save_strategy="no",
        report_to="tensorboard",
        use_cpu=True,
    )
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data, eval_dataset=data[:16])
    trainer.train()
    trainer.save_state()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
