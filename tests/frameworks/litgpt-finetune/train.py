"""A tiny GPT finetuned on little sums: LitGPT 0.5.13, Lightning 2.6.6, torch 2.13.0.

python -m tests.frameworks.litgpt-finetune.train DIR > DIR/train.log 2>&1
"""

import os
import random
import shutil
import socket
import sys
from pathlib import Path

os.environ["JSONARGPARSE_DEPRECATION_WARNINGS"] = "off"
import torch
from litgpt.args import EvalArgs, TrainArgs
from litgpt.config import Config
from litgpt.data import JSON
from litgpt.finetune.full import setup
from litgpt.model import GPT
from litgpt.prompts import Default
from litgpt.utils import save_config
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

socket.gethostname = lambda: "localhost"


def write_base(directory: Path) -> None:
    """A checkpoint to start from: random weights and a tokenizer of characters."""
    directory.mkdir(parents=True)
    characters = [chr(code) for code in range(32, 127)]
    vocabulary = {token: number for number, token in enumerate(["<unk>", "<s>", "\n", *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "<s>"}'
    )
    size = {"n_layer": 2, "n_embd": 64, "n_head": 4, "block_size": 256, "padded_vocab_size": 128}
    config = Config.from_name("pythia-14m", **size)
    save_config(config, directory)
    torch.save(GPT(config).state_dict(), directory / "lit_model.pth")


def write_sums(path: Path) -> None:
    """Instructions and their answers."""
    pairs = [(random.randrange(50), random.randrange(50)) for _ in range(4000)]
    rows = [f'{{"instruction": "Add {a} and {b}.", "input": "", "output": "{a + b}"}}' for a, b in pairs]
    path.write_text(f"[{','.join(rows)}]")


def main(directory: Path, steps: int) -> None:
    """Train for ``steps`` optimizer steps of two micro-batches each."""
    del sys.argv[2:]  # LitGPT would read them as its own
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    write_base(directory / "base")
    write_sums(directory / "base" / "sums.json")
    setup(
        directory / "base",
        out_dir=directory,
        precision="32-true",
        devices=1,
        data=JSON(
            directory / "base" / "sums.json", val_split_fraction=0.05, prompt_style=Default(), num_workers=0
        ),
        train=TrainArgs(
            global_batch_size=16,
            micro_batch_size=8,
            log_interval=2,
            save_interval=None,
            epochs=10,
            max_steps=steps,
            lr_warmup_steps=10,
        ),
        eval=EvalArgs(interval=40, max_iters=4, max_new_tokens=4),
        optimizer={"class_path": "torch.optim.AdamW", "init_args": {"lr": 2e-3}},
        logger_name="tensorboard",
    )
    shutil.rmtree(directory / "base")
    shutil.rmtree(directory / "final")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
