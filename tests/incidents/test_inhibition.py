"""One message a cause."""

import pytest
from msgspec.structs import replace

from sentinel.detectors.api import Cause
from sentinel.detectors.discovery import all_detectors
from sentinel.incidents.lifecycle import IncidentTracker
from tests.incidents.timeline import CLASSES, RUN, START, by_position, changed, detector, rows, tracker

CAUSE = "loss-scale-collapse"
EFFECT = "flat-loss-at-init"


def stands(*lines, preview=()):
    """Detector, tag and cause (its detector and tag, None if it has none) of what is open in the end."""
    ours = tracker(*preview)
    ours.advance([rows for line in lines for rows in line])
    names = {incident.id: (incident.detector, incident.tag) for incident in ours.open()}
    return [(i.detector, i.tag, i.inhibited_by and names[i.inhibited_by]) for i in ours.open()]


def explained(*lines, **options):
    """Detectors that are explained by another one, with it."""
    return {name: by[0] for name, _, by in stands(*lines, **options) if by}


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("non-finite-metric", "loss-spike"),
        ("non-finite-metric", "flat-loss-at-init"),
        ("zero-gradient", "flat-loss-at-init"),
        ("loss-scale-collapse", "flat-loss-at-init"),
        ("loss-scale-collapse", "lr-schedule-mismatch"),
        ("lr-schedule-mismatch", "flat-loss-at-init"),
        ("resume-discontinuity", "loss-spike"),
        ("entropy-collapse", "reward-zero-std"),
    ],
)
def test_a_cause_explains_what_begins_after_it(cause, effect):
    assert explained(rows("cc......", cause), rows("....cc", effect)) == {effect: cause}
    assert explained(rows("ccc", cause), rows("ccc", effect)) == {effect: cause}


def test_what_a_card_says_of_the_whole_run_is_explained_by_what_was_found_in_it():
    """The onset of a loss that never left its start is the first step."""
    card = changed(rows("cccc", EFFECT), evidence={"level": 1.0, "card_points": 9.0})
    assert explained(card, rows("..cc", CAUSE)) == {EFFECT: CAUSE}
    assert explained(card, rows("..cc", "loss-spike", tag="loss")) == {}
    other = changed(rows("..cc", "loss-spike", tag="loss"), evidence={"level": 1.0, "card_points": 9.0})
    assert explained(card, other) == {"loss-spike": EFFECT}
    assert explained(card, rows("..cc", "crash", stream="")) == {}
    assert explained(card, rows("..cc", "reward-zero-std")) == {}


def test_a_second_opinion_is_no_message_of_its_own_where_something_was_found():
    card = {"level": 1.0, "card_points": 9.0}
    second = changed(rows("cccc", EFFECT), evidence=card, variant="second-opinion-held-out-loss-high")
    assert explained(second, rows("..cc", "reward-zero-std")) == {EFFECT: "reward-zero-std"}
    assert explained(second, rows("..cc", "crash", stream="")) == {}
    of_card = changed(rows("..cc", "loss-spike", tag="loss"), evidence=card)
    assert explained(second, of_card) == {EFFECT: "loss-spike"}


def test_what_a_rule_found_is_no_card_although_its_detector_reads_some():
    none = {"level": 1.0, "card_points": None}
    first = changed(rows("..cccccc", "flat-loss-at-init"), evidence=none)
    last = changed(rows("......cc", "loss-spike", tag="loss"), evidence=none)
    assert explained(first, last) == {}


def test_a_card_that_was_told_is_not_taken_back_by_what_its_class_finds_later():
    points = {"level": 1.0, "card_points": 9.0}
    card = changed(rows("..cccccc", EFFECT, tag="loss"), evidence=points, onset=lambda: (0, None))
    rule = changed(rows("......cc", EFFECT, tag="eval"), evidence={"level": 1.0, "card_points": None})
    at_first = changed(rule, onset=lambda: (0, None))
    assert stands(card, at_first)[1] == (EFFECT, "eval", (EFFECT, "loss"))


