"""The tools of `sentinel mcp`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from sentinel.common.errors import SentinelError
from sentinel.mcp_server.known import MAX_ROWS, Answers, JsonRows
from sentinel.mcp_server.marking import INSTRUCTIONS, marked
from sentinel.mcp_server.plot import png
from sentinel.report.pages import index, page

if TYPE_CHECKING:
    from sentinel.config.rules import WrittenRule

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def server(answers: Answers, user_rules: "Callable[[], Sequence[WrittenRule]]") -> MCPServer:
    """Return a server whose tools answer about the known runs. ``user_rules`` are those of `explain`, too."""
    app = MCPServer("sentinel", instructions=INSTRUCTIONS, version=version("training-sentinel"))

    @app.tool(annotations=_READS, structured_output=False)
    def list_runs(run: str = "*") -> str:
        """List training runs, the worst first: state with its evidence, last step, what could not be judged.

        `run` is a glob for the name or the end of the path of runs.
        """
        with _refusing():
            return _rows("runs", answers.runs(run))

    @app.tool(annotations=_READS, structured_output=False)
    def list_incidents(run: str = "*") -> str:
        """List incidents: what went wrong, since which step, the evidence, and the likeliest causes.

        `run` is a glob for runs. `causes` holds ids of the catalogue, which `explain` knows. An incident with
        `inhibited_by` is an effect of the other one.
        """
        with _refusing():
            return _rows("incidents", answers.incidents(run))

    @app.tool(annotations=_READS, structured_output=False)
    def explain(name: str = "") -> str:
        """Show the page of a detector (kl-blowup) or of a catalogue entry (R2): what to try, how to tell.

        Without a name, list all of them.
        """
        with _refusing():
            return page(name, user_rules) if name else index(user_rules())

    @app.tool(annotations=_READS, structured_output=False)
    def plot(run: str, signal: str) -> Image:
        """Draw a signal (loss, kl, grad_norm) or a tag of one run over its steps, with its incidents."""
        with _refusing():
            return Image(data=png(answers.replayed(run), signal), format="png")

    @app.tool(annotations=_READS, structured_output=False)
    def siblings(run: str) -> str:
        """Hold one run against the finished healthy runs of its training program, in all signals.

        `left_band` has the signals that became worse than those of healthy siblings ever are, with the level,
        the `usual` one of the siblings and the `limit` of theirs. `not_judged` says why nothing could be
        compared, such as "no siblings": it takes three. All runs are read, which takes longer than the other
        tools do.
        """
        with _refusing():
            return marked(answers.siblings(run))

    @app.tool(annotations=_CHANGES, structured_output=False)
    def silence(run: str, reason: str, duration: str = "2h") -> str:
        """Stop notifications about runs that fit a glob, for 30m, 2h or a day at most. Ask the user first."""
        with _refusing():
            new = answers.silence(run, duration, reason)
        return f"silence {', '.join(new)}; to end one: sentinel silence remove {new[0]}"

    @app.tool(annotations=_CHANGES, structured_output=False)
    def acknowledge(incident: str) -> str:
        """Note that the user knows of an incident, so that for a day only its end is sent. Ask first."""
        with _refusing():
            new = answers.acknowledge(incident)
        return f"acknowledged; to take it back: sentinel silence remove {new}"

    return app


def _rows(name: str, rows: JsonRows) -> str:
    return marked({name: rows[:MAX_ROWS], "left_off": max(len(rows) - MAX_ROWS, 0)})


@contextmanager
def _refusing() -> Iterator[None]:
    """Tell the agent about a mistake of its own. The message may name runs and their paths."""
    try:
        yield
    except SentinelError as error:
        raise ToolError(marked({"problem": str(error)})) from None
