"""PPO on CartPole with rl_games' runner, logged to TensorBoard.

rl-games 1.6.5, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import numpy as np
import torch
from rl_games.common import env_configurations, vecenv
from rl_games.torch_runner import Runner


class CartPoles(vecenv.IVecEnv):
    """Sixteen environments in one process."""

    def __init__(self, _name, count, **_settings):
        self.environments = gym.make_vec("CartPole-v1", num_envs=count, vectorization_mode="sync")

    def step(self, actions):
        seen, rewards, terminated, truncated, _ = self.environments.step(actions)
        return seen.astype(np.float32), rewards, terminated | truncated, {"time_outs": truncated}

    def reset(self):
        return self.environments.reset(seed=0)[0].astype(np.float32)

    def get_number_of_agents(self):
        return 1

    def get_env_info(self):
        space = self.environments.single_observation_space
        return {"observation_space": space, "action_space": self.environments.single_action_space}


def main(directory: str, epochs: int = 30) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    vecenv.register("CARTPOLES", CartPoles)
    env_configurations.register("cartpoles", {"vecenv_type": "CARTPOLES", "env_creator": lambda **_: None})
    layers = {"units": [32], "activation": "elu", "initializer": {"name": "default"}}
    settings = {
        "name": "cartpole",
        "full_experiment_name": "ppo",
        "train_dir": directory,
        "env_name": "cartpoles",
        "device": "cpu",
        "num_actors": 16,
        "horizon_length": 32,
        "minibatch_size": 128,
        "mini_epochs": 4,
        "max_epochs": epochs,
        "learning_rate": 1e-3,
        "lr_schedule": "adaptive",
        "kl_threshold": 0.01,
        "gamma": 0.99,
        "tau": 0.95,
        "e_clip": 0.2,
        "clip_value": True,
        "critic_coef": 1,
        "entropy_coef": 0.01,
        "grad_norm": 1.0,
        "truncate_grads": True,
        "normalize_advantage": True,
        "normalize_input": True,
        "normalize_value": True,
        "reward_shaper": {"scale_value": 0.1},
        "score_to_win": 10_000,
        "save_best_after": 10_000,
        "use_diagnostics": True,
        "torch_compile": False,
    }
    network = {"name": "actor_critic", "separate": False, "space": {"discrete": None}, "mlp": layers}
    parts = {"algo": {"name": "a2c_discrete"}, "model": {"name": "discrete_a2c"}, "network": network}
    runner = Runner()
    runner.load({"params": {"seed": 1, "torch_threads": 1, **parts, "config": settings}})
    runner.run({"train": True, "play": False})


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