def test_of_two_cards_the_one_that_was_found_first_explains_the_other():
    """What was sent while the run went on is not taken back by a card about its end."""
    points = {"level": 1.0, "card_points": 9.0}
    first = changed(rows("..cccccc", "flat-loss-at-init"), evidence=points)
    last = changed(rows("......cc", "loss-spike", tag="loss"), evidence=points, onset=lambda: (0, None))
    assert explained(first, last) == {"loss-spike": "flat-loss-at-init"}


@pytest.mark.parametrize("found", ["..cccccc", "......cc"], ids=["before", "at once"])
@pytest.mark.parametrize(("claim", "expected"), [("memorises", True), ("rests-at-guessing", False)])
def test_what_a_detector_of_the_outcome_found_explains_a_card_of_its_class_that_is_not_earlier(
    claim, expected, found
):
    """A memorising model is told once; that a loss never left its start explains no memorising."""
    detectors = {name: detector(name) for name in CLASSES}
    detectors["flat-loss-at-init"] = replace(detectors["flat-loss-at-init"], reads=(claim,))
    detectors["loss-spike"] = replace(detectors["loss-spike"], reads=("memorises",))
    ours = IncidentTracker(RUN, detectors)
    card = changed(rows("......cc", "loss-spike", tag="loss"), evidence={"level": 1.0, "card_points": 9.0})
    ours.advance([one for line in (rows(found, "flat-loss-at-init"), card) for one in line])
    of_card = next(incident for incident in ours.open() if incident.detector == "loss-spike")
    assert (of_card.inhibited_by is not None) == expected


@pytest.mark.parametrize(
    ("loss", "metric", "told"),
    [
        ("..cccccc", "....cccc", "flat-loss-at-init"),
        ("....cccc", "..cccccc", "loss-spike"),
        ("..cccccc", "..cccccc", "flat-loss-at-init"),
    ],
)
def test_a_run_that_never_learned_is_told_once_by_what_was_found_first(loss, metric, told):
    """Its loss and its accuracy have stood still since the start; of two at once the loss is told."""
    detectors = {name: detector(name) for name in CLASSES}
    detectors["flat-loss-at-init"] = replace(detectors["flat-loss-at-init"], reads=("never-left-its-start",))
    detectors["loss-spike"] = replace(
        detectors["loss-spike"], reads=("metric-never-left-its-start",), cause=Cause.EVALUATION
    )
    ours = IncidentTracker(RUN, detectors)
    begun = {"onset": lambda: (0, None)}
    both = changed(rows(loss, "flat-loss-at-init"), **begun), changed(rows(metric, "loss-spike"), **begun)
    ours.advance([one for line in both for one in line])
    by_name = {incident.detector: incident for incident in ours.open()}
    assert [name for name, incident in by_name.items() if incident.inhibited_by is None] == [told]


def test_two_metrics_that_never_left_their_start_are_told_once_though_found_at_once():
    detectors = {name: detector(name) for name in CLASSES}
    names = "flat-loss-at-init", "loss-spike"
    for name in names:
        detectors[name] = replace(
            detectors[name], reads=("metric-never-left-its-start",), cause=Cause.EVALUATION
        )
    ours = IncidentTracker(RUN, detectors)
    of_card = {"evidence": {"level": 1.0, "card_points": 9.0}, "onset": lambda: (0, None)}
    both = [changed(rows("..cccccc", name), **of_card) for name in names]
    ours.advance([one for line in both for one in line])
    assert sum(incident.inhibited_by is None for incident in ours.open()) == 1


def told(of_evaluation, *lines):
    """The detectors that are explained by none, some of which find troubles of evaluations."""
    detectors = {name: detector(name) for name in CLASSES}
    for name in of_evaluation:
        detectors[name] = replace(detectors[name], cause=Cause.EVALUATION)
    ours = IncidentTracker(RUN, detectors)
    ours.advance([one for line in lines for one in line])
    return {incident.detector for incident in ours.open() if incident.inhibited_by is None}


