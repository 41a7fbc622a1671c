"""The tools of `sentinel mcp`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from sentinel.common.errors import SentinelError
from sentinel.mcp_server.known import MAX_ROWS, Answers, Wanted
from sentinel.mcp_server.marking import INSTRUCTIONS, marked
from sentinel.mcp_server.plot import png
from sentinel.mcp_server.wait import named, waited
from sentinel.report.pages import index, page
from sentinel.waiting.waiting import waited_body

if TYPE_CHECKING:
    from sentinel.config.rules import WrittenRule

_MAX_CURVE_POINTS = 500  # of a curve in an answer
_TOOL_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_TOOL_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


class Tools:
    """What an agent may call. ``user_rules`` are those of `explain`, too."""

    def __init__(self, answers: Answers, user_rules: "Callable[[], Sequence[WrittenRule]]") -> None:
        self._answers = answers
        self._user_rules = user_rules

    def list_runs(self, run: str = "*") -> str:
        """List training runs, the worst first: state with its evidence, last step, how many incidents.

        `run` is a glob for the name or the end of the path of runs.
        """
        with _refusing():
            return marked(self._answers.runs(run))

    def list_incidents(
        self,
        run: str = "*",
        since: str = "",
        limit: int = MAX_ROWS,
        min_severity: str = "info",
        open_only: bool = False,
    ) -> str:
        """List incidents: what went wrong, since which step, the evidence, and the likeliest causes.

        `run` is a glob for runs, `since` a time (ISO 8601) or how long ago (2h), and `min_severity` info,
        warning or critical. `causes` holds ids of the catalogue, which `explain` knows; one without a score
        has nothing in the run that speaks for it. An incident with `inhibited_by` is an effect of the other.
        """
        with _refusing():
            selection = Wanted.parse(since, min_severity, open_only=open_only, now=self._answers.now())
            return marked(self._answers.incidents(run, selection, limit))

    def diagnose(self, run: str) -> str:
        """Show what a person would read of one run: its state, what is wrong, causes, what to do."""
        with _refusing():
            return marked({"page": self._answers.diagnosis(run)})

    def points(self, run: str, signal: str, limit: int = 100) -> str:
        """Read a signal (loss, kl) or a tag of one run: steps with values, the extremes of each stretch.

        `not_finite_at` is the step of the first NaN or infinity, which the values leave out.
        """
        with _refusing():
            return marked(self._answers.points(run, signal, min(max(limit, 2), _MAX_CURVE_POINTS)))

    def settings(self, run: str) -> str:
        """Show the settings of one run, without secrets."""
        with _refusing():
            return marked(self._answers.settings(run))

    def printed(self, run: str, lines: int = 40) -> str:
        """Show the last lines that one run printed, by file."""
        with _refusing():
            return marked(self._answers.printed(run, lines))

    def compare(self, run: str, other: str) -> str:
        """Hold two runs side by side: the settings in which they differ, and the course of each signal."""
        with _refusing():
            return marked(self._answers.compared(run, other))

    async def wait(
        self,
        context: Context,
        run: str = "*",
        until: str = "critical",
        timeout: str = "10m",
        ignore: Sequence[str] = (),
    ) -> str:
        """Block until a run needs somebody, or all are over, as `sentinel wait` does; tells its progress.

        `until` is critical, warning or end, and `timeout` a duration such as 30m. The `outcome` is ended
        (well), incident, timeout or unreadable. An incident comes with its causes and `next_steps`. To go on
        waiting after one, name the beginning of its id in `ignore`.
        """
        with _refusing():
            wait_result = await waited(self._answers, context.report_progress, run, until, timeout, ignore)
            body = waited_body(wait_result, self._answers.now())
            return marked(await anyio.to_thread.run_sync(named, body, self._answers, run))

    def explain(self, name: str = "") -> str:
        """Show the page of a detector (kl-blowup) or of a catalogue entry (R2): what to try, how to tell.

        Without a name, list all of them.
        """
        with _refusing():
            return page(name, self._user_rules) if name else index(self._user_rules())

    def plot(self, run: str, signal: str) -> Image:
        """Draw a signal (loss, kl, grad_norm) or a tag of one run over its steps, with its incidents."""
        with _refusing():
            return Image(data=png(self._answers.replayed(run), signal), format="png")

    def siblings(self, run: str) -> str:
        """Hold one run against the finished healthy runs of its training program, in all signals.

        `left_band` has the signals that became worse than those of healthy siblings ever are, with the level,
        the `usual` one of the siblings and the `limit` of theirs. `not_judged` says why nothing could be
        compared, such as "no siblings": it takes three. All runs are read, which takes longer than the other
        tools do.
        """
        with _refusing():
            return marked(self._answers.siblings(run))

    def silence(self, run: str, reason: str, duration: str = "2h") -> str:
        """Stop notifications about runs that fit a glob, for 30m, 2h or a day at most. Ask the user first."""
        with _refusing():
            silence_ids = self._answers.silence(run, duration, reason)
        return f"silence {', '.join(silence_ids)}; to end one: sentinel silence remove {silence_ids[0]}"

    def acknowledge(self, incident: str) -> str:
        """Note that the user knows of an incident, so that for a day only its end is sent. Ask first."""
        with _refusing():
            silence_id = self._answers.acknowledge(incident)
        return f"acknowledged; to take it back: sentinel silence remove {silence_id}"


def server(answers: Answers, user_rules: "Callable[[], Sequence[WrittenRule]]") -> MCPServer:
    """Return a server whose tools answer about the known runs."""
    app = MCPServer("sentinel", instructions=INSTRUCTIONS, version=version("training-sentinel"))
    tools = Tools(answers, user_rules)
    tools_by_effect: Sequence[tuple[ToolAnnotations, Sequence[Callable[..., object]]]] = (
        (
            _TOOL_READS,
            (
                tools.list_runs,
                tools.list_incidents,
                tools.diagnose,
                tools.points,
                tools.settings,
                tools.printed,
                tools.compare,
                tools.wait,
                tools.explain,
                tools.plot,
                tools.siblings,
            ),
        ),
        (_TOOL_CHANGES, (tools.silence, tools.acknowledge)),
    )
    for annotations, of_effect in tools_by_effect:
        for tool in of_effect:
            app.add_tool(tool, annotations=annotations, structured_output=False)
    return app


@contextmanager
def _refusing() -> Iterator[None]:
    """Tell the agent about a mistake of its own. The message may name runs and their paths."""
    try:
        yield
    except SentinelError as error:
        raise ToolError(marked({"problem": str(error)})) from None
