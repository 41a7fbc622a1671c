"""What settings say, under which names, and from which point on it counts."""

import tomllib

import numpy as np
import pytest

from sentinel.detectors.settings import CHOICES, Setting
from sentinel.detectors.signals import Signal
from sentinel.series import plan as settings_of_runs
from sentinel.series.plan import Plans, meant, planned
from tests.series.stored import again


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        ({"max_steps": 500, "warmup_steps": 50}, {"total_steps": 500, "warmup_steps": 50}),
        (
            {"trainer.max_steps": 500, "optim.sched.warmup_steps": "50"},
            {"total_steps": 500, "warmup_steps": 50},
        ),
        ({"scheduler.params.total_num_steps": 9e3}, {"total_steps": 9000}),
        ({"max_steps": -1, "warmup_steps": 0}, {}),
        ({"max_steps": "auto", "warmup_steps": None}, {}),
        ({"max_steps": True}, {}),
        ({"max_steps": float("inf"), "total_steps": float("nan")}, {}),
        ({"max_steps": 500, "total_steps": 600}, {}),
        ({"max_steps": 500, "total_steps": 500}, {"total_steps": 500}),
        ({"env.max_steps": 200, "max_steps_per_episode": 3}, {}),
        (
            {"behaviors.Ball.max_steps": 5e5, "behaviors.Ball.hyperparameters.num_epoch": 3},
            {"total_steps": 5e5},
        ),
        ({"behaviors.Ball.max_steps": 5e5, "behaviors.Goal.max_steps": 2e5}, {}),
        ({"max_steps": 10**400}, {}),
    ],
)
def test_only_what_plainly_is_the_plan_counts(settings, plan):
    assert planned(settings) == plan


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        (  # transformers
            {
                "learning_rate": 2e-5,
                "lr_scheduler_type": "cosine_with_restarts",
                "warmup_ratio": 0.03,
                "gradient_accumulation_steps": 8,
                "per_device_train_batch_size": 4,
                "logging_steps": 10,
                "max_grad_norm": 0,
                "optim": "paged_adamw_8bit",
                "fp16": False,
                "bf16": True,
                "label_smoothing_factor": 0.0,
                "num_train_epochs": 3.0,
                "dtype": "float32",
            },
            {
                "peak_learning_rate": 2e-5,
                "scheduler": "restarts",
                "warmup_ratio": 0.03,
                "accumulation_steps": 8,
                "batch_size": 4,
                "logging_steps": 10,
                "max_grad_norm": 0,
                "optimizer": "adamw",
                "precision": "bfloat16",
                "label_smoothing": 0,
                "epochs": 3,
            },
        ),
        (  # a share, in transformers from 5 on
            {"warmup_steps": 0.1},
            {"warmup_ratio": 0.1},
        ),
        (  # DeepSpeed
            {
                "optimizer.type": "AdamW",
                "optimizer.params.lr": 1e-4,
                "scheduler.type": "WarmupDecayLR",
                "fp16.enabled": True,
                "gradient_clipping": 1.0,
                "train_micro_batch_size_per_gpu": 2,
            },
            {
                "optimizer": "adamw",
                "peak_learning_rate": 1e-4,
                "scheduler": "linear",
                "precision": "float16",
                "max_grad_norm": 1,
                "batch_size": 2,
            },
        ),
        (  # Lightning
            {
                "trainer.precision": "16-mixed",
                "trainer.accumulate_grad_batches": 2,
                "gradient_clip_val": None,
            },
            {"precision": "float16", "accumulation_steps": 2},
        ),
        (  # Hydra
            {"scheduler._target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "model.num_classes": 10},
            {"scheduler": "cosine", "num_classes": 10},
        ),
        (  # Ultralytics
            {"cos_lr": True, "lr0": 0.01, "optimizer": "auto", "batch": 16},
            {"scheduler": "cosine", "peak_learning_rate": 0.01, "optimizer": "other", "batch_size": 16},
        ),
        (  # verl
            {"data.max_response_length": 512, "algorithm.kl_ctrl.kl_coef": 0.001},
            {"max_completion_length": 512, "beta": 0.001},
        ),
        (  # PEFT and TRL
            {
                "_name_or_path": "meta-llama/Llama-3.2-1B",
                "transformers_version": "4.38.2",
                "peft_config.default.r": 8,
                "peft_config.default.target_modules.0": "q_proj",
                "peft_config.default.modules_to_save": None,
                "optim": "adamw_torch_fused",
                "eval_strategy": "no",
                "dataloader_drop_last": False,
                "scale_rewards": "none",
                "torch_dtype": "torch.bfloat16",
                "rope_scaling.rope_type": "linear",
                "packing": "true",
                "deepspeed": "zero3.json",
            },
            {
                "model_family": "llama",
                "transformers_version": 4.038,
                "lora_rank": 8,
                "target_modules": True,
                "modules_to_save": False,
                "optimizer": "adamw",
                "optimizer_kernel": "fused",
                "evaluation": "never",
                "drop_last": False,
                "normalize_advantages": False,
                "model_dtype": "bfloat16",
                "rope_type": "linear",
                "packing": True,
                "deepspeed": True,
            },
        ),
        ({"transformers_version": "nightly", "model_type": "my own", "packing": None}, {"packing": False}),
        ({"MODEL.RETINANET.NUM_CLASSES": 80, "num_classes": 1, "betas.0": 0.9, "n_epochs": 10}, {}),
        ({"lr_scheduler_type": None, "optimizer": {}, "precision": True, "cos_lr": False, "sched": ""}, {}),
        ({"optimizer": "NAdam", "scheduler": "my own"}, {"optimizer": "other", "scheduler": "other"}),
    ],
)
def test_settings_are_known_under_the_names_of_frameworks(settings, plan):
    assert {name: meant(name, value) for name, value in planned(settings).items()} == plan