BOTH = "loss-spike", "flat-loss-at-init"


def test_what_two_detectors_say_of_one_evaluation_is_told_once():
    """The one that was found first says it, unless the other one is worse or of another metric."""
    first = rows("..wwwwww", "loss-spike", tag="eval_accuracy")
    later = changed(rows("....wwww", "flat-loss-at-init", tag="eval_accuracy"), onset=lambda: (0, None))
    worse = changed(rows("....cccc", "flat-loss-at-init", tag="eval_accuracy"), onset=lambda: (0, None))
    assert told(BOTH, first, later) == {"loss-spike"}
    assert told(BOTH, first, worse) == {*BOTH}
    assert told(BOTH, first, rows("....wwww", "flat-loss-at-init", tag="eval_loss")) == {*BOTH}
    assert told((), first, later) == {*BOTH}, "the shape of a loss has many sides"
    attempts = rows("....wwww|wwwwwwww", "loss-spike", tag="eval_accuracy")
    assert told(BOTH, attempts, rows("........|wwwwwwww", "flat-loss-at-init", tag="eval_accuracy")) == {
        "loss-spike"
    }
    card = changed(first, evidence={"level": 1.0, "card_points": 9.0})
    assert told(BOTH, card, later) == {*BOTH}, "a rule says more than a card about the whole run"


@pytest.mark.parametrize(("broke", "alone"), [("..cccccccc", True), (".....ccccc", False)])
def test_a_number_that_broke_explains_an_evaluation_that_stood_still_for_most_of_the_time_since(broke, alone):
    """Its onset is its first evaluation, which was the same by chance."""
    stands_still = changed(rows("......wwww", "loss-spike", tag="acc"), onset=lambda: (0, None))
    lines = rows(broke, "non-finite-metric", tag="loss"), stands_still
    assert told(("loss-spike",), *lines) == {"non-finite-metric", *(() if alone else ("loss-spike",))}


@pytest.mark.parametrize(("left", "alone"), [(20, True), (50, False)])
def test_a_loss_that_never_left_its_start_had_no_level_to_leave(left, alone):
    detectors = {name: detector(name) for name in CLASSES}
    never, level = "flat-loss-at-init", "loss-divergence"
    detectors[never] = replace(detectors[never], reads=("never-left-its-start",))
    detectors[level] = replace(detectors[level], reads=("left-its-level",))
    card = {"evidence": {"level": 1.0, "card_points": 9.0}, "onset": lambda: (left, None)}
    of_card = changed(rows("...wwwwwww", level, tag="loss"), **card)
    rule = changed(rows("......wwww", never, tag="loss"), onset=lambda: (0, None))
    ours = IncidentTracker(RUN, detectors)
    ours.advance([*of_card, *rule])
    unexplained = {incident.detector for incident in ours.open() if incident.inhibited_by is None}
    assert unexplained == {never, *(() if alone else (level,))}


def test_a_card_and_what_explains_it_never_explain_each_other():
    """Each is of a class that explains the other, and the card begins first."""
    card = changed(rows("cccccc", "loss-divergence", tag="loss"), evidence={"level": 1.0, "card_points": 9.0})
    assert explained(card, rows("..cccc", "exploding-grad-norm")) == {
        "loss-divergence": "exploding-grad-norm"
    }


