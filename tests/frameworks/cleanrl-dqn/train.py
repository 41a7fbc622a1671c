"""DQN on CartPole: the script cleanrl/dqn.py of CleanRL as it is on PyPI, which logs to TensorBoard.

cleanrl 1.2.0, stable-baselines3 2.0.0a1, gymnasium 0.28.1, torch 2.14.1 on a CPU, Python 3.10.
"""

import os
import runpy
import socket
import sys
from pathlib import Path


def main(directory: str, steps: int = 5000) -> None:
    socket.gethostname = lambda: "localhost"
    Path(directory).mkdir(parents=True, exist_ok=True)
    os.chdir(directory)  # it writes below runs/
    sys.argv = ["dqn.py", f"--total-timesteps={steps}", "--cuda=False", "--learning-starts=500"]
    runpy.run_module("cleanrl.dqn", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
