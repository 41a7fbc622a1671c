"""A home directory that holds no training log, and much that resembles one.

python -m tests.sources.messy_home DIR    # builds a large one, to time `sentinel runs DIR`
"""

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

_PROMPT = "Explain the history of the Roman empire to a child, in simple words. " * 4
_ZEN = "module.exports = {}\n"


def build(home: Path, size: int) -> None:
    """Write the directory. ``size`` is the number of rows of the largest data set."""
    chance = random.Random(1)

    def write(name: str, content: str | bytes) -> None:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def lines(line: Callable[[int], str], count: int) -> str:
        return "".join(f"{line(i)}\n" for i in range(count))

    def rows(record: Callable[[int], Mapping[str, Any]], count: int) -> str:
        return lines(lambda i: json.dumps(record(i)), count)

    few = max(1, size // 1000)
    some = max(60, size // 40)
    for name, content in _fixed(chance, some, rows, lines):
        write(name, content)
    for i in range(few * 75):
        write(f"project/node_modules/p{i // 10}/f{i % 10}.js", _ZEN)
    for i in range(few * 20):
        write(f"project/.venv/lib/python3.11/site-packages/m{i // 20}/f{i % 20}.py", "x = 1\n")
        write(f"project/venv/lib/python3.11/m{i // 20}/f{i % 20}.py", "x = 1\n")
        write(f"Pictures/IMG_{i:05}.png", b"\x89PNG\r\n\x1a\n" + chance.randbytes(3000))
    for i in range(few):
        rollout = rows(lambda _: {"prompt": _PROMPT, "response": "y", "reward": chance.random()}, 20)
        write(f"project/rollouts/{i}.jsonl", rollout)
    write(
        "project/data/completions.jsonl",
        rows(lambda i: {"id": i, "prompt": _PROMPT, "completion": f"answer {i}", "score": i % 7}, size),
    )


def _fixed(
    chance: random.Random, some: int, rows: Callable[..., str], lines: Callable[..., str]
) -> Iterable[tuple[str, str]]:
    """Files of data, of results and of other programs."""
    yield (
        "project/data/preferences.jsonl",
        rows(
            lambda _: {
                "prompt_id": chance.randrange(10**6),
                "reward": chance.random(),
                "kl": chance.random(),
            },
            some,
        ),
    )
    yield "project/data/train.jsonl", rows(lambda i: {"text": f"hello {i}", "label": i % 3}, some)
    yield (
        "project/data/walks.jsonl",
        rows(
            lambda i: {
                "date": f"2026-01-{1 + i % 28:02}",
                "steps": chance.randrange(9000),
                "pulse": 60 + i % 20,
            },
            some,
        ),
    )
    yield (
        "project/data/samples.jsonl",
        rows(lambda i: {"doc_id": i, "acc": float(i % 2), "acc_norm": float(i % 2)}, some),
    )
    yield (
        "project/data/instances_train.json",
        json.dumps({"images": [{"id": i, "height": 640} for i in range(some)]}),
    )
    yield (
        "project/data/train.csv",
        "id,age,cost,loss\n" + lines(lambda i: f"{i},{i % 90},{i * 3},{chance.random()}", some),
    )
    yield "project/data/history.csv", "date,open,close\n" + lines(lambda i: f"2026-01-01,{i},{i}", some)
    yield (
        "project/results/results.csv",
        "model,data,accuracy,f1\n" + lines(lambda i: f"m{i},d{i % 3},0.9,0.8", 30),
    )
    yield "project/results/summary.csv", "name,mean,std\nA,1,2\n"
    yield "project/results/leaderboard.csv", ",model,accuracy\n" + lines(lambda i: f"{i},m{i},0.5", 40)
    yield "project/results/eval_results.json", json.dumps({"accuracy": 0.9, "loss": 0.3, "epoch": 3})
    yield "project/results/train_results.json", json.dumps({"train_loss": 0.9, "epoch": 3})
    yield "project/metrics.json", json.dumps([{"name": f"b{i}", "mean": i * 0.1} for i in range(50)])
    yield "project/npm-debug.log", lines(lambda i: f"{i} verbose cli step {i} /usr/bin/node", some)
    yield "project/pip.log", lines(lambda i: f"2026-01-01T00:00:{i % 60:02} Collecting torch step {i}", some)
    yield "project/bench.csv", "iteration,latency\n" + lines(lambda i: f"{i},{chance.random()}", 200)
    yield (
        "logs/access.log",
        lines(lambda i: f'127.0.0.1 - - "GET /run?epoch={i}&loss=1.{i} HTTP/1.1" 200 {i}', some),
    )
    yield "logs/syslog.log", lines(lambda i: f"Jan  1 00:00:{i % 60:02} kernel: [{i}.0] usb 1-1: error", some)
    yield (
        "logs/server.log",
        lines(
            lambda i: f"2026-01-01 00:00:{i % 60:02},123 INFO worker step={i} latency=0.{i} cpu={i % 100}%",
            some,
        ),
    )
    yield "logs/bot.log", lines(lambda i: f"order filled at {i}.5, stop loss: {i}.0, profit: 3", some)
    yield "logs/ping.txt", lines(lambda i: f"10 packets received, packet loss: 0%, time {i}ms", some)
    yield "logs/game.out", lines(lambda i: f"[quest] player reward: {i} xp, accuracy: 0.{i}", some)
    yield (
        "logs/app.jsonl",
        rows(
            lambda i: {
                "timestamp": f"2026-01-01T00:{i // 60 % 60:02}:{i % 60:02}",
                "status": 200,
                "ms": i % 50,
            },
            some,
        ),
    )
    yield "chat/history.json", json.dumps([{"role": "user", "content": "x", "tokens": i} for i in range(500)])
    yield "chat/log.json", json.dumps([{"ts": 1.7e9 + i, "level": "info", "code": i} for i in range(500)])
    yield "Documents/weight_loss.csv", "week,weight\n" + lines(lambda i: f"{i},{90 - i * 0.3}", some)
    yield "Documents/training_log.csv", "date,exercise,reps\n" + lines(lambda i: f"2026-01-01,squat,{i}", 60)
    yield "tables/users.sqlite", "SQLite format 3\0" + "\0" * 5000


if __name__ == "__main__":
    build(Path(sys.argv[1]), 200_000)