class TestTheEarlierOnsetDecides:
    def test_also_of_two_that_explain_each_other(self):
        norm = "exploding-grad-norm"
        loss = "loss-divergence"
        assert explained(rows("..cccc", norm), rows("....cc", loss)) == {loss: norm}
        assert explained(rows("....cc", norm), rows("..cccc", loss)) == {norm: loss}
        assert len(explained(rows("..cc", norm), rows("..cc", loss))) == 1

    def test_what_begins_before_is_not_explained(self):
        assert explained(rows("cccc", EFFECT), rows("..cc", CAUSE)) == {}

    def test_not_who_was_noticed_first(self):
        late = changed(rows("....cc", CAUSE), onset=lambda: (0, None))
        assert explained(rows("..cccc", EFFECT), late) == {EFFECT: CAUSE}

    def test_of_equal_times_steps_decide(self):
        nan = changed(rows("cc", "non-finite-metric"), onset=lambda: (6, START))
        printed = changed(rows("..cc", "crash", stream=""), onset=lambda: (22, START))
        assert explained(nan, printed) == {}

    def test_not_the_severity(self):
        assert explained(rows("wwwwww", CAUSE), rows("..cccc", EFFECT)) == {EFFECT: CAUSE}

    def test_what_escalates_keeps_its_cause(self):
        assert explained(rows("wwwwww", CAUSE), rows("..wwcc", EFFECT)) == {EFFECT: CAUSE}

    def test_an_earlier_attempt_is_earlier_whatever_its_steps(self):
        later = rows("...... | cc", EFFECT)
        assert explained(rows("....cc | cc", CAUSE), later) == {EFFECT: CAUSE}


class TestAcrossStreams:
    def test_two_processes_are_not_related(self):
        assert explained(rows("cc", CAUSE, stream="a"), rows("...cc", EFFECT, stream="b")) == {}

    @pytest.mark.parametrize(("crash", "metric"), [("", "a"), ("a", "")])
    def test_the_run_as_a_whole_is(self, crash, metric):
        lines = rows("...cc", "crash", stream=crash), rows("....cc", EFFECT, stream=metric)
        assert explained(*lines) == {EFFECT: "crash"}

    @pytest.mark.parametrize("whole", ["crash", "stall"])
    def test_what_would_wait_is_explained_by_a_crash_or_a_stall(self, whole):
        """At the end of a silent run its last rows are judged once more."""
        last = changed(rows("......w", EFFECT)[6:], final=True)
        assert explained(rows("......cc", whole, stream=""), last) == {EFFECT: whole}
        earlier = changed(rows("......w", EFFECT)[6:], final=True, onset=lambda: (20, None))
        assert explained(rows("......cc", whole, stream=""), earlier) == {}, "it began before"

    def test_a_crash_explains_the_stall_that_follows(self):
        lines = rows("...cc", "crash", stream=""), rows(".....cc", "stall", "other", stream="")
        assert explained(*lines) == {"stall": "crash"}

    def test_the_clock_decides_there_what_was_first(self):
        """Steps of the run as a whole need not be those of a stream."""
        crash = changed(rows("cc", "crash", stream=""), step=10**6)
        assert explained(crash, rows("..cc", EFFECT)) == {EFFECT: "crash"}
        timeless = changed(rows("....cc", EFFECT), time=None)
        assert explained(crash, timeless) == {}


class TestWhatIsNotHeard:
    """What nobody is sent explains nothing that somebody would be sent."""

    def test_a_preview(self):
        lines = rows("cc", CAUSE), rows("...cc", EFFECT)
        assert explained(*lines, preview=[CAUSE]) == {}
        assert explained(*lines, preview=[CAUSE, EFFECT]) == {EFFECT: CAUSE}

    def test_an_info(self):
        assert explained(rows("iiiiii", CAUSE), rows("..ww", EFFECT)) == {}
        assert explained(rows("iiiiii", CAUSE), rows("..iiww", EFFECT)) == {}
        assert explained(rows("iiiiii", CAUSE), rows("..iiii", EFFECT)) == {EFFECT: CAUSE}
        assert explained(rows("iiiiww", CAUSE), rows("..wwww", EFFECT)) == {EFFECT: CAUSE}


def test_the_same_detector_on_another_tag_is_the_same_trouble():
    assert stands(rows("ww", tag="a"), rows("..ww", tag="b"), rows("..ww", tag="c")) == [
        ("kl-blowup", "a", None),
        ("kl-blowup", "b", ("kl-blowup", "a")),
        ("kl-blowup", "c", ("kl-blowup", "a")),
    ]


