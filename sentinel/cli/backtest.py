"""`sentinel backtest`: compare what two configurations find in the same logs."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import answers, configuration
from sentinel.common.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.replays.backtest import Difference

_Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH...", help="Logs; default: `paths` of the new configuration."),
]
_New = Annotated[Path, typer.Option("--config", metavar="FILE", help="The new configuration.")]
_Old = Annotated[
    Path | None,
    typer.Option(
        "--old",
        metavar="FILE",
        help="The old configuration; default: sentinel.toml in the current directory, if it exists.",
    ),
]


def backtest(config: _New, paths: _Paths = None, old: _Old = None) -> None:
    """Show which incidents a new configuration would gain, lose or move, and what people said of them.

    Both configurations judge the same finished logs. Nothing is sent or recorded.
    """
    from sentinel.replays.backtest import differences
    from sentinel.replays.replaying import replay

    new_config = configuration(config, paths=paths or ())
    old_config = configuration(old).model_copy(update={"paths": new_config.paths})
    if not new_config.paths:
        raise SentinelError("nothing to compare: name a PATH, or set `paths` in the new configuration")
    changes = differences(
        *(replay(new_config.paths, config, lambda *_: None) for config in (old_config, new_config))
    )
    verdicts = answers(new_config, config)
    for difference in changes:
        if difference.kind != "same":
            typer.echo(_line(difference, verdicts))
    counts = Counter(difference.kind for difference in changes)
    typer.echo(", ".join(f"{counts[kind]} {kind}" for kind in ("gained", "lost", "moved", "same")))


def _line(difference: "Difference", verdicts: dict[str, str]) -> str:
    from sentinel.common.text import clean_text

    incident = difference.either[-1]
    severities = dict.fromkeys(f"{i.severity.label} at step {i.fired_step}" for i in difference.either)
    answers = dict.fromkeys(verdicts[i.id] for i in difference.either if i.id in verdicts)
    answer_text = f" ({', '.join(answers)})" if answers else ""
    where = f"{incident.detector} in {clean_text(incident.run)}"
    return f"{difference.kind}: {where}, {' to '.join(severities)}{answer_text}"
