"""What a run shows moves the causes of an incident, the same however the log is cut."""

import json
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel import catalogue
from sentinel.catalogue.rules import Clues
from sentinel.incidents.causes import possible_causes, share
from sentinel.incidents.json_body import incident_body
from sentinel.series.naming import profiles
from tests.incidents.timeline import by_position, changed, rows, stretches, tracker

FLAT = ("O2", "O7", "O3", "O1", "O4")
GRADIENT = {"gradient": 0.4, "grad_norm_first": 0.3, "fall": 0.001, "spread": 0.01, "most": 0.004}


def causes(cited=FLAT, findings=(), known=None, **evidence):
    others = {name: {"level": 1e-6} for name in findings}
    return possible_causes(cited, Clues(evidence, others, known or Told()), catalogue.load())


@pytest.mark.parametrize(
    ("evidence", "findings", "first"),
    [
        ({}, (), "O2"),
        ({"gradient": 0.0}, (), "O3"),
        ({}, ("zero-gradient",), "O3"),
        (GRADIENT, (), "O4"),
        ({**GRADIENT, "gradient": 29.0}, (), "O2"),
        ({**GRADIENT, "fall": 0.008}, (), "O7"),
        (GRADIENT, ("update-ratio-out-of-band",), "O7"),
    ],
)
def test_a_flat_loss_is_told_apart_by_what_the_run_shows(evidence, findings, first):
    assert causes(findings=findings, **evidence)[0].id == first


@pytest.mark.parametrize(("findings", "expected"), [((), {"GE"}), (("resume-loss-jump",), {"GE", "R4"})])
def test_a_resume_is_a_cause_only_where_the_run_shows_one(findings, expected):
    assert {cause.id for cause in causes(("O18", "GE", "R4"), findings)} == expected


@pytest.mark.parametrize(("kind", "first"), [("apart", "A-err-hang"), ("gone", "A-err-nccl")])
def test_where_the_ranks_stand_tells_hangs_apart(kind, first):
    possible = causes(("A-err-hang", "DP3", "A-err-nccl"), standstill_kind=kind, ranks=4)
    assert (possible[0].id, len(possible)) == (first, 3)


@pytest.mark.slow
def test_the_floor_of_a_second_softmax_is_known():
    assert causes(("A-sft-plateau", "O12", "O7"), known=TUNED, best=1.4613)[0].id == "O12"
    assert causes(("A-sft-plateau", "O12", "O7"), known=TUNED, best=1.44)[0].id == "A-sft-plateau"


@pytest.mark.parametrize(("explained", "first"), [(0.01, "N-critic-learns-nothing"), (0.8, "A-rewards-mean")])
def test_a_critic_that_explains_nothing_is_named_beside_a_reward_that_does_not_rise(explained, first):
    possible = causes(("A-rewards-mean", "R3", "N-critic-learns-nothing"), explained_variance=explained)
    assert possible[0].id == first


@dataclass
class Told:
    """A log of a framework, with signals and settings."""

    framework: str | None = None
    signals: tuple[str, ...] = ()
    settings: dict[str, float | str | bool] = field(default_factory=dict)

    def shows(self, word):
        return self.framework is not None and word in profiles()[self.framework].shows

    def logs(self, signal, position):  # noqa: ARG002
        return signal in self.signals

    def setting(self, name, position, step):  # noqa: ARG002
        return self.settings.get(name)


TUNED = Told("trl-sft", ("accuracy",))
DIVERGED = ("O19", "L6", "O9", "O4")
MISMATCH = ("V1", "DP10", "O18", "O5", "A-overfit")
ALIKE = ("A-frac-zero-std", "A-reward-std", "A-entropy-collapse")
CLIPPED = ("G10", "G7", "O7")
EXPLODED = ("GE", "G1", "A-rl-grad-norm")