def test_unrelated_detectors_do_not_silence_each_other():
    assert explained(rows("cc", CAUSE), rows("...cc", "kl-blowup")) == {}
    assert explained(rows("cc", "entropy-collapse"), rows("...cc", "kl-blowup")) == {}


def test_of_a_chain_the_root_is_told():
    chain = {
        "lr-schedule-mismatch": rows("..cccc", "lr-schedule-mismatch"),
        EFFECT: rows("...ccc", EFFECT),
        CAUSE: rows(".cccccc", CAUSE),
    }
    roots = {"lr-schedule-mismatch": CAUSE, EFFECT: CAUSE}
    assert explained(*chain.values()) == roots
    late = changed(rows("......cc", CAUSE), onset=lambda: (0, None))
    assert explained(*(chain | {CAUSE: late}).values()) == roots


class TestTheEndOfACause:
    @pytest.mark.parametrize(
        ("effect", "events"),
        [
            ("..ccccc", ["firing", "firing", "resolved"]),  # found twice since: its end may just be late
            ("..cc...", ["firing", "firing", "resolved", "resolved"]),
            ("..cccccc", ["firing", "firing", "resolved", "firing"]),
        ],
    )
    def test_what_outlives_it_by_a_clear_is_told_after_all(self, effect, events):
        changes = tracker(clear=3).advance(rows("cc...", CAUSE) + rows(effect, EFFECT))
        assert [c.event for c in changes] == events
        assert changes[1].incident.inhibited_by == changes[0].incident.id
        if events[-1] == "firing":
            assert changes[-1].incident.inhibited_by is None
            assert changes[-1].incident.id == changes[1].incident.id

    def test_there_may_be_another_one(self):
        ours = tracker(clear=3)
        lines = rows("cc...", CAUSE), rows("..cccccccc", EFFECT), rows(".ccccccccc", "lr-schedule-mismatch")
        changes = ours.advance([verdict for line in lines for verdict in line])
        released = [
            c.incident.detector for c in changes if c.event == "firing" and not c.incident.inhibited_by
        ]
        assert released == [CAUSE, "lr-schedule-mismatch"]
        effect, other = sorted(ours.open(), key=lambda i: i.detector)
        assert effect.inhibited_by == other.id

    def test_a_cause_that_returns_explains_again(self):
        lines = rows("cc" + "." * 10 + "cccc", CAUSE), rows("..cccccccccccccc", EFFECT)
        assert explained(*lines) == {EFFECT: CAUSE}


class TestTwoThatExplainEachOther:
    """A loss and a gradient norm that diverge together are one trouble, whichever calms down first."""

    def test_the_first_is_over_once_both_are(self):
        lines = rows("cc" + "." * 12, "exploding-grad-norm"), rows("..cccccc......", "loss-divergence")
        changes = tracker(clear=3).advance([verdict for line in lines for verdict in line])
        assert [(c.event, c.incident.detector) for c in changes] == [
            ("firing", "exploding-grad-norm"),
            ("firing", "loss-divergence"),
            ("resolved", "loss-divergence"),
            ("resolved", "exploding-grad-norm"),
        ]
        events = [c.event for c in changes if not c.incident.inhibited_by]
        assert events == ["firing", "resolved"]

    def test_what_began_first_may_last_longer(self):
        changes = tracker(clear=3).advance(
            rows("cccccccccc...", "loss-divergence") + rows("..cc...", "exploding-grad-norm")
        )
        assert [c.event for c in changes] == ["firing", "firing", "resolved", "resolved"]

    def test_one_that_nobody_is_sent_keeps_none_open(self):
        changes = tracker(clear=3).advance(
            rows("cc" + "." * 8, "loss-divergence") + rows("..iiiiiiii", "exploding-grad-norm")
        )
        assert ("resolved", "loss-divergence") in [(c.event, c.incident.detector) for c in changes]

    def test_tags_of_one_detector_are_one_trouble(self):
        changes = tracker(clear=3).advance(
            rows("cc" + "." * 10, CAUSE, "a") + rows("..cccccccc..", CAUSE, "b")
        )
        assert [(c.event, c.incident.tag) for c in changes] == [("firing", "a"), ("firing", "b")]


