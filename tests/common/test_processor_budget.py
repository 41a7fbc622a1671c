import re
import signal
import threading

import pytest

from sentinel.common.processor_budget import ProcessorBudget, ProcessorTimeExceeded

HANDLER = signal.getsignal(signal.SIGPROF)


def search_without_end():
    re.fullmatch("(a+)+", "a" * 60 + "b")


def spin_whatever_happens():
    for _ in range(3):
        try:
            search_without_end()
        except Exception:  # noqa: BLE001  as a reader that takes every error for its file's
            continue


@pytest.mark.parametrize("work", [search_without_end, lambda: [None for _ in iter(int, 1)]])
def test_work_that_takes_the_processor_is_ended(work):
    with pytest.raises(ProcessorTimeExceeded, match="more than 0 s of the processor at once"):
        ProcessorBudget(0.05)(work)
    assert signal.getsignal(signal.SIGPROF) == HANDLER
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_work_that_goes_on_all_the_same_is_ended_again():
    assert ProcessorBudget(0.05)(spin_whatever_happens) is None


def test_results_and_errors_pass():
    budget = ProcessorBudget(1.0)
    assert budget(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        budget(lambda: 1 / 0)


def test_in_another_thread_nothing_is_limited():
    results = []
    thread = threading.Thread(target=lambda: results.append(ProcessorBudget(0.0)(lambda: 7)))
    thread.start()
    thread.join()
    assert results == [7]


def test_other_threads_do_not_use_it_up():
    stop = threading.Event()
    spinning = threading.Thread(target=lambda: [stop.is_set() for _ in iter(stop.is_set, True)])
    spinning.start()
    started = signal.getitimer(signal.ITIMER_PROF)
    assert started == (0.0, 0.0)
    assert ProcessorBudget(0.5)(lambda: stop.wait(0.7)) is False
    stop.set()
    spinning.join()
