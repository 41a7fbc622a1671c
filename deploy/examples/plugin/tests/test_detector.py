from pathlib import Path

from sentinel_example.reward_out_of_bounds import reward_out_of_bounds

from sentinel.testing import DetectorConformance


class TestRewardOutOfBounds(DetectorConformance):
    detector = reward_out_of_bounds
    golden = Path(__file__).with_name("reward_out_of_bounds.md")
