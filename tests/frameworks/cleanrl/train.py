"""PPO on CartPole: the script cleanrl/ppo.py of CleanRL as it is on PyPI, which logs to TensorBoard.

cleanrl 1.2.0, gym 0.23.1, torch 2.14.1 on a CPU, Python 3.10.
"""

import os
import runpy
import socket
import sys
from pathlib import Path

import gym


def main(directory: str, steps: int = 8192) -> None:
    socket.gethostname = lambda: "localhost"
    gym.logger.set_level(gym.logger.ERROR)  # its warnings name files
    Path(directory).mkdir(parents=True, exist_ok=True)
    os.chdir(directory)  # it writes below runs/
    sys.argv = ["ppo.py", f"--total-timesteps={steps}", "--cuda=False", "--learning-rate=1e-3"]
    runpy.run_module("cleanrl.ppo", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
