"""What tags mean: tables of names as frameworks log them (names/<profile>.toml), and
how unknown ones are read (words.toml).
"""

import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.detectors.signals import Signal
from sentinel.series.naming import Meaning, Naming, Profile, _recognise, fallback, profiles, recognise
from tests.each import each

HERE = Path(__file__).parent
WORDS = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
TABLES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((HERE / "names").glob("*.toml"))
}
STEPS = [
    (name, table[step])
    for name, table in TABLES.items()
    for step in ("first_step", "second_step")
    if step in table
]
REWRITTEN = [name for name, table in TABLES.items() if table.get("rewritten")]


def rewritten(tag: str) -> str:
    """As transformers renames what it sends to TensorBoard and W&B."""
    return f"eval/{tag.removeprefix('eval_')}" if tag.startswith("eval_") else f"train/{tag}"


def expected(text: str) -> Meaning | None:
    signal, _, factor = text.partition(" * ")
    either = factor == "±1"
    return Meaning(Signal(signal), 1 if either else float(factor or 1), either) if signal else None


def test_every_profile_has_a_table_and_every_table_a_profile():
    assert set(TABLES) == set(profiles())


@pytest.mark.slow
@each(TABLES)
def test_tags_mean_what_the_framework_means(name: str):
    meanings = {tag: Naming({}).meaning(profiles()[name], tag) for tag in TABLES[name]["tags"]}
    assert meanings == {tag: expected(text) for tag, text in TABLES[name]["tags"].items()}


@each(REWRITTEN)
def test_tags_mean_the_same_when_rewritten(name: str):
    meanings = {tag: Naming({}).meaning(profiles()[name], rewritten(tag)) for tag in TABLES[name]["tags"]}
    assert meanings == {tag: expected(text) for tag, text in TABLES[name]["tags"].items()}


@pytest.mark.slow
@each(STEPS)
def test_one_step_is_enough_to_recognise_a_framework(step: tuple[str, list[str]]):
    name, tags = step
    meanings = recognise(tags, "tensorboard")
    assert meanings is not None
    assert meanings.name == name


@each(REWRITTEN)
def test_a_rewritten_step_is_recognised_too(name: str):
    meanings = recognise([rewritten(tag) for tag in TABLES[name]["first_step"]], "tensorboard")
    assert meanings is not None
    assert meanings.name == name


@pytest.mark.slow
@given(st.sampled_from(STEPS), st.lists(st.text("abcdef/_ ").map("mine/".__add__), max_size=20))
def test_tags_of_the_users_own_do_not_change_what_is_recognised(step, user_tags):
    name, tags = step
    meanings = recognise([*user_tags, *tags], "tensorboard")
    assert meanings is not None
    assert meanings.name == name


def test_profiles_are_described():
    for profile in profiles().values():
        assert profile.title
        assert profile.source
        assert profile.marks or profile.formats


def test_a_log_has_the_rows_of_its_own_framework_parsed_alone():
    profiles.cache_clear()
    _recognise.cache_clear()
    recognised = recognise(["completions/mean_length", "reward"], "tensorboard")
    assert recognised is profiles()["trl-grpo"]
    parsed = {name for name, each in profiles().items() if "names" in vars(each)}
    assert "trl-grpo" in parsed
    assert len(parsed) < 12


@pytest.mark.slow
def test_importing_does_not_load_profiles():
    script = "from sentinel.series.naming import profiles; assert profiles.cache_info().currsize == 0"
    subprocess.run([sys.executable, "-c", script], check=True)


def profile(name: str) -> Profile:
    return profiles()[name]


def test_a_format_that_one_framework_writes_identifies_it():
    assert recognise(["loss", "lr"], "trainer_state") == profile("hf-trainer")
    assert recognise(["reward", "reward_std", "loss"], "trainer_state") == profile("trl-grpo")
    assert recognise(["loss", "lr"], "jsonl") is None


def test_keras_is_known_by_its_batches_and_a_loss_of_batches_alone_may_be_anyones():
    assert recognise(["batch_loss", "batch_accuracy"], "tensorboard") == profile("keras")
    assert recognise(["batch_loss", "loss", "learning_rate"], "console") is None


def test_the_mean_over_the_whole_run_is_no_training_loss():
    assert profile("hf-trainer").meaning("train/train_loss") is None
    assert profile("lightning").meaning("train_loss") == Meaning(Signal.LOSS)


def test_losses_of_reinforcement_learning_are_not_taken_for_objectives_that_fall():
    for name in ("trl-grpo", "trl-ppo", "sb3", "verl", "cleanrl", "rllib", "ml-agents", "custom-rl", "slime"):
        tags = TABLES[name]["tags"]
        assert not [tag for tag in tags if Naming({}).meaning(profile(name), tag) == Meaning(Signal.LOSS)]


POLICIES = [
    *(
        "sb3",
        "sb3-dqn",
        "cleanrl",
        "rllib",
        "rl-games",
        "rsl-rl",
        "skrl",
        "skrl-on-policy",
        "tianshou",
        "torchrl",
    ),
    *("sample-factory", "pufferlib", "spinning-up", "ml-agents", "baselines", "monitor", "custom-rl"),
    *(
        "trl-grpo",
        "trl-async-grpo",
        "trl-ppo",
        "trl-ppo-step",
        "trlx",
        "roll",
        "tinker",
        "open-instruct",
        "skyrl",
        "habitat-baselines",
        "trl-online-dpo",
        "verl",
        "openrlhf",
        "areal",
        "slime",
        "nemo-rl",
    ),
    *("prime-rl", "torchtune-ppo", "llama-factory-ppo", "nanochat-rl", "hf-trainer-rl", "unsloth"),
]


