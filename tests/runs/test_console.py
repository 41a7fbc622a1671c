"""What is read out of printed lines: the errors that end a training, and that one went on after all."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.catalogue import signatures
from sentinel.detectors.api import Severity
from sentinel.runs.console import ConsoleState, _candidate_lines
from sentinel.sources.base import Line
from sentinel.sources.console.passages import Passages

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 40, in <module>
    loss = step(batch)
           ^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1789, in _call_impl
    return forward_call(*args, **kwargs)
"""
ERROR = "RuntimeError: shapes cannot be multiplied"


def lines(text):
    return [Line(math.nan, line) for line in text.split("\n")[:-1]]


def said(text, console=None):
    """Line, text, place and entries of each error; None as the text where the run went on."""
    whole = text if text.endswith("\n") or not text else f"{text}\n"
    news = (console or ConsoleState()).scan_text("train.log", whole, signatures())
    return [(n.line, n.text if n.severity else None, n.location, n.catalogue) for n in news]


def test_an_exception_is_told_by_its_last_line_and_the_place_in_ones_own_code():
    assert said(f"begun\n{TRACEBACK}{ERROR}\n") == [(8, ERROR, "train.py:40 in <module>", ())]


BAR = "\r 55%|█████▌    | 332/600 [00:34<00:19, {}]"


@pytest.mark.parametrize(
    "bar",
    [
        BAR.format("14.07it/s"),
        BAR.format("2.5s/it, loss=2.31, v_num=0"),
        BAR.format("?batch/s"),
        "\r332it [00:34,  9.41it/s] ",
        "  14.07it/s]",  # what is left where the numbers of the bar are points of the log
    ],
)
def test_a_traceback_follows_on_the_line_of_a_progress_bar(bar):
    """The source's own text of the error is no error."""
    raised = '  File "train.py", line 52, in step\n    raise MemoryError("CUDA out of memory. Tried")\n'
    results = said(f"begun\n{bar}Traceback (most recent call last):\n{raised}{ERROR}\n")
    assert results == [(5, ERROR, "train.py:52 in step", ())]


POWERSHELL = """\
python : Traceback (most recent call last):
At line:1 char:1
+ python train.py > train.log 2>&1
+ ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    + CategoryInfo          : NotSpecified: (Traceback (most recent call last)::String) [], RemoteExcep
   tion
    + FullyQualifiedErrorId : NativeCommandError

  File "C:\\Users\\ann\\a_long_name\\another_one\\train.py", line 42, in <module>
    main()
  File "C:\\Users\\ann\\a_long_name\\another_one\\my_model.p
y", line 17, in forward
    return self.head(x, a_long_argument,
another_one)
ValueError: the input has 3 channels, and the layer was made for
4 of them
"""


def test_a_traceback_that_powershell_wraps_is_put_together():
    place = "C:\\Users\\ann\\a_long_name\\another_one\\my_model.py:17 in forward"
    text = "ValueError: the input has 3 channels, and the layer was made for"
    assert said(f"begun\n{POWERSHELL}") == [(16, text, place, ())]
    of_a_path = POWERSHELL.replace("python :", ".\\.venv\\Scripts\\python.exe :", 1)
    assert said(f"begun\n{of_a_path}") == [(16, text, place, ())]


def test_the_place_of_an_error_is_none_in_the_library_of_windows():
    frames = ["C:\\me\\train.py", "C:\\Program Files\\Python313\\Lib\\encodings\\cp1252.py"]
    lines = [f'  File "{file}", line 4, in encode\n    return table[0]\n' for file in frames]
    printed = "Traceback (most recent call last):\n" + "".join(lines) + "UnicodeEncodeError: no character\n"
    assert said(printed) == [(6, "UnicodeEncodeError: no character", "C:\\me\\train.py:4 in encode", ())]


NOTEBOOK = """\
---------------------------------------------------------------------------
AttributeError                            Traceback (most recent call last)
Cell In[8], line 1
----> 1 main()

Cell In[7], line 47, in main()
     28 # Set the arguments
     47 trainer = Trainer(
     48     model=model,
     49 )

File ~/env/lib/python3.11/site-packages/peft/model.py:115, in LoraModel.__init__(self, model)
    114 def __init__(self, model):
--> 115     self.dtype = model.compute_dtype

AttributeError: 'Linear' object has no attribute 'compute_dtype'
"""


def test_a_traceback_of_a_notebook_has_the_place_in_its_cells():
    text = "AttributeError: 'Linear' object has no attribute 'compute_dtype'"
    assert said(f"begun\n{NOTEBOOK}") == [(17, text, "Cell In[7]:47 in main", ())]


