"""The logs of a few runs of one training program, for tests of what siblings tell."""

import json

import numpy as np


def lines(seed, worse=0.0, **settings):
    """The lines of a run of 200 steps whose loss falls from 3 to 1, and is ``worse`` from half on."""
    random = np.random.default_rng(seed)
    level = 0.02 * random.normal()
    yield json.dumps({"config": {"learning_rate": 0.1, "seed": seed, "max_steps": 200, **settings}})
    for step in range(1, 201):
        noise = level + 0.05 * random.normal()
        loss = 1 + 2 * np.exp(-step / 40) + noise + worse * (step > 100)
        yield json.dumps({"step": step, "train/loss": loss})


def write(place, *words, **more):
    """Write the whole log of a run into a directory."""
    place.mkdir(parents=True)
    (place / "metrics.jsonl").write_text("\n".join(lines(*words, **more)) + "\n")


def write_tree(place):
    """Write six runs, of which the last is worse from half on. Gives the place."""
    for seed in range(6):
        write(place / f"run-{seed}", seed, 0.3 * (seed == 5))
    return place
