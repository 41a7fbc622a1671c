"""A tiny Llama finetuned on little sums: LLaMA-Factory 0.9.5, transformers 5.6.0, torch 2.13.0."""

import json
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from llamafactory.train.tuner import run_exp

from tests.frameworks.tiny_llama import write_model, write_sums

socket.gethostname = lambda: "localhost"

KEPT = (
    "trainer_log.jsonl",
    "trainer_state.json",
    "train_results.json",
    "eval_results.json",
    "all_results.json",
)


def main(directory: Path, steps: int) -> None:
    torch.set_num_threads(1)
    with TemporaryDirectory(dir=".") as base:
        write_model(Path(base))
        write_sums(Path(base, "sums.json"), 2000)
        columns = {"prompt": "instruction", "response": "output"}
        info = {"sums": {"file_name": "sums.json", "columns": columns}}
        Path(base, "dataset_info.json").write_text(json.dumps(info))
        run_exp(
            {
                "model_name_or_path": base,
                "stage": "sft",
                "do_train": True,
                "finetuning_type": "full",
                "dataset_dir": base,
                "dataset": "sums",
                "template": "empty",
                "cutoff_len": 64,
                "val_size": 0.05,
                "output_dir": str(directory),
                "logging_steps": 2,
                "eval_strategy": "steps",
                "eval_steps": 20,
                "save_strategy": "no",
                "per_device_train_batch_size": 8,
                "gradient_accumulation_steps": 2,
                "learning_rate": 2e-3,
                "max_steps": steps,
                "lr_scheduler_type": "cosine",
                "warmup_steps": 5,
                "include_num_input_tokens_seen": True,
                "report_to": "tensorboard",
                "use_cpu": True,
                "seed": 0,
            }
        )
    for file in directory.iterdir():  # the model and what belongs to it
        if file.is_file() and file.name not in (*KEPT, "train.log"):
            file.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80)