def test_what_the_detectors_declare():
    """Pairs of which one alone is to be told, and one of which both are."""
    detectors = all_detectors()

    def silences(cause, effect):
        return detectors[effect].cause in detectors[cause].inhibits

    assert silences("loss-scale-collapse", "flat-loss-at-init")
    assert silences("loss-scale-collapse", "lr-schedule-mismatch")
    assert silences("non-finite-metric", "loss-spike")
    assert silences("non-finite-metric", "flat-loss-at-init")
    assert silences("zero-gradient", "flat-loss-at-init")
    assert silences("resume-discontinuity", "loss-spike")
    assert all(silences("console-error", effect) for effect in ("loss-plateau", "stream-stall", "kl-blowup"))
    assert not silences("flat-loss-at-init", "zero-gradient")
    assert all(silences("stream-stall", effect) for effect in ("loss-plateau", "throughput-shift"))
    assert not silences("stream-stall", "console-error"), "a crash is no effect of the silence after it"
    assert not silences("stream-stall", "non-finite-metric")
    assert silences("exploding-grad-norm", "loss-divergence"), (
        "one training that leaves its course is one page"
    )
    assert silences("loss-divergence", "exploding-grad-norm"), "whichever of the two begins first"
    assert silences("console-error", "run-crashed")
    assert silences("run-crashed", "stream-stall")
    assert silences("lr-schedule-mismatch", "flat-loss-at-init")
    assert silences("entropy-collapse", "reward-zero-std")
    assert silences("clipped-completion-ratio", "reward-zero-std")
    assert silences("kl-blowup", "completion-length-drift"), "one collapse is one page"
    assert silences("kl-blowup", "reward-collapse")
    assert silences("non-finite-metric", "completion-length-drift")
    assert silences("non-finite-metric", "console-error")
    assert not silences("console-error", "non-finite-metric"), "a crash must not hide its cause"
    assert not silences("reward-collapse", "kl-blowup")


class TestRanks:
    """Each process of a training may report the same trouble."""

    NAN = "non-finite-metric"

    def test_the_same_trouble_of_all_is_one(self):
        ranks = [rows("....cc", self.NAN, "loss", stream=f"log:rank {rank}") for rank in range(8)]
        roots = [by for _, _, by in stands(*ranks) if by is None]
        assert len(roots) == 1

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    def test_who_stands_for_all_does_not_depend_on_who_is_read_first(self, order):
        ours = tracker()
        for rank in order:
            ours.advance(rows("....cc", self.NAN, "loss", stream=f"log:rank {rank}"))
        assert [i.stream for i in ours.open() if not i.inhibited_by] == ["log:rank 0"]
        assert len({i.inhibited_by for i in ours.open()}) == 2

    def test_of_equal_onsets_the_one_that_was_found_first_stands_for_all(self):
        found = [
            changed(rows(line, self.NAN, "loss", stream=f"log:rank {rank}"), onset=lambda: (40, None))
            for rank, line in enumerate(("........cc", "....cc"))
        ]
        ours = tracker()
        for verdicts in found:
            ours.advance(verdicts)
        assert [i.stream for i in ours.open() if not i.inhibited_by] == ["log:rank 1"]

    def test_one_that_began_much_later_is_another_trouble(self):
        early = rows("..cc", self.NAN, "loss", stream="log:rank 0")
        late = rows("." * 40 + "cc", self.NAN, "loss", stream="log:rank 1")
        assert [by for *_, by in stands(early, late)] == [None, None]

    def test_other_metrics_of_other_processes_are_not_the_same(self):
        other = changed(rows("....cc", self.NAN, "kl", stream="log:rank 1"), signal="loss_part")
        assert [by for *_, by in stands(rows("....cc", self.NAN, "loss", stream="log"), other)] == [None] * 2

    def test_the_losses_of_the_training_and_of_held_out_data_are(self):
        """Keras writes them into a directory each."""
        training = changed(rows("..cccc", self.NAN, "epoch_loss", stream="train"), signal="loss")
        held_out = changed(rows("..cccc", self.NAN, "epoch_loss", stream="validation"), signal="eval_loss")
        assert [by for *_, by in stands(training, held_out)] == [None, (self.NAN, "epoch_loss")]
        later = changed(rows("....cc", self.NAN, "epoch_loss", stream="validation"), signal="eval_loss")
        assert [by for *_, by in stands(training, later)] == [None, None]

    def test_it_is_over_once_it_is_in_all(self):
        first = rows("..cc......", self.NAN, "loss", stream="log")
        second = rows("..cccc...", self.NAN, "loss", stream="log:rank 1")
        ours = tracker(clear=3)
        changes = [change for rows in by_position(first + second) for change in ours.advance(rows)]
        assert [(c.event, c.incident.stream) for c in changes][2:] == [
            ("resolved", "log:rank 1"),
            ("resolved", "log"),
        ]


