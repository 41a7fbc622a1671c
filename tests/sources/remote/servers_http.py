"""Servers on loopback for what is read over HTTP."""

import io
import json
import logging
import re
import socket
import threading
from functools import partial
from hashlib import sha1
from http.server import ThreadingHTTPServer
from pathlib import Path, PurePath
from types import SimpleNamespace
from urllib.parse import quote, unquote

import flask
import fsspec
import httpx
from gcp_storage_emulator.handlers.buckets import create_bucket
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.sources.remote.servers import SECRET, Server


class HttpServer(Server):
    """``make`` gives a server that listens to a port."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._connections: list[socket.socket] = []
        self._listener = self.make(0)
        self.port = self._listener.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._serve()

    def start(self):
        self._listener = self.make(self.port)
        self._serve()

    def _serve(self):
        accept = self._listener.get_request

        def noted():
            accepted = accept()
            self._connections.append(accepted[0])
            return accepted

        self._listener.get_request = noted
        threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True).start()

    def note(self, path: str, asked: str | None) -> None:
        """What the Range header of a request asked for."""
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", asked or ""):
            self.fetched.append((path.partition("runs/")[2], int(found[1]), int(found[2]) + 1))

    def stop(self):
        self._listener.shutdown()
        self._listener.server_close()
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it was over
        self._connections.clear()


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


class S3Server(HttpServer):
    """Moto."""

    address = "s3://bucket/runs"
    elsewhere = "s3://nowhere/runs"

    def __init__(self, directory):
        super().__init__(directory)
        self._ask("POST", "moto-api/reset")
        self._ask("PUT", "bucket")

    def make(self, port):
        self._moto = DomainDispatcherApplication(create_backend_app)
        return make_server("127.0.0.1", port, self._answer, threaded=True, request_handler=Quiet)

    @property
    def environment(self):
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
        }

    def _answer(self, environ, respond):
        self.note(environ["PATH_INFO"].encode("latin-1").decode(), environ.get("HTTP_RANGE"))
        if self.welcome or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self._moto(environ, respond)
        respond("403 Forbidden", [("Content-Type", "application/xml")])
        body = f"<Error><Code>InvalidAccessKeyId</Code><Message>{SECRET}</Message></Error>"
        return [body.encode()]

    def write(self, name, data):
        self._ask("PUT", f"bucket/runs%2F{quote(name, safe='')}", data)

    def remove(self, name):
        self._ask("DELETE", f"bucket/runs%2F{quote(name, safe='')}")

    def _ask(self, method, path, data=b""):
        signed = {"Authorization": "AWS training:signature"}
        httpx.request(method, f"{self.url}/{path}", content=data, headers=signed).raise_for_status()


class GsServer(HttpServer):
    """The emulator of PyPI."""

    address = "gs://bucket/runs"
    elsewhere = "gs://nowhere/runs"

    def __init__(self, directory):
        logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
        self._storage = Storage(use_memory_fs=True)
        create_bucket("bucket", self._storage)
        super().__init__(directory)

    def make(self, port):
        return ThreadingHTTPServer(("127.0.0.1", port), partial(_GsHandler, self, self._storage))

    @property
    def environment(self):
        return {
            "STORAGE_EMULATOR_HOST": self.url,
            "FSSPEC_GS_TOKEN": "anon",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # asks over gRPC, which the emulator does not speak
        }

    def lead_here(self, patch):
        super().lead_here(patch)
        patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})

        async def sleep(seconds): ...

        patch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=sleep))  # 31 seconds before it gives up

    def write(self, name, data):
        upload = f"{self.url}/upload/storage/v1/b/bucket/o"
        parts = {"about": (None, json.dumps({"name": f"runs/{name}"})), "content": (None, data)}
        httpx.post(upload, params={"uploadType": "multipart"}, files=parts).raise_for_status()

    def remove(self, name):
        path = quote(f"runs/{name}", safe="")
        httpx.delete(f"{self.url}/storage/v1/b/bucket/o/{path}").raise_for_status()


class _GsHandler(RequestHandler):
    def __init__(self, place, storage, *arguments):
        self._place = place
        super().__init__(storage, *arguments)

    def do_GET(self):  # noqa: N802
        self._place.note(unquote(self.path.partition("?")[0]), self.headers["Range"])
        if self._place.welcome:
            super().do_GET()
        else:
            self._refuse()

    def _refuse(self):
        body = json.dumps({"error": {"code": 401, "message": f"Anonymous caller {SECRET}"}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class HfServer(HttpServer):
    """As much of the Hub as huggingface_hub 2.4 asks for a dataset in hf_file_system.py and hf_api.py."""

    address = "hf://datasets/me/logs/runs"
    elsewhere = "hf://datasets/me/nothing/runs"
    tells_times = False

    def __init__(self, directory):
        self._files: dict[str, bytes] = {}
        self._app = flask.Flask("hub")
        self._app.before_request(self._check)
        self._app.get("/api/datasets/me/<name>")(self._info)
        self._app.get("/api/datasets/me/logs/tree/main")(self._tree)
        self._app.get("/api/datasets/me/logs/tree/main/<path:path>")(self._tree)
        self._app.get("/datasets/me/logs/resolve/main/<path:path>")(self._resolve)
        super().__init__(directory)

    def make(self, port):
        return make_server("127.0.0.1", port, self._app, threaded=True, request_handler=Quiet)

    @property
    def environment(self):
        return {"HF_ENDPOINT": self.url, "HF_TOKEN": f"hf_{SECRET}"}

    def lead_here(self, patch):
        super().lead_here(patch)
        patch.setitem(fsspec.config.conf, "hf", {"endpoint": self.url})

    def _check(self):
        self.note(flask.request.path, flask.request.headers.get("Range"))
        sent = flask.request.headers.get("Authorization")
        if not self.welcome or sent != f"Bearer hf_{SECRET}":
            return _refusal(401, **{"X-Error-Message": "Invalid credentials in Authorization header"})
        return None

    def _info(self, name):
        return {"id": f"me/{name}"} if name == "logs" else _refusal(404, **{"X-Error-Code": "RepoNotFound"})

    def _tree(self, path=None):
        below = f"{path}/" if path else ""
        files = {name: data for name, data in self._files.items() if name.startswith(below)}
        if below and not files:
            return _refusal(404, **{"X-Error-Code": "EntryNotFound"})
        folders = {str(parent): b"" for name in files for parent in PurePath(name).parents}
        entries = [("file", *file) for file in files.items()] + [("directory", *it) for it in folders.items()]
        recursive = flask.request.args["recursive"] == "true"
        return [
            {"type": kind, "path": name, "size": len(data), "oid": sha1(data).hexdigest()}
            for kind, name, data in entries
            if name.startswith(below) and name != "." and (recursive or "/" not in name.removeprefix(below))
        ]

    def _resolve(self, path):
        if path not in self._files:
            return _refusal(404, **{"X-Error-Code": "EntryNotFound"})
        return flask.send_file(io.BytesIO(self._files[path]), "application/octet-stream", conditional=True)

    def write(self, name, data):
        self._files[f"runs/{name}"] = data

    def remove(self, name):
        del self._files[f"runs/{name}"]


def _refusal(status, **headers):
    return {"error": SECRET}, status, headers
