"""The outcomes as data, and as what people read: measurements/faults.md and a part of README.md."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from studies import MEASUREMENTS
from studies.faults.fault import STRENGTHS
from studies.faults.judge import Alert, Outcome, median_delay
from studies.faults.truth import Run

HERE = Path(__file__).parent
DATA = HERE / "faults.json"
PAGE = MEASUREMENTS / "faults.md"
REQUIREMENTS = HERE.parents[1] / "requirements" / "peers.txt"

HEAD = """# Faults in real trainings

`make faults` writes this page. It trains {runs} times on a CPU, in about a quarter of an hour: each fault at
three strengths with real libraries and real loggers, and each time the same training with the same seed and
without the fault, the *twin*. Then it replays the logs. `python -m studies.faults NAME...` trains only
some of them again. `studies/faults/` holds the trainings.

- **Strength**: plain, mild or faint. The title of a fault says what these are. A faint one is a fault that a
  person would hardly see.
- **Visible**: the first step whose log differs from that of the twin by more than its noise.
- **Alerted**: the step of the first incident of severity warning or critical of a stable detector, which is
  what a sink hears of by default, and its detector. In brackets stand incidents that only a report shows.
- **Delay**: the time from visible to alerted, as a share of what was left of the run.
- **Causes**: those of the first alert that names the fault, else of the first alert, the likeliest first.
  Entries of the catalogue that describe the fault are bold.
- **Twin**: what rang on the twin, where nothing should.

These faults were used while the detectors were written, so they show what is found and not how much of what
is unknown will be: thresholds were not fitted to single runs, but choices were made with these in view.

"""

LIMITS = """## What metrics cannot show

A log of metrics shows what a fault does to numbers, and not the fault. So no threshold will find these:

- **A fault that the training absorbs.** A first layer that never trains costs little, and so does the wrong
  loss of a tenth of the samples: the log looks like that of a slower healthy run. Without Adam's moments, a
  resumed loss is higher by about its noise, for some dozen steps.
- **A fault that changes only what the numbers mean.** Evaluation in training mode is a steady, slightly worse
  evaluation. With dropout, a healthy evaluation lies below the training loss, and this one about at it. But
  held-out data are usually harder than training data, so that most healthy evaluations lie there, too.
- **A plan that is not in the log.** A schedule that takes its steps too rarely looks like that of a longer
  run. If the log or the settings name the planned steps, `lr-schedule-mismatch` warns. Without them, it warns
  of a rate that rose in rungs up to the end of the run, and one that rose smoothly shows in a report alone.
- **Faults with one symptom.** The loss is flat from the first step while gradients flow, whether the step is
  missing, the weights are not in the optimizer or the rate is far too small. The causes of an alert name all
  of them, and each has a check that tells it from the others.

`sentinel explain ID` says what a trainer can log to make a fault visible, and [coverage.md](coverage.md)
lists it for all entries. [figures.md](figures.md) measures each detector on simulated runs, with far more
healthy points than can be trained here.
"""


def read() -> list[Outcome]:
    """The outcomes of the last trainings; empty if there were none."""
    return [
        Outcome(Run(**one.pop("run")), alerts=[Alert(**alert) for alert in one.pop("alerts")], **one)
        for one in json.loads(DATA.read_text())
    ]


def write(outcomes: Sequence[Outcome]) -> None:
    """Keep the outcomes and write the page."""
    DATA.write_text("[\n" + ",\n".join(json.dumps(asdict(one)) for one in outcomes) + "\n]\n")
    PAGE.write_text(rendered(read()))


def rendered(outcomes: Sequence[Outcome]) -> str:
    """The page."""
    parts = [
        HEAD.format(runs=len(outcomes)) + "## Summary\n\n" + summary(outcomes),
        "## Every fault\n\n" + _faults(outcomes),
        "## By detector\n\n" + _detectors(outcomes),
        "## Other tools\n\n" + _peers(outcomes),
        LIMITS,
    ]
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """A row for each strength: how much was found, named and how soon, and what rang on healthy twins."""
    rows = []
    for strength, faulty, twins in _by_strength(outcomes):
        rows.append(
            [
                strength,
                f"{_count(faulty, lambda one: bool(one.alerts))} of {len(faulty)}",
                _count(faulty, lambda one: one.right is not None),
                _count(faulty, lambda one: one.first),
                _share(median_delay(faulty)),
                f"{_count(twins, lambda one: bool(one.alerts))} of {len(twins)}",
            ]
        )
    head = [
        "Strength",
        "Alerted",
        "Fault among the causes",
        "Fault likeliest",
        "Median delay",
        "Twins that rang",
    ]
    return table(head, rows)


def _faults(outcomes: Sequence[Outcome]) -> str:
    twins = {one.run.path.removesuffix("-twin"): one for one in outcomes if one.run.healthy}
    text = ""
    for _, group in groupby(outcomes, key=lambda one: one.run.fault):
        faulty = [one for one in group if not one.run.healthy]
        first = faulty[0].run
        rows = [_row(one, twins[one.run.path]) for one in faulty]
        head = ["Strength", "Visible", "Alerted", "Delay", "Causes", "Twin"]
        text += f"**{first.fault}** ({', '.join(first.catalogue)}): {first.title}.\n\n{table(head, rows)}\n"
    return text


def _row(faulty: Outcome, twin: Outcome) -> list[object]:
    alert = faulty.right or next(iter(faulty.alerts), None)
    causes = [f"**{one}**" if one in faulty.run.catalogue else one for one in alert.causes] if alert else []
    alerted = f"{faulty.alerts[0].step} `{faulty.alerts[0].detector}`" if faulty.alerts else "no"
    shown = f" ({', '.join(f'`{name}`' for name in faulty.shown)})" if faulty.shown else ""
    rang = ", ".join(f"{one.step} `{one.detector}`" for one in twin.alerts) or "quiet"
    return [
        faulty.run.strength,
        faulty.run.visible,
        alerted + shown,
        _share(faulty.delay),
        ", ".join(causes),
        rang,
    ]


def _detectors(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for name in sorted({alert.detector for one in outcomes for alert in one.alerts}):
        heard = [one for one in outcomes if any(alert.detector == name for alert in one.alerts)]
        faulty = [one for one in heard if not one.run.healthy]
        alone = [_only(one, name) for one in faulty]
        rows.append(
            [
                f"`{name}`",
                len(faulty),
                _count(alone, lambda one: one.right is not None),
                _count(alone, lambda one: one.first),
                _share(median_delay(alone)),
                len(heard) - len(faulty),
            ]
        )
    head = ["Detector", "Faulty runs", "Fault among the causes", "Fault likeliest", "Median delay", "Twins"]
    return "In how many runs each detector alerted.\n\n" + table(head, rows)


def _only(one: Outcome, detector: str) -> Outcome:
    alerts = [alert for alert in one.alerts if alert.detector == detector]
    return Outcome(one.run, one.last_step, alerts, one.shown, one.peers)


UNLIKE = {"constant-reward", "clipped-completions", "huge-rate", "ppo-entropy-collapse", "flat-margins"}
"""Faults of trainings by reward or preference, for which no peer is made."""


PEERS = """Tools from the Python package index that judge logs of metrics, each with its defaults. They get
the same runs as CSV files, under metric names that all of them know, but without the settings, console lines
and times that sentinel reads. Nobody adapted them to these runs, while sentinel's detectors were written with
these runs in view. So the tables tell what they find here and not how good they are. A tool rings if it finds
anything of severity warning or worse, right or wrong.

