"""Trainings that resume without a part of their state, in Hugging Face's Trainer."""

import os
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from studies.faults.fault import fault
from studies.faults.loggers import Log, own

STEPS = 400
RESUMED = 200
WORDS = 32


class Interruption(TrainerCallback):
    """The machine goes down after some step."""

    def on_step_end(self, _arguments, state, control, **_):
        control.should_training_stop = control.should_training_stop or state.global_step == RESUMED


@fault(
    "R4",
    title="a resume without optimizer and schedule, without the moments, without a part of the moments",
    strengths=(1.0, 0.5, 0.1),
    visible=(RESUMED, RESUMED, RESUMED),
    logger=own,
)
def resume_without_state(strength: float, log: Log) -> None:
    """``strength`` 1 loses optimizer and schedule; below, twice that share of Adam's moments."""
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(log.directory)
    moves = torch.softmax(3 * torch.randn(WORDS, WORDS), -1)
    texts = torch.randint(WORDS, (512, 1))
    while texts.shape[1] < 16:
        texts = torch.cat([texts, torch.multinomial(moves[texts[:, -1]], 1)], 1)
    data = [{"input_ids": text, "labels": text} for text in texts]
    for checkpoint in None, Path(f"output/checkpoint-{RESUMED}"):
        if checkpoint:
            _forget(checkpoint, strength)
        trainer = Trainer(
            model=GPT2LMHeadModel(
                GPT2Config(vocab_size=WORDS, n_positions=16, n_embd=64, n_layer=2, n_head=2)
            ),
            args=TrainingArguments(
                output_dir="output",
                max_steps=STEPS,
                logging_steps=2,
                save_steps=RESUMED,
                learning_rate=3e-3,
                warmup_steps=40,
                lr_scheduler_type="cosine",
                report_to="tensorboard",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=data,
            callbacks=[] if checkpoint else [Interruption()],
        )
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))


def _forget(checkpoint: Path, strength: float) -> None:
    if strength == 1:
        for lost in "optimizer.pt", "scheduler.pt":
            (checkpoint / lost).unlink()
    elif strength:
        state = torch.load(checkpoint / "optimizer.pt")
        for index in list(state["state"])[: round(2 * strength * len(state["state"]))]:
            for moment in "exp_avg", "exp_avg_sq":
                state["state"][index][moment].zero_()
        torch.save(state, checkpoint / "optimizer.pt")