class TestACollapseOfAPolicy:
    def test_what_is_found_first_speaks_for_what_follows_soon(self):
        answers = changed(rows("." * 28 + "ww", "length-drift", "length"), onset=lambda: (268, None))
        assert explained(rows("." * 27 + "cc", "kl-blowup"), answers) == {"length-drift": "kl-blowup"}

    def test_what_follows_much_later_is_another_trouble(self):
        late = rows("." * 80 + "ww", "length-drift", "length")
        assert explained(rows("..cc" + "c" * 78, "kl-blowup"), late) == {}

    def test_what_is_worse_is_told_beside_it(self):
        lines = rows("..wwwwww", "length-drift", "length"), rows("......cc", "kl-blowup")
        assert explained(*lines) == {}

    def test_a_loss_that_is_not_a_number_explains_all(self):
        effects = rows("...cc", "kl-blowup"), rows("...cc", "reward-zero-std")
        nan = rows("..ccc", "non-finite-metric", "loss")
        assert set(explained(nan, *effects)) == {"kl-blowup", "reward-zero-std"}


class TestACrash:
    def test_a_number_that_broke_shortly_before_explains_it(self):
        lines = rows("....cc", "non-finite-metric", "loss"), rows(".....cc", "crash", "", stream="")
        assert explained(*map(uncited, lines)) == {"crash": "non-finite-metric"}

    def test_also_at_the_same_step_of_a_log_without_times(self):
        lines = rows("....cc", "non-finite-metric", "loss"), rows("....cc", "crash", "", stream="")
        assert explained(*(changed(uncited(line), time=None) for line in lines)) == {
            "crash": "non-finite-metric"
        }

    def test_one_that_broke_long_before_does_not(self):
        lines = rows("....cc", "non-finite-metric", "loss"), rows("." * 40 + "cc", "crash", "", stream="")
        assert explained(*map(uncited, lines)) == {}

    def test_the_first_error_is_told_whatever_others_print_after_it(self):
        ours = tracker(hold=1)
        ours.advance(rows("cc", "crash", "", stream=""))
        (incident,) = ours.open()
        assert incident.findings == 2
        assert incident.latest == ""
        assert incident.summary == " is at 0.0"

    def test_nor_where_the_error_names_another_cause(self):
        nan = changed(rows("....cc", "non-finite-metric", "loss"), catalogue=("GE-nan",))
        killed = changed(rows(".....cc", "crash", "", stream=""), catalogue=("A-err-exit9",))
        assert explained(nan, killed) == {}


def uncited(line):
    """The same verdicts, which cite one entry."""
    return changed(line, catalogue=("GE-nan",))