RICH = """\
╭─────────────────── Traceback (most recent call last) ────────────────────╮
│ /home/ann/train.py:12 in main                                            │
│                                                                          │
│    11 │   model = Net()                                                  │
│ ❱  12 │   model.fit(data)                                                │
│                                                                          │
│ /home/ann/env/lib/python3.11/site-packages/net/model.py:84 in fit        │
│                                                                          │
│ ❱  84 │   │   raise ValueError("no rows")                                │
╰──────────────────────────────────────────────────────────────────────────╯
ValueError: no rows
"""


@pytest.mark.parametrize("edges", ["╭─╮│╰╯", "┌─┐│└┘", "+-+|++"])
def test_a_traceback_in_the_box_of_rich_has_its_place(edges):
    boxed = RICH.translate(str.maketrans("╭─╮│╰╯", edges))
    assert said(f"begun\n{boxed}") == [(12, "ValueError: no rows", "/home/ann/train.py:12 in main", ())]


def test_what_powershell_says_of_a_warning_is_no_error():
    warning = POWERSHELL.replace("Traceback (most recent call last):", "UserWarning: no GPU", 1)
    assert said(warning.partition('  File "')[0]) == []
    survived = POWERSHELL.partition("ValueError")[0] + "epoch 1 loss 0.5\n" * 60
    assert said(survived) == []


def test_an_exception_outside_ones_own_code_has_its_last_place():
    text = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 8, in run\nE: x\n'
    assert said(text) == [(3, "E: x", "<frozen runpy>:8 in run", ())]


def test_ray_names_the_exception_of_a_task_in_parentheses():
    error = "ray.exceptions.RayTaskError(NotImplementedError): ray::main_task() (pid=7)"
    assert [text for _, text, _, _ in said(TRACEBACK + error)] == [error]


@pytest.mark.parametrize(
    ("line", "entries"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", ("A-err-oom",)),
        ("slurmstepd: error: Killed", ()),
        ("Killed", ("A-err-exit9", "DP9")),
        ("exitcode: -9 (pid: 5)", ("A-err-exit9", "DP9")),
        ("[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: ...",
         ("A-err-hang", "A-err-nccl", "DP3")),
        ("RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.", ("GE-nan",)),
        ("The total norm of order 2.0 for gradients from `params` is non-finite, so it", ("GE", "GE-nan")),
        ("epoch 3 loss: nan", ("GE-nan",)),
        ("{'loss': 'nan', 'epoch': 1}", ("GE-nan",)),
        ("loss: 0.25, grad_norm: inf", ()),
        ("WARNING: CUDA out of memory, trying a batch of 8", ()),
    ],
)  # fmt: skip
def test_signatures_name_their_entries(line, entries):
    results = said(line)
    assert results == ([(1, line, "", entries)] if entries else [])


def test_an_exception_bears_the_signatures_of_its_line():
    error = "torch.cuda.OutOfMemoryError: CUDA out of memory."
    ((_, text, place, entries),) = said(TRACEBACK + error)
    assert (text, entries) == (error, ("A-err-oom",))
    assert place.startswith("train.py")


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 10:00:00 ERROR could not save, trying again\n" + TRACEBACK + ERROR,
        "[W 2026-02-05 15:07:26,546] Trial 1 failed\n" + TRACEBACK + ERROR,
        "Trial 1 failed because of the following error: ValueError\n" + TRACEBACK + ERROR,
        "Exception ignored in: <function f>\n" + TRACEBACK + ERROR,
        TRACEBACK,
        "  Traceback (most recent call last):\n  E: quoted\n",
    ],
)
def test_what_ends_nothing_is_no_error(text):
    assert said(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: [/src/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:18063: "
        "Connection reset by peer. This is typically caused by a remote worker hanging",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited",
    ],
)
def test_that_another_rank_is_gone_only_informs(text):
    """Its own death or error says more."""
    (news,) = ConsoleState().scan_text("train.log", f"{TRACEBACK}{text}\n", signatures())
    assert news.severity is Severity.INFO
    assert news.location


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 10:00:00 - ERROR - Training failed with error: boom\n" + TRACEBACK + ERROR,
        "ERROR:root:Error during training: boom\n" + TRACEBACK + ERROR,
        "ERROR - Error during finetuning: boom\nERROR - " + TRACEBACK + ERROR,
        "CRITICAL Unhandled exception\n" + TRACEBACK + ERROR,
        "[2026-01-01 10:00:00,527][src.utils.utils][ERROR] - \n" + TRACEBACK + ERROR,
        "ERROR:__main__:\n" + TRACEBACK + ERROR,
        "2026-01-01 10:00:00 | ERROR | Phase two failed\n2026-01-01 10:00:00 | ERROR | " + TRACEBACK + ERROR,
    ],
)
def test_an_error_of_which_a_logger_says_that_it_ended_the_training_or_nothing_is_told(text):
    assert len(said(text)) == 1


