"""What reinforcement learning keeps beside its weights: statistics of observations, and the replay buffer.

A resume that restores the weights alone normalises observations by fresh statistics, or learns from an empty
buffer.

## Cost
A mean over the statistics of one observation, on the host.

## When it misleads
It needs `environment=` (with `obs_rms`, as VecNormalize and Gymnasium's wrappers have) and `replay=` (with
`size()` or a length). Statistics of a dictionary of observations are not read. No detector judges the mean,
which is as the environment makes it. Nor does one judge a count that stands still: an algorithm that makes
many updates of one rollout takes no observations meanwhile.

## Source
Probes `rl/obs_norm_mean` and `rl/replay_size` of the catalogue (R3, R4).
"""

from typing import Any

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet


class Environment(
    ProbeSet,
    shows={
        "rl/observation_norm_mean": "mean of the running observation statistics",
        "rl/observation_norm_count": "observations that these statistics are of",
        "rl/replay_size": "transitions in the replay buffer",
    },
    entries=("R3", "R4"),
    cost=Cost.DEFAULT,
    needs_torch=False,
):
    """Reads what the loop handed over at the start."""

    def measure(self, moment: Moment) -> Numbers:
        """Return up to three numbers."""
        numbers: dict[str, float] = {}
        statistics: Any = getattr(self.subject.environment, "obs_rms", None)
        if hasattr(statistics, "mean") and hasattr(statistics.mean, "mean"):
            numbers["rl/observation_norm_mean"] = float(statistics.mean.mean())
            numbers["rl/observation_norm_count"] = float(statistics.count)
        replay = self.subject.replay
        if replay is not None:  # those of Stable-Baselines3 have a size(), others a length
            numbers["rl/replay_size"] = float(replay.size() if hasattr(replay, "size") else len(replay))
        return numbers
