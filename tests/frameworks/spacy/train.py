"""A part-of-speech tagger over made-up words, trained by spaCy's own loop with its console logger.

spacy 3.8.18. ConsoleLogger.v3 writes one JSON line for each evaluation and prints a table, which goes to
LOG/train.log: `python -m tests.frameworks.spacy.train LOG > LOG/train.log 2>&1`.
"""

import random
import socket
import sys
import tempfile
from pathlib import Path

socket.gethostname = lambda: "localhost"

import spacy  # noqa: E402
from spacy.tokens import Doc, DocBin  # noqa: E402
from spacy.training.initialize import init_nlp  # noqa: E402
from spacy.training.loop import train  # noqa: E402
from thinc.api import Config  # noqa: E402

SETTINGS = """
[nlp]
lang = "en"
pipeline = ["tagger"]
[components]
[components.tagger]
factory = "tagger"
[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = "{folder}/train.spacy"
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = "{folder}/dev.spacy"
[training]
max_steps = 200
eval_frequency = 20
dev_corpus = "corpora.dev"
train_corpus = "corpora.train"
[training.logger]
@loggers = "spacy.ConsoleLogger.v3"
output_file = "{log}/steps.jsonl"
progress_bar = null
"""
ENDINGS = {"ing": "VERB", "ly": "ADV", "ness": "NOUN", "ous": "ADJ"}


def make_texts(path, count):
    vocab = spacy.blank("en").vocab
    texts = []
    for _ in range(count):
        endings = random.choices([*ENDINGS], k=8)
        words = ["".join(random.choices("bcdaeiou", k=4)) + ending for ending in endings]
        texts.append(Doc(vocab, words, tags=[ENDINGS[ending] for ending in endings]))
    DocBin(docs=texts).to_disk(path)


def main(log):
    random.seed(0)
    log.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make_texts(f"{folder}/train.spacy", 200)
        make_texts(f"{folder}/dev.spacy", 40)
        config = Config().from_str(SETTINGS.format(folder=folder, log=log))
        filled = spacy.util.load_model_from_config(config, auto_fill=True).config
        train(init_nlp(filled))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
