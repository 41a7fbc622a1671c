"""Secrets in settings and printed lines are masked, and what only looks like one is not."""

import pytest

from sentinel.common.secrets import MASK, is_secret_name, masked_settings, masked_text

SECRET_NAMES = (
    "hf_token openai_api_key db.password hubToken dbPassword apiKey slack.webhook_url aws_secret_access_key "
    "WANDB_API_KEY env.HF_TOKEN cookies.session sentry_dsn credentials.user auth_token access_key token "
    "connection_string login.token.0"
)
OTHER_NAMES = (
    "tokenizer pad_token eos_token max_tokens num_tokens token_count tokens_per_batch token_dropout key_dim "
    "num_key_value_heads keys passes per_token loss_per_token secretary pass_rate bypass learning_rate"
)


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_name_says_that_its_value_is_a_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_a_name_of_a_usual_setting_says_no_such_thing(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("hf_abcDEF123456 x", "*** x"),
        ("sk-proj-abc123def456ghi", "***"),
        ("postgres://bob:pw12@host/db", "postgres://bob:***@host/db"),
        ("python t.py --hf_token abcdef --lr 3", "python t.py --hf_token *** --lr 3"),
        ("--password=pw lr=3", "--password=*** lr=3"),
        ("OPENAI_API_KEY=abcdefgh1 x", "OPENAI_API_KEY=*** x"),
        ("{'hf_token': 'abcdef12'}", "{'hf_token': '***'}"),
        ('{"db": {"password": "pw"}}', '{"db": {"password": "***"}}'),
        ("https://x/y?token=abc&z=1", "https://x/y?token=***&z=1"),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer ***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- z", "*** z"),
        ("exporting HF_TOKEN=abcdef12", "exporting HF_TOKEN=***"),
        ("error: password=pw", "error: password=***"),
        ("https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/services/***"),
    ],
)
def test_a_text_keeps_all_but_its_secrets(text, masked):
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "loss per token: 2.31",
        "unexpected token: foobar12",
        "sk-learn-model-thing",
        "hf_transformers",
        "git 0123456789abcdef0123456789abcdef01234567",
        "ValueError: api_key must be set",
        "use --token to log in",
        "eval/acc: 0.75 train/loss=1.2",
        "s3://bucket/data@v2/train",
        "",
    ],
)
def test_a_text_without_a_secret_stays(text):
    assert masked_text(text) == text


def test_settings_are_masked_by_name_by_form_and_behind_a_flag():
    settings = {
        "args.0": "--password",
        "args.1": "hunter2",
        "args.2": "--lr",
        "args.3": "3e-4",
        "db.password": 12345,
        "token": "abc",
        "note": "see hf_abcDEF123456",
        "use_auth_token": True,
        "hub_token": "<HUB_TOKEN>",
        "api_key": "${API_KEY}",
        "eos_token": "</s>",
        "max_tokens": 2048,
        "tokenizer": "gpt2",
    }
    masked = settings | {"args.1": MASK, "db.password": MASK, "token": MASK, "note": f"see {MASK}"}
    assert masked_settings(settings) == masked