@each(POLICIES)
def test_a_loss_of_ones_own_beside_a_policy_is_no_objective_that_falls(name: str):
    for tag in ("my/loss", "avg_loss", "train/mean_loss", "Loss"):
        meaning = Naming({}).meaning(profile(name), tag)
        assert meaning is None or meaning.signal != Signal.LOSS, tag


def test_entropy_has_the_sign_of_an_entropy():
    signs = {
        ("sb3", "train/entropy_loss"): -1,
        ("skrl-on-policy", "Loss / Entropy loss"): -1,
        ("verl", "actor/entropy_loss"): 1,
        ("openrlhf", "train/entropy_loss"): 1,
        ("slime", "train/entropy_loss"): 1,
        ("tianshou", "update/ent_loss/mean"): 1,
        ("cleanrl", "losses/entropy"): 1,
        ("rsl-rl", "Loss/entropy"): 1,
    }
    for (name, tag), sign in signs.items():
        meaning = profile(name).meaning(tag)
        assert meaning is not None
        assert meaning.factor == sign


@each(WORDS["read"])
def test_the_words_of_an_unknown_tag_are_read(tag: str):
    assert fallback(tag) == expected(WORDS["read"][tag])


@each(WORDS["unread"])
def test_what_is_not_sure_stays_unmapped(tag: str):
    assert fallback(tag) is None


@pytest.mark.slow
@given(st.text())
def test_any_text_can_be_a_tag_and_means_one_thing_or_nothing(tag: str):
    meaning = fallback(tag)
    assert meaning is None or meaning.signal in Signal
    framework = recognise([tag], tag)
    assert framework is None or framework in profiles().values()


@each([None, *TABLES])
def test_what_stands_for_a_histogram_means_what_its_ending_says(name):
    meaning = partial(Naming({"losses/*": "loss"}).meaning, profile(name) if name else None)
    for tag in ("loss", "train/loss", "eval/loss", "losses/each", "fc/weight", "w", ""):
        assert meaning(f"{tag}#mean") is None
        assert meaning(f"{tag}#std") == Meaning(Signal.HISTOGRAM_STD)
        assert meaning(f"{tag}#zero_share") == Meaning(Signal.HISTOGRAM_ZERO_SHARE)
        assert meaning(f"{tag}#kurtosis") == Meaning(Signal.HISTOGRAM_KURTOSIS)


@pytest.mark.parametrize("tag", ["rewards/a", "Environment/Cumulative Reward_hist", "rollout/episode_length"])
def test_the_shape_of_rewards_says_nothing_of_a_network(tag):
    assert Naming({}).meaning(None, f"{tag}#std") is None


def test_the_user_may_say_what_a_histogram_means():
    assert Naming({"kl#mean": "kl"}).meaning(None, "kl#mean") == Meaning(Signal.KL)


def test_the_user_has_the_last_word():
    naming = Naming({"my/odd/kl": "kl", "train/loss": "ignore", "rewards/*": "reward", "grad_norm": "ignore"})
    assert naming.meaning(None, "my/odd/kl") == Meaning(Signal.KL)
    assert naming.meaning(profile("hf-trainer"), "train/loss") is None
    assert naming.meaning(profile("trl-grpo"), "rewards/format") == Meaning(Signal.REWARD)
    assert naming.meaning(None, "grad_norm") is None
    assert naming.meaning(profile("hf-trainer"), "learning_rate") == Meaning(Signal.LEARNING_RATE)


def test_a_tag_its_profile_does_not_name_is_read_by_words():
    assert Naming({}).meaning(profile("hf-trainer"), "train/lr") == Meaning(Signal.LEARNING_RATE)
    assert Naming({}).meaning(profile("hf-trainer"), "train/mystery") is None


@pytest.mark.parametrize("tag", ["Learn_rate/train", "learnrate", "learningrate", "LRate", "l_rate"])
def test_a_learning_rate_is_known_by_its_short_forms(tag: str):
    assert Naming({}).meaning(None, tag) == Meaning(Signal.LEARNING_RATE)


@pytest.mark.parametrize(("name", "hint"), [("lss", "did you mean 'loss'"), ("zzz", "'ignore'")])
def test_an_override_to_no_signal_names_the_nearest_one(name: str, hint: str):
    with pytest.raises(ValueError, match=hint) as error:
        Naming({"my/tag": name})
    assert "my/tag" in str(error.value)


def test_a_wildcard_stays_within_its_segment_and_yields_to_an_exact_tag():
    grpo = profile("trl-grpo")
    assert grpo.meaning("rewards/accuracy/mean") == Meaning(Signal.TASK_REWARD)
    assert grpo.meaning("rewards/format/mean") == Meaning(Signal.REWARD_FUNCTION)
    assert grpo.meaning("rewards / format / mean") == Meaning(Signal.REWARD_FUNCTION)
    assert grpo.meaning("rewards/accuracy/std") is None
    assert grpo.meaning("rewards/a/b/mean") is None
    assert profile("verl").meaning("critic/score/mean") == Meaning(Signal.REWARD)
    assert profile("verl").meaning("critic/rewards/mean") is None
