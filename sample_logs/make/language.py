"""A language small enough to learn in seconds, and a model that speaks it."""

import random

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ADJECTIVES = ["happy", "lovely", "bright", "calm", "grey", "sad", "cold", "slow"]
NOUNS = ["dog", "cat", "bird", "horse", "river", "tree", "child", "house"]
VERBS = ["sees", "likes", "follows", "finds", "hears", "wakes", "misses", "meets"]
PADDING, END = "<pad>", "<end>"


def subject(chance: random.Random) -> str:
    return f"the {chance.choice(ADJECTIVES)} {chance.choice(NOUNS)}"


def sentence(chance: random.Random) -> str:
    """One or more clauses, such as: the calm cat sees the sad dog and the sad dog wakes the grey bird ."""
    clauses = [f"{subject(chance)} {chance.choice(VERBS)} {subject(chance)}"]
    while chance.random() < 0.4 and len(clauses) < 4:
        clauses.append(f"{subject(chance)} {chance.choice(VERBS)} {subject(chance)}")
    return " and ".join(clauses) + f" . {END}"


def tokenizer() -> PreTrainedTokenizerFast:
    words = [PADDING, END, "the", "and", ".", *ADJECTIVES, *NOUNS, *VERBS]
    model = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=PADDING))
    model.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token=PADDING, eos_token=END, padding_side="left"
    )


def untrained_model(words: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=128,
            pad_token_id=words.pad_token_id,
            bos_token_id=None,
            eos_token_id=words.eos_token_id,
        )
    )


def model_that_speaks(words: PreTrainedTokenizerFast, steps: int = 300) -> LlamaForCausalLM:
    """Return a model that has learned the language."""
    chance = random.Random(0)
    model = untrained_model(words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        texts = [sentence(chance) for _ in range(32)]
        batch = words(texts, padding=True, padding_side="right", return_tensors="pt")
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model
