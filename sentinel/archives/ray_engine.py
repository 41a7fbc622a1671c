"""Runs the parts of an archive as tasks of Ray."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from sentinel.archives.engine import DIED, THREADS, Result, Work, limited, reason, seconds_for
from sentinel.archives.parts import Part
from sentinel.common.errors import SentinelError
from sentinel.common.installation import install

_QUEUED_PER_CORE = 2  # parts for each core that are handed out
_MAX_PART_RETRIES = 3  # of a part whose worker or machine went away
_PART_MEMORY_BYTES = 500 << 20  # that a task declares, of which it uses half
_ON_LOOPBACK = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else Ray listens at the address of the host
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Ray:
    """Tasks on a cluster at ``address``, else on one of this machine's that ends with this process."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._address = address
        self._workers = workers

    def results(self, work: Work, archive_parts: Iterable[Part]) -> Iterator[tuple[Part, Result]]:
        """Yield the result of each part; see `sentinel.archives.engine.Engine.results`."""
        with _connected(self._address, self._workers) as ray:
            task = ray.remote(num_cpus=1, memory=_PART_MEMORY_BYTES, max_retries=_MAX_PART_RETRIES)(limited)
            task = task.options(runtime_env={"env_vars": dict.fromkeys(THREADS, "1")})
            shared = ray.put(work)
            remaining = iter(archive_parts)
            cores = self._workers or int(ray.cluster_resources().get("CPU", 1))
            waiting: dict[Any, Part] = {}
            while True:
                for part in islice(remaining, _QUEUED_PER_CORE * cores - len(waiting)):
                    waiting[task.remote(shared, part, seconds_for(part))] = part
                if not waiting:
                    return
                finished, _ = ray.wait([*waiting], num_returns=1)
                for task_result in finished:
                    yield waiting.pop(task_result), _part_result(ray, task_result)


@contextmanager
def _connected(address: str | None, workers: int | None) -> Iterator[Any]:
    if not address:
        os.environ.update(_ON_LOOPBACK)  # before the import, which reads it
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise SentinelError(f"--engine ray needs Ray beside sentinel: {install('ray')}") from None
    if ray.is_initialized():  # by the one who called
        yield ray
        return
    local = {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **({} if address else local))
    except Exception as error:
        where = f"--address {address}: no answer of Ray" if address else "--engine ray: Ray does not start"
        raise SentinelError(f"{where} ({type(error).__name__})") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _part_result(ray: Any, reference: Any) -> Result:
    try:
        part_results: list[bytes] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # the work's own
        return reason(error.cause)
    except ray.exceptions.RayError:
        return DIED
    return part_results
