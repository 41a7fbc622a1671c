"""PPO that learns to hold points at the origin, with ML-Agents' trainer; Python moves them instead of Unity.

mlagents 1.1.0, torch 2.14.1 on a CPU, Python 3.10, setuptools 79.
"""

import socket
import sys

import numpy as np
import torch
from mlagents.trainers import learn
from mlagents.trainers.model_saver.torch_model_saver import ModelSerializer
from mlagents.trainers.simple_env_manager import SimpleEnvManager
from mlagents_envs import base_env
from mlagents_envs.side_channel.environment_parameters_channel import EnvironmentParametersChannel

POINTS = 16
LONGEST = 40
VECTOR = base_env.ObservationSpec(
    (2,), (base_env.DimensionProperty.NONE,), base_env.ObservationType.DEFAULT, "state"
)
SPEC = base_env.BehaviorSpec([VECTOR], base_env.ActionSpec.create_continuous(1))


class Points(base_env.BaseEnv):
    behavior_specs = {"Points": SPEC}  # noqa: RUF012

    def __init__(self):
        self.random = np.random.default_rng(0)
        self.reset()

    def reset(self):
        self.state = self.random.uniform(-1, 1, (POINTS, 2)).astype(np.float32)
        self.age = np.zeros(POINTS, int)
        self.force = np.zeros(POINTS)
        self.ended = base_env.TerminalSteps.empty(SPEC)

    def set_actions(self, _name, action):
        self.force = action.continuous[:, 0]

    def set_action_for_agent(self, behavior_name, agent_id, action):
        raise NotImplementedError

    def step(self):
        self.state[:, 1] = 0.9 * self.state[:, 1] + 0.2 * np.clip(self.force, -1, 1)
        self.state[:, 0] += 0.2 * self.state[:, 1]
        self.age += 1
        old = np.flatnonzero(self.age >= LONGEST)
        group = np.zeros(len(old))
        self.ended = base_env.TerminalSteps(
            [self.state[old].copy()], self.rewards()[old], np.ones(len(old), bool), old, group, group
        )
        self.state[old] = self.random.uniform(-1, 1, (len(old), 2))
        self.age[old] = 0

    def rewards(self):
        return -(self.state[:, 0] ** 2)

    def get_steps(self, _name):
        agents = np.arange(POINTS)
        group = np.zeros(POINTS)
        rewards = np.where(self.age > 0, self.rewards(), 0).astype(np.float32)
        return base_env.DecisionSteps([self.state.copy()], rewards, agents, None, group, group), self.ended

    def close(self):
        pass


def main(directory: str, steps: int = 24_000) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    learn.create_environment_factory = lambda *_: Points
    learn.SubprocessEnvManager = lambda make, *_: SimpleEnvManager(make(), EnvironmentParametersChannel())
    ModelSerializer.export_policy_model = lambda *_: None
    trainer = {
        "trainer_type": "ppo",
        "max_steps": steps,
        "summary_freq": 1000,
        "time_horizon": LONGEST,
        "hyperparameters": {"batch_size": 64, "buffer_size": 640, "learning_rate": 3e-3},
        "network_settings": {"hidden_units": 32, "num_layers": 1},
    }
    learn.register_trainer_plugins()
    options = learn.RunOptions.from_dict(
        {
            "behaviors": {"Points": trainer},
            "checkpoint_settings": {"run_id": "points", "results_dir": directory},
        }
    )
    learn.run_training(0, options, num_areas=1)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