def test_every_setting_has_names_and_every_text_words_or_a_flag():
    rows = tomllib.loads(settings_of_runs._SETTINGS_FILE.read_text(encoding="utf-8"))
    assert rows.keys() - {"tables"} == set(Setting)
    for setting in Setting:
        texts = {*rows[setting].get("words", ()), *rows[setting].get("flags", {}).values()}
        assert texts | {"other"} >= set(CHOICES.get(setting, ())) >= texts


def column(plans, signal, steps):
    return plans.column(signal, np.arange(len(steps)), np.array(steps)).tolist()


def test_a_plan_holds_from_its_place_on():
    plans = Plans({"warmup_steps": 5.0})
    plans.add(2, {"max_steps": 100, "warmup_steps": 7})
    assert column(plans, Signal.WARMUP_STEPS, [0, 1, 2, 3]) == [5, 5, 7, 7]
    assert np.isnan(column(plans, Signal.TOTAL_STEPS, [0, 1, 2, 3])[:2]).all()
    assert column(plans, Signal.TOTAL_STEPS, [0, 1, 2, 3])[2:] == [100, 100]
    assert np.isnan(column(plans, Signal.LOSS, [0])).all()
    assert np.isnan(column(Plans(), Signal.TOTAL_STEPS, [0])).all()


def test_a_plan_that_was_passed_is_none():
    assert np.isnan(column(Plans({"total_steps": 10.0}), Signal.TOTAL_STEPS, [9, 10, 11])).tolist() == [
        False,
        False,
        True,
    ]


def test_later_settings_change_only_what_they_name():
    plans = Plans()
    plans.add(0, {"max_steps": 10, "warmup_steps": 2})
    plans.add(3, {"max_steps": 20, "seed": 1})
    plans.add(4, {"seed": 2})
    assert plans.now == {"total_steps": 20, "warmup_steps": 2}
    assert len(plans.later) == 2
    assert again(plans).now == plans.now
