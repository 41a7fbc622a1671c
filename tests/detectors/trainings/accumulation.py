"""transformers' trainer with a loss that divides by the tokens of the update, or that takes a mean.

python -m tests.detectors.trainings.accumulation sick > tests/detectors/trainings/items-sick.log
"""

import sys
from tempfile import TemporaryDirectory

import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
from transformers.modeling_outputs import CausalLMOutput


def row(chain: torch.Tensor) -> dict[str, list[int]]:
    """Sixteen tokens of a Markov chain."""
    tokens = [int(torch.randint(len(chain), ()))]
    for _ in range(15):
        tokens.append(int(torch.multinomial(chain[tokens[-1]], 1)))
    return {"input_ids": tokens, "labels": tokens}


def train(healthy: bool) -> None:
    """Accumulate over eight batches of four rows."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=64, **sizes))
    chain = torch.softmax(4 * torch.randn(64, 64), 1)
    rows = [row(chain) for _ in range(4096)]

    def loss(out: CausalLMOutput, labels: torch.Tensor, num_items_in_batch: int) -> torch.Tensor:
        logits = out.logits[:, :-1].flatten(0, 1)
        tokens = labels[:, 1:].flatten()
        if healthy:
            return cross_entropy(logits, tokens, reduction="sum") / num_items_in_batch
        return cross_entropy(logits, tokens)

    with TemporaryDirectory() as directory:
        settings = TrainingArguments(
            directory,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=8,
            max_steps=100,
            logging_steps=1,
            learning_rate=1e-2,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
        )
        Trainer(model, settings, train_dataset=rows, compute_loss_func=loss).train()


if __name__ == "__main__":
    train(sys.argv[1] == "healthy")
