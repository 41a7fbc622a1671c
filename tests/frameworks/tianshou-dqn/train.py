"""DQN on CartPole with tianshou's off-policy trainer, logged to TensorBoard.

tianshou 2.0.1, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils import TensorboardLogger
from tianshou.utils.net.common import Net
from torch.utils.tensorboard import SummaryWriter


def environments(count: int, seed: int) -> DummyVectorEnv:
    made = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(count)])
    made.seed(seed)
    return made


def main(directory: str, epochs: int = 6) -> None:
    socket.gethostname = lambda: "localhost"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    training = environments(4, 1)
    testing = environments(2, 2)
    algorithm = DQN(
        policy=DiscreteQLearningPolicy(
            model=Net(state_shape=4, action_shape=2, hidden_sizes=[64, 64]),
            action_space=training.action_space[0],
            eps_training=0.1,
        ),
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.97,
        n_step_return_horizon=3,
        target_update_freq=200,
    )
    collector = Collector(algorithm, training, VectorReplayBuffer(20000, 4), exploration_noise=True)
    collector.reset()
    collector.collect(n_step=400, random=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=Collector(algorithm, testing),
            test_step_num_episodes=4,
            max_epochs=epochs,
            epoch_num_steps=2000,
            collection_step_num_env_steps=20,
            update_step_num_gradient_steps_per_sample=0.2,
            logger=TensorboardLogger(
                SummaryWriter(f"{directory}/tb"), training_interval=200, update_interval=50
            ),
            show_progress=False,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
