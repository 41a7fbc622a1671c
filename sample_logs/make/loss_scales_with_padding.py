"""A loss that is summed over words but divided by all places of the batch, padding included."""

import random
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

from sample_logs.make.language import sentence, tokenizer, untrained_model


def train(logs: Path) -> None:
    chance = random.Random(0)
    words = tokenizer()
    model = untrained_model(words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    with SummaryWriter(logs) as log:
        for step in range(400):
            texts = [sentence(chance) for _ in range(8)]
            batch = words(texts, padding=True, padding_side="right", return_tensors="pt")
            logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits[:, :-1]
            mask = batch.attention_mask[:, 1:]
            losses = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), batch.input_ids[:, 1:].flatten(), reduction="none"
            )
            loss = (losses * mask.flatten()).mean()  # the mistake: should be divided by mask.sum()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            log.add_scalar("train/loss", loss.item(), step)
            log.add_scalar("train/grad_norm", norm.item(), step)
            log.add_scalar("data/pad_fraction", 1 - mask.float().mean().item(), step)
