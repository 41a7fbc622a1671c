"""A W&B server on loopback that speaks as much GraphQL as the wandb client needs to read runs."""

import base64
import json
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sentinel.sources.location import Url

KEY = "k3y0" * 10
PROJECT = Url("wandb", ("team", "project"))


@dataclass
class StoredRun:
    state: str = "running"
    rows: list[dict[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    axes: list[dict[str, Any]] = field(default_factory=list)  # as wandb encodes define_metric

    def attributes(self, name):
        settings = {key: {"value": value, "desc": None} for key, value in self.config.items()}
        return {
            "id": base64.b64encode(f"Run:v1:{name}".encode()).decode(),
            "projectId": "7",
            "name": name,
            "displayName": f"brave-{name}",
            "state": self.state,
            "tags": [],
            "config": json.dumps({"_wandb": {"value": {"m": self.axes}}, **settings}),
            "summaryMetrics": "{}",
            "systemMetrics": "{}",
            "user": {"name": "somebody", "username": "somebody"},
            "createdAt": "2026-01-01T00:00:00Z",
            "heartbeatAt": f"2026-01-01T00:00:{len(self.rows) % 60:02}Z",
            "historyLineCount": len(self.rows),
            "historyKeys": {"lastStep": self.rows[-1]["_step"]} if self.rows else None,
        }


class Backend(ThreadingHTTPServer):
    """``failure`` is a status, or "close"; ``asked`` the operations so far, with their variables."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.key = KEY
        self.runs: dict[str, StoredRun] = {}
        self.failure: int | str | None = None
        self.headers: dict[str, str] = {}  # of a failure
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.listed = threading.Event()  # somebody asked which runs there are
        self.told = threading.Event()  # an answer held new history
        self.answers = {
            "Viewer": self._viewer,
            "Runs": self._runs,
            "Run": self._run,
            "RunHistoryKeys": self._run_history_keys,
            "RunParquetHistory": self._run_parquet_history,
            "HistoryPage": self._history_page,
        }
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def environment(self, home):
        """Variables for a client of this server, with its home in that directory and no other key."""
        places = ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DIR", "HOME")
        return {
            **dict.fromkeys(places, str(home)),
            "NETRC": str(home / "netrc"),
            "WANDB_ERROR_REPORTING": "false",
            "WANDB_BASE_URL": self.url,
            "WANDB_API_KEY": KEY,
        }

    def names(self):
        return [name for name, _ in self.asked]

    def answer(self, operation, variables):
        name = variables.get("name") or variables.get("run") or variables.get("runName")
        return self.answers[operation](self.runs.get(name), name, variables)

    def _viewer(self, *_):
        return {
            "viewer": {"id": "VQ==", "username": "me", "entity": "me", "flags": "{}", "teams": {"edges": []}}
        }

    def _runs(self, _run, _name, variables):
        if variables["project"] != "project":
            return {"project": None}
        self.listed.set()
        wanted = json.loads(variables["filters"]).get("name")
        names = [name for name in self.runs if wanted in (None, name)]
        begin = int(variables["cursor"] or 0)
        page = names[begin : begin + variables["perPage"]]
        heavy = ("config", "summaryMetrics", "systemMetrics", "historyKeys")
        nodes = [{k: v for k, v in self.runs[n].attributes(n).items() if k not in heavy} for n in page]
        end = begin + len(page)
        edges = [{"node": node, "cursor": str(begin + i + 1)} for i, node in enumerate(nodes)]
        info = {"endCursor": str(end), "hasNextPage": end < len(names)}
        runs = {"edges": edges, "pageInfo": info}
        return {"project": {"internalId": "7", "runCount": len(names), "readOnly": False, "runs": runs}}

    def _run(self, run, name, _):
        return {"project": {"run": run.attributes(name)}}

    def _run_history_keys(self, run, name, _):
        return {"project": {"run": {"historyKeys": run.attributes(name)["historyKeys"]}}}

    def _run_parquet_history(self, *_):
        return {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": []}}}}

    def _history_page(self, run, _name, variables):
        low = variables["minStep"]
        high = variables["maxStep"]
        rows = [json.dumps(row) for row in run.rows if low <= row["_step"] < high]
        assert len(rows) <= variables["pageSize"]
        if rows:
            self.told.set()
        return {"project": {"run": {"history": rows}}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = re.search(r"query\s+(\w+)", asked["query"])[1]
        self.server.asked.append((operation, asked.get("variables") or {}))
        sent = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        if self.server.failure == "close":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif self.server.failure:
            self._say(self.server.failure, {"errors": [{"message": f"no, {sent}"}]}, self.server.headers)
        elif sent != f"api:{self.server.key}":
            self._say(401, {"errors": [{"message": f"who is {sent}?"}]})
        else:
            self._say(200, {"data": self.server.answer(operation, asked.get("variables") or {})})

    def _say(self, status, body, headers=None):
        body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def history(begin, end):
    """Rows of a run that logs a loss."""
    return [
        {"_step": i, "_timestamp": 1.7e9 + i, "_runtime": i, "loss": 1 / (i + 1)} for i in range(begin, end)
    ]


def losses(begin, end):
    """What these rows are read as."""
    return [("loss", i, str(1 / (i + 1))) for i in range(begin, end)]
