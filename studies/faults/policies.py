"""Policies: language models by TRL's GRPO, and a control task by Stable-Baselines3's PPO."""

import random

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

from sample_logs.make.language import ADJECTIVES
from sample_logs.make.reinforcement import grpo
from studies.faults.fault import fault
from studies.faults.loggers import Log, own


def variety(completions: list[str], **_) -> list[float]:
    """The share of words that occur once, with some noise, so that completions always differ."""
    return [len(set(text.split())) / (1 + len(text.split())) + random.gauss(0, 0.05) for text in completions]


def cheerful(completions: list[str], **_) -> list[float]:
    """The number of cheerful words, which a policy can learn to say."""
    return [float(sum(word in ADJECTIVES[:3] for word in text.split())) for text in completions]


SHORT = {
    "max_steps": 60,
    "logging_steps": 1,
    "per_device_train_batch_size": 16,
    "num_generations": 4,
    "beta": 0.04,
}


@fault(
    "A-reward-std",
    "A-frac-zero-std",
    "A-reward-never",
    title="the reward is constant for all, nine tenths or half of the prompts",
    strengths=(1.0, 0.9, 0.5),
    logger=own,
)
def constant_reward(strength: float, log: Log) -> None:
    """``strength`` is the share of the groups of completions whose rewards are all 0."""

    def reward(completions: list[str], prompts: list[str], **_) -> list[float]:
        lost = {prompt: random.random() < strength for prompt in dict.fromkeys(prompts)}
        rewards = zip(prompts, variety(completions), strict=True)
        return [0.0 if lost[prompt] else value for prompt, value in rewards]

    grpo(log.directory, reward, learning_rate=1e-5, **SHORT)


@fault(
    "A-clipped-ratio",
    "A-mean-length",
    title="the cap on completions cuts off most, many or some",
    strengths=(5.0, 6.0, 14.0),
    logger=own,
)
def clipped_completions(strength: float, log: Log) -> None:
    """``strength`` is the longest completion that is allowed, in tokens."""
    grpo(log.directory, variety, learning_rate=1e-5, max_completion_length=int(strength) or 32, **SHORT)


@fault(
    "R2",
    "A-kl",
    "R1",
    title="the policy's learning rate is 1000, 300 or 100 times too high",
    strengths=(1000.0, 300.0, 100.0),
    logger=own,
)
def huge_rate(strength: float, log: Log) -> None:
    """``strength`` is how many times the rate is too high."""
    grpo(log.directory, cheerful, learning_rate=1e-5 * (strength or 1), **SHORT)


@fault(
    "A-entropy-collapse",
    "A-entropy",
    title="PPO's learning rate is 100, 30 or 10 times too high",
    strengths=(100.0, 30.0, 10.0),
    logger=own,
)
def ppo_entropy_collapse(strength: float, log: Log) -> None:
    """``strength`` is how many times the rate is too high."""
    environments = make_vec_env("CartPole-v1", n_envs=4, seed=random.randrange(1000))
    model = PPO("MlpPolicy", environments, 3e-4 * (strength or 1), n_steps=128, device="cpu")
    model.set_logger(configure(str(log.directory), ["tensorboard"]))
    model.learn(25_000)
