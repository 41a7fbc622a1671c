"""Gradients are accumulated over four batches, but the schedule counts every batch."""

import json
import random
from pathlib import Path

import torch
from accelerate import Accelerator
from transformers import get_linear_schedule_with_warmup

from sample_logs.make.language import sentence, tokenizer, untrained_model

UPDATES, ACCUMULATION = 400, 4


def train(logs: Path) -> None:
    chance = random.Random(0)
    words = tokenizer()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)
    model = untrained_model(words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, UPDATES // 20, UPDATES)
    model, optimizer = accelerator.prepare(model, optimizer)  # the mistake: not the schedule
    losses: list[float] = []
    with open(logs / "metrics.jsonl", "w") as log:
        while len(losses) < UPDATES * ACCUMULATION:
            texts = [sentence(chance) for _ in range(8)]
            batch = words(texts, padding=True, padding_side="right", return_tensors="pt")
            labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
            with accelerator.accumulate(model):
                loss = model(
                    input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=labels
                ).loss
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            if accelerator.sync_gradients:
                line = {
                    "step": len(losses) // ACCUMULATION,
                    "total_steps": UPDATES,
                    "loss": round(sum(losses[-ACCUMULATION:]) / ACCUMULATION, 5),
                    "learning_rate": schedule.get_last_lr()[0],
                }
                log.write(json.dumps(line) + "\n")
