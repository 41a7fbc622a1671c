"""A training for the tests, which is given its log, how it ends, and a file that ends it once it exists."""

import json
import os
import sys
import time
from pathlib import Path

log = Path(sys.argv[1])
end = sys.argv[2]
gate = Path(sys.argv[3])
log.parent.mkdir(parents=True, exist_ok=True)
with log.open("a") as file:
    for step in range(200):
        loss = 2.0 / (1 + step / 50) if end != "nan" or step < 100 else float("nan")
        file.write(json.dumps({"step": step, "loss": loss + 0.01 * (step % 7)}) + "\n")
    file.flush()
    os.utime(log, (time.time() + 5,) * 2)  # what is written at once is taken for a copy
    print("logged", flush=True)
    while not gate.exists():
        time.sleep(0.05)
    if end == "well":
        file.write(json.dumps({"step": 200, "loss": 0.4, "done": 1}) + "\n")
    if end == "crash":
        (log.parent / "train.log").write_text(
            'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: CUDA error\n'
        )
if end == "crash":
    raise RuntimeError("CUDA error: device-side assert triggered")
