"""A sentence embedding model of two small layers, trained with SentenceTransformerTrainer.

sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0. Writes TensorBoard event files and
trainer_state.json; what it prints goes to LOG/train.log:
`python -m tests.frameworks.sentence-transformers.train LOG > LOG/train.log 2>&1`.
"""

import random
import shutil
import socket
import sys
import tempfile
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from sentence_transformers import (  # noqa: E402
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
)
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator  # noqa: E402
from transformers import BertConfig, BertModel, BertTokenizerFast  # noqa: E402

WORDS = ["red", "blue", "green", "car", "house", "tree", "big", "small", "old", "new"]


def make_encoder(folder):
    """An untrained BERT that knows these words."""
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=15, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder)
    return models.Transformer(str(folder), max_seq_length=16)


def make_pairs(count):
    """Pairs of sentences with the share of words that they have in common."""
    first = [random.sample(WORDS, 3) for _ in range(count)]
    second = [random.sample(words, 2) + random.sample(WORDS, 1) for words in first]
    second = [other if i % 2 else random.sample(WORDS, 3) for i, other in enumerate(second)]
    score = [len({*a} & {*b}) / 3 for a, b in zip(first, second, strict=True)]
    first, second = ([" ".join(words) for words in column] for column in (first, second))
    return {"sentence1": first, "sentence2": second, "score": score}


def main(log):
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        encoder = make_encoder(Path(folder))
        model = SentenceTransformer(modules=[encoder, models.Pooling(32)], device="cpu")
    validation = make_pairs(64)
    SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=log,
            num_train_epochs=3,
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            warmup_steps=10,
            logging_steps=5,
            eval_strategy="steps",
            eval_steps=40,
            save_steps=120,
            report_to="tensorboard",
            use_cpu=True,
        ),
        train_dataset=Dataset.from_dict(make_pairs(640)),
        eval_dataset=Dataset.from_dict(validation),
        loss=losses.CosineSimilarityLoss(model),
        evaluator=EmbeddingSimilarityEvaluator(*validation.values(), name="pairs"),
    ).train()
    for checkpoint in log.glob("checkpoint-*"):
        for path in checkpoint.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "trainer_state.json":
                path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
