"""SAC on Pendulum with Stable-Baselines3, through its loggers for the console, TensorBoard, CSV and JSON.

stable-baselines3 2.9.2, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import configure


def main(directory: str, steps: int = 6000) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    model = SAC(
        "MlpPolicy",
        "Pendulum-v1",
        learning_rate=2e-3,
        batch_size=128,
        train_freq=4,
        gradient_steps=2,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
    )
    model.set_logger(configure(f"{directory}/sac", ["stdout", "tensorboard", "csv", "json"]))
    model.learn(steps, log_interval=1)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