def test_a_traceback_that_a_logger_printed_of_something_else_is_none():
    heading = "2026-01-01 10:00:00 | ERROR | "
    assert said(f"{heading}Could not upload\n{heading}{TRACEBACK}{ERROR}") == []


def test_an_interrupt_is_no_error_but_the_end():
    (news,) = ConsoleState().scan("train.log", lines(TRACEBACK + "KeyboardInterrupt\n"), signatures())
    assert (news.severity.name, news.preempted) == ("INFO", True)


def test_an_exception_that_led_to_another_is_told_first():
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    results = said(f"{TRACEBACK}KeyError: 'x'\n{between}{TRACEBACK}ValueError: y\n")
    assert [text for _, text, _, _ in results] == ["KeyError: 'x'", "ValueError: y"]


def test_tracebacks_of_several_ranks_are_put_together_each_for_itself():
    mixed = [f"[rank{rank}]: {line}" for line in TRACEBACK.splitlines() for rank in (0, 1)]
    results = said("\n".join([*mixed, "[rank0]: ValueError: a", "[rank1]: ValueError: b"]))
    assert [text for _, text, _, _ in results] == ["ValueError: a", "ValueError: b"]


def test_a_run_that_goes_on_printing_is_told_once():
    results = said(TRACEBACK + ERROR + "\n" + "step\n" * 200)
    assert [text for _, text, _, _ in results] == [ERROR, None]


def test_a_later_step_in_the_same_log_says_that_the_run_went_on():
    printed = [Line(math.nan, "Killed", 40), Line(math.nan, "resuming", 40), Line(math.nan, "saved", 41)]
    results = ConsoleState().scan("", printed, signatures())
    assert [(news.line, news.severity) for news in results] == [(1, Severity.CRITICAL), (3, Severity.CLEAN)]


@pytest.mark.parametrize("cut", [2, 3, 4])
def test_a_row_of_metrics_behind_an_error_says_that_the_run_went_on(cut):
    printed = Passages()
    printed.row(40)
    printed.add(["Killed"], 40)
    printed.row(50)
    console = ConsoleState()
    results = [*console.scan("", first_of(printed, cut), signatures())]
    if cut < len(printed):
        rest = Passages()
        rest.row(50)
        results += console.scan("", rest, signatures())
    assert [(news.line, news.step, news.severity) for news in results] == [
        (1, 40, Severity.CRITICAL),
        (1, 50, Severity.CLEAN),
    ]


def first_of(printed, count):
    first = Passages()
    for text, step in [*zip(printed.texts, printed.steps, strict=True)][:count]:
        first.add([text], step)
    return first


def test_an_error_before_the_first_row_of_a_log_is_at_its_start():
    printed = Passages()
    printed.add(["Killed"], None)
    printed.row(100)
    results = ConsoleState().scan("", printed, signatures())
    assert [(news.step, news.severity) for news in results] == [(0, Severity.CRITICAL), (100, Severity.CLEAN)]


def test_what_a_progress_bar_overwrote_is_gone():
    assert said("Killed\r100%|##|") == []
    assert [text for _, text, _, _ in said("10%|#|\rKilled\r")] == ["Killed"]


def test_lines_and_their_times_and_steps_are_kept():
    (news,) = ConsoleState().scan("", [Line(1.7e9, "Killed", 40)], signatures())
    assert (news.line, news.step, news.time, news.severity) == (1, 40, 1.7e9, Severity.CRITICAL)


PIECES = [
    TRACEBACK + ERROR + "\n",
    TRACEBACK,
    "Killed\n",
    "step\n" * 30,
    "\n",
    "ERROR: retry\n",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n",
    "[rank1]: Traceback (most recent call last):\n",
    "python : Traceback (most recent call last):\n",
    "[rank1]: E: x\n",
    '  File "model.py", line 7, in forward\n    1 / 0\n \n',
    "  12: E: x\n",
    '  File "model.py", line 8\n    ERROR: retry\n' * 260,
    "*** JOB 1 ON n CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
]