All four judge loss, learning rate, gradient norm and evaluation loss, as supervised training logs them, so
trainings of that kind are counted by themselves:

{supervised}
Policies and preferences, whose faults show in metrics that these tools do not judge:

{others}"""


def peers(outcomes: Sequence[Outcome]) -> str:
    """How many runs each tool rings on, by the kind of training."""
    kinds = ([one for one in outcomes if (one.run.fault in UNLIKE) is unlike] for unlike in (False, True))
    supervised, others = map(_counts, kinds)
    return PEERS.format(supervised=supervised, others=others)


def _counts(outcomes: Sequence[Outcome]) -> str:
    """A row for each tool: in how many runs it found something of severity warning or worse."""
    ours = {"sentinel": lambda one: bool(one.alerts)}
    theirs = {
        f"{peer} {version}": lambda one, peer=peer: bool(one.peers[peer])
        for peer, version in _versions(outcomes).items()
    }
    rows = []
    for name, found in {**ours, **theirs}.items():
        counts = [f"{_count(faulty, found)} of {len(faulty)}" for _, faulty, _ in _by_strength(outcomes)]
        twins = [one for one in outcomes if one.run.healthy]
        rows.append([name, *counts, f"{_count(twins, found)} of {len(twins)}"])
    return table(
        ["Tool", *(f"Rings on {strength}" for strength in STRENGTHS), "Rings on healthy twins"], rows
    )


def _peers(outcomes: Sequence[Outcome]) -> str:
    plain = [one for one in outcomes if not one.run.healthy and one.run.strength == STRENGTHS[0]]
    rows = [
        [
            one.run.fault,
            ", ".join(dict.fromkeys(alert.detector for alert in one.alerts)) or "-",
            *(", ".join(_said(one.peers[peer])) for peer in one.peers),
        ]
        for one in plain
    ]
    said = "What they say of the plain faults, and sentinel's detectors beside it:"
    return f"{peers(outcomes)}\n{said}\n\n" + table(["Fault", "sentinel", *outcomes[0].peers], rows)


def _said(findings: Sequence[str] | None) -> Sequence[str]:
    return ["(raises)"] if findings is None else findings or ["-"]


def _versions(outcomes: Sequence[Outcome]) -> Mapping[str, str]:
    """The peers that were asked, and their versions."""
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    return {name: pinned[name] for name in outcomes[0].peers}


def _by_strength(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, list[Outcome], list[Outcome]]]:
    for strength in STRENGTHS:
        of_it = [one for one in outcomes if one.run.strength == strength]
        yield (
            strength,
            [one for one in of_it if not one.run.healthy],
            [one for one in of_it if one.run.healthy],
        )


def _count(outcomes: Sequence[Outcome], condition: Callable[[Outcome], bool]) -> int:
    return sum(map(condition, outcomes))


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
