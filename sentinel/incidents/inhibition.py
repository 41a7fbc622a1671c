"""Decides which incident explains which, so that each cause is sent once.

A detector declares the class of problem that it finds (``cause``) and the classes that this explains
(``inhibits``). Of two incidents that are related in this way, the one with the earlier onset explains the
other. Neither the order in which they fired nor their severity matters. If a detector fires on several tags
of a stream, the first of these incidents explains the others. Where either could explain the other, the two
are one problem: the first is over once both are.

Nine kinds of incidents are related in a way of their own:

- The ranks of a training, each with a stream, that report the same problem at about the same time, and the
  losses of the training and of held-out data that do. The one that began first explains the others; of equal
  steps, the one that was found first, or the name of the stream decides.
- What a policy that collapses shows: its KL, its entropy, the length of its answers. What is found first
  explains what follows soon. It does not explain what is worse, in the rewards either.
- What a score card says of the outcome of a run. It judges the whole run, so its onset says little: whatever
  was found in the run and explains its class explains the card. An end of the run does not, nor does what
  was found later and is of the card's own class. Of one class, what is critical explains a card, and so does
  what was found by then by a detector that judges the outcome, too, but for a card to which its own cards
  yield. Of two cards the one that was found first explains the other.
- What the forest says of a run that is over, as a second opinion. Whatever else was found in the run explains
  it, but for the end of the run; of two such, the one that was said first.
- A run that never learned. Its loss and its metrics have stood still since the start: what was found first
  explains the rest, and of what was found at once the loss.
- What two detectors say of one evaluated metric, such as an accuracy. The one that was found first says it,
  unless the other one is worse. So it is not of a reward: that it fell early is not that it never rose.
- A loss that never left its start. It had no level to leave, unless it left late.
- An evaluation that stands still. A number that broke in the first half of that time explains it: what was
  the same before was so by chance.
- A crash. A number that broke shortly before explains it, unless the error names another cause.
"""

from collections.abc import Mapping

from sentinel.detectors.api import Cause, Declaration, Detector, Maturity, Severity
from sentinel.detectors.reading.cards import card_of, second_opinions
from sentinel.detectors.signals import Signal
from sentinel.incidents.incident import Incident, began_together

OF_THE_RUN = ""
"""The stream of findings about a run as a whole: its console output, its silence."""

OF_AN_END = Cause.CRASH, Cause.STALL
"""Classes of what ends a run, or seems to."""

_OF_A_POLICY = frozenset((Cause.POLICY, Cause.REWARD))
_NEVER_LEARNED = frozenset({"never-left-its-start", "metric-never-left-its-start"})
"""Claims about a loss and about a metric that say the same of a run."""
_LOSSES = {Signal.LOSS.value, Signal.EVAL_LOSS.value}
"""Signals of the training and of held-out data, which some trainers write into streams of their own."""
_LEFT = "left-its-level"
"""The claim that a loss had a level, and left it for good."""
_MOST_OF_WAIT = 0.5
"""Share of the steps until a trouble was found by which another one may begin earlier or later: the first
evaluation comes after the first losses.
"""
_MAX_STEPS_FACTOR = 2
"""A collapse shows in other metrics before the run has gone on for as long again as it had when the first
one was found.
"""


