"""A tiny Llama finetuned on little sums: ms-swift 4.6.0, transformers 5.19.0, torch 2.13.0."""

import json
import shutil
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from swift import SftArguments, sft_main

from tests.frameworks.tiny_llama import sums, write_model

socket.gethostname = lambda: "localhost"


def main(directory: Path, steps: int) -> None:
    torch.set_num_threads(1)
    with TemporaryDirectory(dir=".") as base:
        write_model(Path(base))
        rows = [
            {
                "messages": [
                    {"role": "user", "content": s["instruction"]},
                    {"role": "assistant", "content": s["output"]},
                ]
            }
            for s in sums(2000)
        ]
        Path(base, "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        sft_main(
            SftArguments(
                model=base,
                model_type="llama",
                template="dummy",
                tuner_type="full",
                torch_dtype="float32",
                dataset=[f"{base}/sums.jsonl"],
                split_dataset_ratio=0.05,
                max_length=64,
                output_dir=str(directory),
                add_version=False,
                max_steps=steps,
                per_device_train_batch_size=8,
                gradient_accumulation_steps=2,
                learning_rate=2e-3,
                warmup_steps=5,
                logging_steps=2,
                eval_strategy="steps",
                eval_steps=20,
                save_strategy="no",
                report_to=["tensorboard"],
                use_cpu=True,
                seed=0,
            )
        )
    shutil.rmtree(directory / "images")
    (directory / "val_dataset.jsonl").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80)