@pytest.mark.parametrize(
    ("cited", "known_values", "findings", "first"),
    [
        (DIVERGED, Told(), (), "O4"),
        (DIVERGED, Told("nanogpt"), (), "L6"),
        (DIVERGED, Told("trl-sft"), (), "O19"),
        (DIVERGED, Told(settings={"accumulation_steps": 8.0}), (), "O9"),
        (DIVERGED, Told("hf-trainer", settings={"accumulation_steps": 8.0}), (), "O19"),
        (MISMATCH, Told(), (), "O5"),
        (MISMATCH, Told("timm"), (), "V1"),
        (MISMATCH, Told("trl-sft", settings={"vocab_size": 32000.0}), (), "O5"),
        (("V6", "O1", "O13", "O2"), Told(signals=("accuracy",)), (), "V6"),
        (("V6", "O1", "O13", "O2"), Told(), ("flat-loss-at-init",), "O1"),
        (ALIKE, Told(signals=("frac_reward_zero_std",)), (), "A-frac-zero-std"),
        (ALIKE, Told(signals=("reward_std",)), (), "A-reward-std"),
        (ALIKE, Told(signals=("frac_reward_zero_std",)), ("entropy-collapse",), "A-entropy-collapse"),
        (EXPLODED, Told(), (), "GE"),
        (EXPLODED, Told(signals=("reward",)), (), "A-rl-grad-norm"),
        (EXPLODED, Told(settings={"max_grad_norm": 0.0, "model_family": "llama"}), (), "G1"),
        (
            ("G10", "G7", "O7"),
            Told(settings={"max_grad_norm": 1.0, "model_family": "convolutional"}),
            (),
            "G7",
        ),
        (("DP12", "L8", "O1"), Told("trl-sft"), (), "L8"),
        (("A-overfit", "A-eval-loss", "DP14"), Told(), ("epoch-periodic-loss",), "DP14"),
    ],
)
def test_what_is_known_of_a_run_tells_causes_apart(cited, known_values, findings, first):
    clues = Clues({}, {name: {} for name in findings}, known_values)
    assert possible_causes(cited, clues, catalogue.load())[0].id == first


@pytest.mark.parametrize(
    ("cited", "known_values", "expected"),
    [
        (("DP3", "A-err-hang", "A-err-nccl", "A-err-exit9"), Told(), "A-err-exit9"),
        (("DP3", "A-err-exit9"), Told(settings={"world_size": 8.0}), "DP3 A-err-exit9"),
        (("DP3", "A-err-exit9"), Told(settings={"world_size": 1.0}), "A-err-exit9"),
        (("O21", "L2", "O15", "O7"), Told(signals=("accuracy",)), "O7"),
        (("O21", "L2", "O15", "O7"), Told(settings={"lora_rank": 8.0}), "O21 O7"),
        (("DP14", "G5", "GA-bypass", "O1"), Told("trl-sft", ("epoch", "loss_scale")), "O1"),
        (("DP14", "G5", "GA-bypass", "O1"), Told(None, ("epoch", "loss_scale")), "DP14 G5 GA-bypass O1"),
        (("R2", "A-clip-ratio", "R1"), Told("sb3", ("approx_kl", "reward")), "A-clip-ratio R1"),
        (("R2", "A-clip-ratio", "R1"), Told("trl-ppo"), "R2 A-clip-ratio R1"),
        (("A-rl-grad-norm", "G1", "GE"), Told(settings={"max_grad_norm": 1.0}), "GE"),
        (("X1", "X3", "O19"), Told("trl-sft"), "O19"),
        (("DP1", "A-overfit"), Told(signals=("eval_loss",)), "A-overfit"),
        (("O18", "V7", "O19", "GE", "R4"), Told(), "GE"),
    ],
)
def test_what_an_entry_supposes_must_show_in_the_run(cited, known_values, expected):
    possible = possible_causes(cited, Clues({}, {}, known_values), catalogue.load())
    assert sorted(c.id for c in possible) == sorted(expected.split())
    assert not any(c.unmet_needs for c in possible)


def test_where_nothing_else_is_left_a_cause_says_what_it_supposes():
    possible = causes(("O24", "X1"))
    assert [c.unmet_needs for c in possible] == [
        ("float16 with a loss scaler",),
        ("a vision language model",),
    ]


def test_a_printed_line_shows_what_its_entries_suppose():
    printed = causes(("A-err-nccl", "O7"), text="Watchdog caught collective operation timeout: WorkNCCL(")
    assert [(c.id, c.unmet_needs) for c in printed] == [("A-err-nccl", ()), ("O7", ())]


def test_without_clues_the_usual_order_stands():
    possible = causes(("O1", "O7", "O26"))
    assert [(c.id, c.reason) for c in possible] == [("O1", ""), ("O7", ""), ("O26", "")]


def test_reasons_for_and_against_are_said():
    possible = {c.id: c.reason for c in causes(ALIKE, known=Told(signals=("reward_std",)))}
    only_spread = "the log has only the spread of the reward, not the share of groups"
    assert possible["A-frac-zero-std"] == f"against it: {only_spread}"


def test_what_a_curve_contradicts_is_not_listed_unless_nothing_else_is_left():
    falls = {**GRADIENT, "fall": 0.008}
    assert "O2" not in {c.id for c in causes(**falls)}
    (left,) = causes(("O2",), **falls)
    assert "against it: the loss falls by more than its noise" in left.reason