def explains(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether the incident ``cause`` explains the incident ``effect``.

    Incidents of different streams are not related, except to those of the run as a whole and to those of
    other ranks. An incident that no sink is sent by default (info, preview) does not explain one that is
    sent.
    """
    if not _may_explain(cause, effect, detectors):
        return False
    if _is_unasked(cause, effect, detectors) or _is_unasked(effect, cause, detectors):
        return _is_second_opinion(effect)
    if _stood_still_with(cause, effect, detectors):
        return cause.fired_step < effect.fired_step or detectors[cause.detector].cause is Cause.LOSS_SHAPE
    if _broke_before(cause, effect, detectors) or _says_it_again(cause, effect, detectors):
        return True
    if _explains_card(cause, effect, detectors):
        return True
    if _explains_card(effect, cause, detectors) and _may_explain(effect, cause, detectors):
        return False
    if cause.is_of_card and effect.is_of_card and cause.fired_step != effect.fired_step:
        return cause.fired_step < effect.fired_step
    if _is_of_other_rank(cause, effect):
        return _order_of_rank(cause) < _order_of_rank(effect)
    if _is_of_a_policy(cause, effect, detectors) and detectors[effect.detector].cause is Cause.POLICY:
        return _follows(effect, cause)
    return not _begins_before(effect, cause)


def goes_on_as(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether ``effect``, which ``cause`` explains, would explain it as well if it had begun first.

    The two are then one problem, such as a loss and a gradient norm that diverge together.
    """
    return effect.inhibited_by == cause.id and _may_explain(effect, cause, detectors)


def _may_explain(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    if cause.detector == effect.detector:
        of_one_stream = cause.stream == effect.stream and cause.tag != effect.tag
        related = of_one_stream or _is_of_other_rank(cause, effect)
    else:
        of_one_process = cause.stream == effect.stream or OF_THE_RUN in (cause.stream, effect.stream)
        class_of_effect = detectors[effect.detector].cause
        outweighs = cause.is_of_card or cause.severity > effect.severity
        is_surer = outweighs or _was_found_before(cause, effect, detectors)
        is_same_class = effect.is_of_card and is_surer and class_of_effect is detectors[cause.detector].cause
        is_class = is_same_class or class_of_effect in detectors[cause.detector].inhibits
        is_again = _says_it_again(cause, effect, detectors) or _never_left(cause, effect, detectors)
        is_again |= _is_unasked(cause, effect, detectors)
        related = of_one_process and (is_class or is_again or _stood_still_with(cause, effect, detectors))
        if related and _is_of_a_policy(cause, effect, detectors):
            related = cause.severity >= effect.severity
        if related and detectors[effect.detector].cause is Cause.CRASH and cause.stream != OF_THE_RUN:
            related = _may_end_the_run(cause, effect)
    stable = cause.maturity is Maturity.STABLE or effect.maturity is Maturity.PREVIEW
    return related and stable and cause.severity >= min(effect.severity, Severity.WARNING)


def _is_second_opinion(incident: Incident) -> bool:
    return incident.variant in second_opinions()


def _is_unasked(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether ``effect`` is a second opinion on a run in which something was found."""
    ends_run = detectors[cause.detector].cause in OF_AN_END
    return _is_second_opinion(effect) and not _is_second_opinion(cause) and not ends_run


def _says_it_again(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether ``effect`` says of an evaluated metric what ``cause`` had said in other words, and
    nothing worse. What a card says of the whole run is no word about what a rule finds in it.
    """
    of_one_metric = cause.stream == effect.stream and cause.tag == effect.tag != ""
    classes = {detectors[cause.detector].cause, detectors[effect.detector].cause}
    is_evaluated = of_one_metric and classes == {Cause.EVALUATION}
    found = [(incident.attempt, incident.fired_step) for incident in (cause, effect)]
    is_new = found[0] >= found[1] or cause.severity < effect.severity
    is_new |= cause.is_of_card and not effect.is_of_card
    return is_evaluated and not is_new and not _are_rivals(cause, effect, detectors)


def _never_left(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether a card says that a loss left its level, and ``cause`` that it never left its start: then
    there was no level, unless it left late.
    """
    never, left = (_claims(detectors[incident.detector]) for incident in (cause, effect))
    of_one_loss = cause.stream == effect.stream and cause.tag == effect.tag
    says_so = not _NEVER_LEARNED.isdisjoint(never) and _LEFT in left and effect.is_of_card
    return of_one_loss and says_so and _begins_early(effect, cause)


def _broke_before(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether a number had broken when an evaluation stood still, for most of the time."""
    classes = detectors[cause.detector].cause, detectors[effect.detector].cause
    is_earlier = cause.fired_step <= effect.fired_step
    return classes == (Cause.NUMERICS, Cause.EVALUATION) and is_earlier and _begins_early(cause, effect)


def _begins_early(incident: Incident, other: Incident) -> bool:
    """Return whether an incident began before half of the time was over until the other was found."""
    return incident.onset_step - other.onset_step <= _MOST_OF_WAIT * (other.fired_step - other.onset_step)


def _was_found_before(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether a detector that judges the outcome had found its trouble by the step of a card.

    What never left its start does not explain what got worse than it was.
    """
    judges_outcome = bool(_claims(detectors[cause.detector]))
    is_earlier = cause.fired_step <= effect.fired_step
    return judges_outcome and is_earlier and not _are_rivals(cause, effect, detectors)


def _are_rivals(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether the cards of one detector yield to those of the other."""
    yields_to = {rival for claim in _claims(detectors[cause.detector]) for rival in card_of(claim).yields_to}
    return not yields_to.isdisjoint(_claims(detectors[effect.detector]))


def _stood_still_with(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether a loss and a metric have stood still since the start of a run, and ``cause`` was not
    found later.
    """
    both = detectors[cause.detector], detectors[effect.detector]
    asks = both[0].cause is not both[1].cause and all(map(_asks_whether_it_learned, both))
    later = max(cause.onset_step, effect.onset_step) - min(cause.onset_step, effect.onset_step)
    since_start = later <= _MOST_OF_WAIT * (effect.fired_step - effect.onset_step)
    is_first = cause.fired_step <= effect.fired_step
    return asks and since_start and is_first


def _asks_whether_it_learned(declaration: Declaration) -> bool:
    """Return whether a detector finds losses or metrics that never left their start."""
    return not _NEVER_LEARNED.isdisjoint(_claims(declaration))


def _claims(declaration: Declaration) -> tuple[str, ...]:
    return declaration.reads if isinstance(declaration, Detector) else ()


def _explains_card(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether a finding in a run comes before a card about the whole of it, whichever began first."""
    of_cause = detectors[cause.detector].cause
    ends_run = of_cause in OF_AN_END
    is_late = of_cause is detectors[effect.detector].cause and cause.fired_step > effect.fired_step
    return effect.is_of_card and not cause.is_of_card and not is_late and not ends_run


def _order_of_rank(incident: Incident) -> tuple[int, int, str]:
    """Return what is least for the incident that explains those of other ranks."""
    return incident.onset_step, incident.fired_step, incident.stream


def _is_of_other_rank(incident: Incident, other: Incident) -> bool:
    """Return whether two ranks, or a training and its evaluation, report the same problem."""
    metrics = {incident.signal or incident.tag, other.signal or other.tag}
    return (
        incident.detector == other.detector
        and incident.stream != other.stream
        and OF_THE_RUN not in (incident.stream, other.stream)
        and (len(metrics) == 1 or metrics == _LOSSES)
        and began_together(incident, other)
    )


def _is_of_a_policy(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    classes = {detectors[cause.detector].cause, detectors[effect.detector].cause}
    return cause.detector != effect.detector and classes <= _OF_A_POLICY


def _follows(effect: Incident, cause: Incident) -> bool:
    """Return whether ``effect`` began after ``cause`` and soon.

    The onset of a collapse is no better known than how long it took to find it.
    """
    found_in_steps = cause.fired_step - cause.onset_step
    return (effect.attempt, effect.onset_step) >= (cause.attempt, cause.onset_step - found_in_steps) and (
        effect.attempt,
        effect.onset_step,
    ) <= (cause.attempt, _MAX_STEPS_FACTOR * cause.fired_step)


def _may_end_the_run(cause: Incident, crash: Incident) -> bool:
    """Return whether a metric can explain a crash, which names either no cause or the same."""
    names_another = bool(crash.cited) and not {*crash.cited} & {*cause.cited}
    return bool(cause.signal) and not names_another and began_together(cause, crash)


def _begins_before(incident: Incident, other: Incident) -> bool:
    """Compare by step within a stream, else by time if both times are known. Of equal times steps decide."""
    if incident.stream == other.stream:
        return (incident.attempt, incident.onset_step) < (other.attempt, other.onset_step)
    if incident.onset_time is not None and other.onset_time is not None:
        return (incident.onset_time, incident.onset_step) < (other.onset_time, other.onset_step)
    return incident.onset_step < other.onset_step
