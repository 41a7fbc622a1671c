"""PPO on CartPole with RLlib's new API stack, run by Tune with its JSON, CSV and TensorBoard loggers.

Ray 2.60.0, gymnasium 1.2.2, tensorboardX 2.6.5, torch 2.13.0 on a CPU.
"""

import platform
import socket
import sys
from pathlib import Path

import ray
import ray.util
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig


def hide_host() -> None:
    """In every process of Ray."""
    socket.gethostname = platform.node = lambda: "localhost"
    ray.util.get_node_ip_address = lambda: "127.0.0.1"


def main(directory: str, iterations: int = 4) -> None:
    hide_host()
    ray.init(num_cpus=1, include_dashboard=False, runtime_env={"worker_process_setup_hook": hide_host})
    algorithm = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
        .training(lr=1e-3, train_batch_size_per_learner=512, minibatch_size=128, num_epochs=4)
        .training(entropy_coeff=0.01)
        .evaluation(evaluation_interval=2, evaluation_duration=5)
        .debugging(seed=0)
    )
    tune.Tuner(
        "PPO",
        param_space=algorithm,
        run_config=tune.RunConfig(
            name="ppo",
            storage_path=str(Path(directory).resolve()),
            stop={"training_iteration": iterations},
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            verbose=0,
        ),
    ).fit()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