def test_no_settings_outvote_a_curve():
    """Two settings speak for the usual cause, and one curve for the rarest."""
    settings = {"peak_learning_rate": 1e-4, "ppo_epochs": 8.0}
    possible = causes(
        ("R1", "R2", "A-kl", "R3", "N-critic-learns-nothing"),
        known=Told("trl-ppo", ("kl",), settings),
        explained_variance=0.01,
    )
    assert possible[0].id == "N-critic-learns-nothing"


def test_a_cause_without_a_clue_shows_no_score():
    first, other = causes(("R1", "R3"), known=Told("sb3"))
    assert share(first, (first, other)) == ""
    clear, *_ = causes(("A-rewards-mean", "N-critic-learns-nothing"), explained_variance=0.01)
    assert share(clear, (clear,)).endswith("%")


@pytest.mark.long  # many examples
@given(
    st.lists(st.sampled_from([*catalogue.load()]), unique=True, max_size=12),
    st.dictionaries(st.sampled_from([*GRADIENT, "level"]), st.none() | st.text() | st.floats()),
    st.sets(st.sampled_from(["zero-gradient", "update-ratio-out-of-band", "kl-blowup"])),
)
def test_scores_are_shares_whatever_the_evidence(cited, evidence, findings):
    possible = causes(cited, findings, **evidence)
    assert {c.id for c in possible} <= {*cited}
    assert bool(possible) == bool(cited)
    assert [c.score for c in possible] == sorted((c.score for c in possible), reverse=True)
    assert math.isclose(sum(c.score for c in possible), bool(cited), abs_tol=0.01)


def told(line, **fields):
    return changed(rows(line, "flat-loss-at-init", tag="loss"), catalogue=FLAT, known=Told(), **fields)


def test_an_incident_carries_its_causes_and_weighs_them_again_when_it_gets_worse():
    firing, escalated = tracker().advance(
        told("ww", evidence={})
        + changed(
            rows("..cc", "flat-loss-at-init", tag="loss")[2:],
            catalogue=FLAT,
            known=Told(),
            evidence={"gradient": 0.0},
        )
    )
    assert [c.incident.catalogue[0] for c in (firing, escalated)] == ["O2", "O3"]
    body = json.loads(json.dumps(incident_body(escalated.incident)))
    assert [cause["id"] for cause in body["causes"]] == body["catalogue"]
    assert body["causes"][0]["reason"] == "no gradient reaches the weights"


def test_another_finding_counts_once_it_is_open_and_only_in_its_stream():
    firsts = []
    for line, stream in (("www", "s"), ("www", "other"), ("....ww", "s")):
        changes = tracker().advance(rows(line, "zero-gradient", stream=stream) + told("..ww", evidence={}))
        (flat,) = [c.incident for c in changes if c.incident.detector == "flat-loss-at-init"]
        firsts.append(flat.catalogue[0])
    assert firsts == ["O3", "O2", "O2"]


@pytest.mark.long
@given(st.text(".wc", min_size=1, max_size=40), st.text(".wc", max_size=40), st.text(".wc", max_size=40))
def test_causes_are_the_same_however_the_log_was_cut(flat, gradient, ratio):
    verdicts = told(flat) + rows(gradient, "zero-gradient", tag="g") + rows(ratio, "loss-spike", tag="u")
    one_by_one = tracker()
    finely = [change for part in by_position(verdicts) for change in one_by_one.advance(part)]
    assert tracker().advance(stretches(verdicts)) == finely


def explaining(*lines):
    """The causes of the open incidents by detector; each finding cites the pages that a flat loss does."""
    ours = tracker()
    cut = [rows for line in lines for rows in changed(line, catalogue=FLAT, known=Told())]
    whole = ours.advance(cut)
    other = tracker()
    changes = []
    for part in by_position(cut):
        changes += other.advance(part)
        stored = json.loads(json.dumps(other.dump()))
        other = tracker()
        other.restore(stored)
    assert sorted(map(str, changes)) == sorted(map(str, whole)), "streams have no order"
    assert sorted(map(str, other.open())) == sorted(map(str, ours.open()))
    return {one.detector: [cause.id for cause in one.causes] for one in ours.open()}


def test_causes_are_weighed_again_when_something_else_is_found_later():
    alone = explaining(rows("ww....", "flat-loss-at-init"))
    assert alone["flat-loss-at-init"][0] == "O2"
    later = explaining(rows("ww....", "flat-loss-at-init"), rows("....ww", "zero-gradient"))
    assert later["flat-loss-at-init"][0] == "O3"
    waiting = explaining(rows("ww....", "flat-loss-at-init"), rows(".....w", "zero-gradient"))
    assert waiting == alone, "it has not held"
    elsewhere = explaining(rows("ww....", "flat-loss-at-init"), rows("....ww", "zero-gradient", stream="b"))
    assert elsewhere["flat-loss-at-init"][0] == "O2"
