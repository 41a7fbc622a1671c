"""A language model small enough to be finetuned in seconds, and something that it can learn."""

import json
import random
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"


def write_model(directory: Path) -> None:
    """A Llama with random weights and a tokenizer of characters, as ``from_pretrained`` reads them."""
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokens = [*special.values(), "\n", *map(chr, range(32, 127))]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **special)
    fast.save_pretrained(directory)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


def sums(count: int) -> list[dict[str, str]]:
    """Instructions to add two numbers, with the answers."""
    numbers = random.Random(0)
    pairs = [(numbers.randrange(50), numbers.randrange(50)) for _ in range(count)]
    return [{"instruction": f"Add {a} and {b}.", "output": str(a + b)} for a, b in pairs]


def write_sums(path: Path, count: int) -> None:
    """The same as one JSON document."""
    path.write_text(json.dumps(sums(count)))
