"""APPO on CartPole with Sample Factory, in one process, logged to TensorBoard.

sample-factory 2.1.1, gymnasium 0.29.1, tensorboardX 2.6.5, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl


def cart_pole(_name, _settings, _worker, render_mode=None):
    return gym.make("CartPole-v1", render_mode=render_mode)


def main(directory: str, steps: int = 30_000) -> None:
    socket.gethostname = lambda: "localhost"
    register_env("cartpole", cart_pole)
    arguments = {
        "algo": "APPO",
        "env": "cartpole",
        "experiment": "appo",
        "train_dir": directory,
        "device": "cpu",
        "seed": 0,
        "serial_mode": True,
        "async_rl": False,
        "num_workers": 1,
        "num_envs_per_worker": 8,
        "worker_num_splits": 1,
        "rollout": 32,
        "batch_size": 256,
        "num_epochs": 4,
        "use_rnn": False,
        "learning_rate": 0.001,
        "stats_avg": 20,
        "encoder_mlp_layers": [64, 64],
        "experiment_summaries_interval": 1,
        "decorrelate_envs_on_one_worker": False,
        "save_every_sec": 3600,
        "train_for_env_steps": steps,
    }
    argv = []
    for name, value in arguments.items():
        argv += [f"--{name}", *map(str, value)] if isinstance(value, list) else [f"--{name}={value}"]
    parser, _ = parse_sf_args(argv)
    run_rl(parse_full_cfg(parser, argv))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