@pytest.mark.long  # many examples
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=8),
    cuts=st.lists(st.integers(0, 300), max_size=6),
    reload=st.booleans(),
)
def test_any_cut_says_the_same(pieces, cuts, reload):
    """Line by line or in blocks, of which those without a sign of an error are passed over."""
    text = "".join(pieces)
    printed = lines(text)
    edges = [0, *sorted(min(cut, len(printed)) for cut in cuts), len(printed)]
    console = ConsoleState()
    results = []
    whole = ConsoleState()
    for begin, end in pairwise(edges):
        results += said("".join(f"{line.text}\n" for line in printed[begin:end]), console)
        if reload:
            console = msgspec.convert(msgspec.to_builtins(console), ConsoleState)
    assert results == said(text, whole)
    assert console.remarks == whole.remarks
    assert console.last_lines == whole.last_lines
    at_once = ConsoleState().scan("train.log", printed, signatures())
    assert results == [(n.line, n.text if n.severity else None, n.location, n.catalogue) for n in at_once]
    slow = ConsoleState()
    assert results == [news for line in printed for news in said(f"{line.text}\n", slow)]
    assert not printed or slow.origins["train.log"].tracebacks == whole.origins["train.log"].tracebacks


@pytest.mark.long
def test_hostile_lines_end_and_are_not_kept():
    hostile = [
        "loss" + " " * 10**6 + "nan",
        "a" * 10**6,
        "The total norm of order " + "1" * 10**6,
        "[" * 10**6,
        " File " + '"' * 10**6,
        *(f"[rank{i}]: Traceback (most recent call last):" for i in range(10_000)),
    ]
    console = ConsoleState()
    for name in range(1000):
        list(console.scan(str(name), [Line(math.nan, line[:50_000]) for line in hostile[:5]], signatures()))
    list(console.scan("0", [Line(math.nan, line) for line in hostile], signatures()))
    assert len(msgspec.json.encode(console)) < 50_000


WARNING = "2026-01-01 10:00:00 WARNING could not save, trying again\n"


def of_rank(prefix):
    return "".join(f"{prefix}{line}\n" for line in f"{TRACEBACK}{ERROR}".split("\n"))


@pytest.mark.parametrize("prefix", ["[rank1]: ", "[default1]:[rank1]: "])
@pytest.mark.parametrize("bar", ["", "[default0]:" + BAR.format("9.15it/s")[1:], BAR.format("9.15it/s")])
def test_a_traceback_of_a_rank_follows_on_the_bar_of_another(prefix, bar):
    assert [text for _, text, *_ in said(f"begun\n{bar}{of_rank(prefix)}")] == [ERROR]


def test_a_warning_of_opencv_announces_no_exception():
    warning = "[ WARN:0@283.754] global loadsave.cpp:278 findDecoder imread_('7.jpg'): can't open/read file\n"
    assert [text for _, text, _, _ in said(warning + TRACEBACK + "ValueError: x")] == ["ValueError: x"]
    assert said(warning.replace("WARN:0@283.754", "WARN") + TRACEBACK + "ValueError: x") == []


def test_a_warning_of_glog_announces_no_exception():
    warning = "W1128 00:41:06.893000 20437 torch/distributed/run.py:982] Setting OMP_NUM_THREADS to be 1\n"
    assert [text for _, text, _, _ in said(f"{warning}\n{TRACEBACK}ValueError: x")] == ["ValueError: x"]


def test_a_warning_before_lines_with_metrics_announces_no_exception():
    console = ConsoleState()
    before = lines(WARNING)
    after = [Line(math.nan, line.text, 30) for line in lines(of_rank("[rank1]: "))]
    news = [*console.scan("", before, signatures()), *console.scan("", after, signatures())]
    assert [printed.text for printed in news] == [ERROR]
    assert said(f"{WARNING}{of_rank('')}") == [], "with nothing between"
    assert [text for _, text, *_ in said(f"{WARNING}{of_rank('[rank1]: ')}")] == [ERROR], "by another process"


TEXTS = st.lists(st.text(st.sampled_from(["a", "b", " ", "é", "\ud800", "\0"]), max_size=6), max_size=12)


@pytest.mark.long
@given(TEXTS)
def test_candidate_lines_are_what_a_look_at_each_line_finds(lines):
    expected = set()
    for place, line in enumerate([*lines, "ab"]):
        if "ab" in line or "bé" in line:
            full = [at for at in range(place) if lines[at].strip()]
            expected |= {place, *full[-1:]}
    assert _candidate_lines(lines, ["ab", "bé"]) == sorted(expected - {len(lines)})
