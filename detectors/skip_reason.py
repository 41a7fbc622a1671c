"""Why a detector holds back its verdict on a row: the preconditions that its rules share."""

from enum import StrEnum


class SkipReason(StrEnum):
    """A reason not to judge a row, worded so that it follows "not judged, because of"."""

    FEW_POINTS = "too few points"
    EARLY = "an early stage of the training"
    NOT_OVER = "a run that is not over"
    LATE = "points that come long after the start"
    WARM_UP = "a learning rate that warms up"
    ZERO_RATE = "a learning rate of zero"
    CALIBRATION = "a loss scaler that searches for its level"
    RESUMED = "a log that begins with a resume"
    NO_RESTART = "no restart"
    NOT_SUPERVISED = "a loss that is not of supervised training"
    NOT_CLASSIFIER = "a loss that may not be of a classifier"
    NOT_COMPARABLE = "nothing to compare it with"
    NO_SETTING = "a setting that is not known"
    RANGE = "values that the rule is not made for"
    COARSE = "values of too few samples"
    VARIATION = "too little variation"
    EPOCH_LENGTH = "epochs of no suitable length"
    EXPLAINED = "a harmless explanation"
    OTHER_TAG = "another tag that tells more"
    NO_SIBLINGS = "no siblings"
    NO_ROWS = "no step with a number of each signal"
