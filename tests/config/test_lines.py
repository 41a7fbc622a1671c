import tomllib
from itertools import accumulate
from time import perf_counter

import pytest

from sentinel.common.errors import ConfigError
from sentinel.config.file import load
from sentinel.config.lines import Lines

FILE = '''\
paths = ["a", "b"]  # two
link = """
https://example.org/{run}
""" # [no heading]
[detectors.kl-blowup]
enabled = true
limits = [
  1,  # ]
  [2, "]"],
]
[[sinks]]
type = "slack"
"odd.key" = 'a # b'
inner.deep = {x = 1, y = ["[", {z = 2}]}

[sinks.more]
a = \'\'\'
x = 1 \'\'\'
[[sinks]]
type = "webhook"
[[sinks.routes]]
to = "a"
[[sinks.routes]]
to = """"b""\\""""
[signals]
"x" = "kl"
'''


def line_by_parsing_each_beginning(text, keys):
    for number, beginning in enumerate(accumulate(text.splitlines(keepends=True)), start=1):
        try:
            node = tomllib.loads(beginning)
            for key in keys:
                node = node[key]
        except (tomllib.TOMLDecodeError, KeyError, IndexError):
            continue
        return number
    return line_by_parsing_each_beginning(text, keys[:-1]) if keys else 1


def all_keys(node, above=()):
    yield above
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from all_keys(value, (*above, key))


def test_each_value_stands_on_the_line_on_which_it_is_complete():
    lines = Lines(FILE)
    keys = [*all_keys(tomllib.loads(FILE))]
    assert len(keys) > 30
    for each in [*keys, ("sinks", 1, "missing"), ("signals", "y", "z"), ("sinks", 7)]:
        assert lines.of(each) == line_by_parsing_each_beginning(FILE, each), each


@pytest.mark.slow
def test_many_mistakes_cost_little_more_than_none(tmp_path):
    signals = "".join(f'"tag/{number}" = "kl"\n' for number in range(1500))
    good = tmp_path / "good.toml"
    good.write_text(f"[signals]\n{signals}")
    bad = tmp_path / "bad.toml"
    bad.write_text(f"[signals]\n{signals}" + "".join(f'"odd/{number}" = "kll"\n' for number in range(3000)))
    load(good)
    begin = perf_counter()
    load(good)
    usual = perf_counter() - begin
    begin = perf_counter()
    with pytest.raises(ConfigError) as raised:
        load(bad)
    assert perf_counter() - begin < 30 * usual + 1.0
    first, *_, last = raised.value.problems
    assert first == f"{bad}:1502: signals.odd/0: 'kll' is unknown (did you mean 'kl'?)"
    assert last == f"{bad}: 2,950 more mistakes"


@pytest.mark.parametrize(
    "text",
    [
        "paths = " + "[" * 100_000,
        "poll_seconds = " + "9" * 10_000,
        'paths = ["\udcff"]',
        "[signals]\nx = '" + "k" * 1_000_000 + "'",
        "k" * 1_000_000 + " = 1",
        "gone_after = '" + "9" * 400 + "d'",
    ],
    ids=["deep", "long number", "no text", "long value", "long key", "long time"],
)
def test_an_odd_file_is_a_short_line(tmp_path, text):
    file = tmp_path / "sentinel.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert len(str(raised.value)) < 6000
