"""A part-of-speech tagger over counted words, with flair's ModelTrainer.

flair 0.15.1, torch 2.13.0. Writes training.log, loss.tsv and TensorBoard event files.
"""

import random
import socket
import sys
import tempfile
from pathlib import Path

socket.gethostname = lambda: "localhost"

import flair  # noqa: E402
import torch  # noqa: E402
from flair.datasets import ColumnCorpus  # noqa: E402
from flair.embeddings import OneHotEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402
from flair.trainers.plugins import TensorboardLogger  # noqa: E402

WORDS = {"cat": "NOUN", "dog": "NOUN", "sees": "VERB", "runs": "VERB", "the": "DET", "a": "DET", "big": "ADJ"}


def make_corpus(folder):
    for part, count in (("train", 320), ("dev", 64), ("test", 64)):
        sentences = [random.choices([*WORDS], k=6) for _ in range(count)]
        text = "\n\n".join("\n".join(f"{word} {WORDS[word]}" for word in words) for words in sentences)
        (folder / f"{part}.txt").write_text(text + "\n")
    return ColumnCorpus(folder, {0: "text", 1: "pos"}, train_file="train.txt", dev_file="dev.txt")


def main(log):
    log.mkdir(parents=True, exist_ok=True)
    flair.set_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(Path(folder))
        tagger = SequenceTagger(
            embeddings=OneHotEmbeddings.from_corpus(corpus, embedding_length=8, min_freq=1),
            tag_dictionary=corpus.make_label_dictionary("pos"),
            tag_type="pos",
            hidden_size=8,
            use_crf=False,
        )
        ModelTrainer(tagger, corpus).train(
            log,
            learning_rate=0.2,
            mini_batch_size=16,
            max_epochs=8,
            monitor_train_sample=64,
            plugins=[TensorboardLogger(log_dir=str(log / "tensorboard"))],
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
