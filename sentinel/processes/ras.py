"""What NCCL's RAS threads say of a training: which ranks do not answer, failed, or launched less than others.

Every process with NCCL 2.24 or newer may answer on a port of this machine, since 2.28.7 in JSON. The first
one to take the port answers for its own job, which may be another one, so an answer counts only if it names
the ranks that are asked about. What cannot be read, such as the JSON of 2.28.9, is no answer. Only the status
is asked for. Source: NCCL's user guide, "RAS".
"""

import socket
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress

import msgspec

from sentinel.common.text import clean_text

_RAS_ADDRESS = ("127.0.0.1", 28028)  # host and port
_RAS_REQUEST = b"CLIENT PROTOCOL 2\nSET FORMAT json\nTIMEOUT 2\nSTATUS\n"
_RAS_REPLY_LINES = 3  # lines before the status
_MAX_RAS_SECONDS = 4.0  # for a request
_MAX_RAS_BYTES = 1 << 22  # of an answer
_MAX_RANKS = 4  # in one text
_GOOD = (0, 7)  # ncclSuccess and ncclInProgress
_ERRORS = {1: "CUDA error", 2: "system error", 3: "internal error", 5: "invalid usage", 6: "remote error"}


class _NcclPeerStatus(msgspec.Struct):
    """The errors of a rank that answered, and why one did not answer."""

    init_state: int = 0
    async_error: int = 0
    unresponsive: bool = False
    considered_dead: bool = False


class _NcclPeer(msgspec.Struct):
    rank: int
    host: str
    pid: int
    status: _NcclPeerStatus
    collective_counts: dict[str, int] = {}


class _Communicator(msgspec.Struct):
    size: int
    ranks: list[_NcclPeer]
    missing_ranks: list[_NcclPeer] = []


class _RasAnswer(msgspec.Struct):
    communicators: list[_Communicator]


_decoder = msgspec.json.Decoder(_RasAnswer)


def ras_problems(pids: Collection[int]) -> str:
    """Return what is wrong with the ranks of the job that some processes of this machine belong to, in words;
    empty if nothing is, or nobody answers for these processes.
    """
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        answer = _decoder.decode(_ras_status())
        if _is_about(answer, {*pids}):
            problems: dict[tuple[str, int], str] = {}  # one a process, of its largest communicator
            for communicator in sorted(answer.communicators, key=lambda communicator: -communicator.size):
                for peer, words in (*_missing(communicator), *_failed(communicator), *_lagging(communicator)):
                    who = f"process {peer.pid} on {clean_text(peer.host, 60)}"
                    problem = f"rank {peer.rank} of {communicator.size} ({who}) {words}"
                    problems.setdefault((peer.host, peer.pid), problem)
            more = f" and {len(problems) - _MAX_RANKS} more" if len(problems) > _MAX_RANKS else ""
            return f"NCCL: {'; '.join([*problems.values()][:_MAX_RANKS])}{more}" if problems else ""
    return ""


def _ras_status() -> bytes:
    """Return the status as NCCL sent it, without its first lines. Raises OSError if nobody answers."""
    with socket.create_connection(_RAS_ADDRESS, _MAX_RAS_SECONDS) as peer, peer.makefile("rb") as stream:
        deadline = threading.Timer(_MAX_RAS_SECONDS, _hang_up, [peer])
        deadline.start()
        try:
            peer.sendall(_RAS_REQUEST)
            return stream.read(_MAX_RAS_BYTES).split(b"\n", _RAS_REPLY_LINES)[-1]
        finally:
            deadline.cancel()


def _hang_up(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)


def _is_about(answer: _RasAnswer, pids: set[int]) -> bool:
    """Return whether one host of an answer has all of these processes."""
    by_host: dict[str, set[int]] = {}
    for communicator in answer.communicators:
        for peer in (*communicator.ranks, *communicator.missing_ranks):
            by_host.setdefault(peer.host, set()).add(peer.pid)
    return bool(pids) and any(pids <= theirs for theirs in by_host.values())


def _missing(communicator: _Communicator) -> Iterator[tuple[_NcclPeer, str]]:
    for peer in communicator.missing_ranks:
        if peer.status.considered_dead or peer.status.unresponsive:
            yield peer, "is considered dead" if peer.status.considered_dead else "does not answer"


def _failed(communicator: _Communicator) -> Iterator[tuple[_NcclPeer, str]]:
    for peer in communicator.ranks:
        codes = (code for code in (peer.status.init_state, peer.status.async_error) if code not in _GOOD)
        if code := next(codes, 0):
            yield peer, f"has failed: {_ERRORS.get(code, f'error {code}')}"


def _lagging(communicator: _Communicator) -> Iterator[tuple[_NcclPeer, str]]:
    """Yield the ranks that launched fewer collectives of one kind than most of them."""
    for kind in {kind: None for peer in communicator.ranks for kind in peer.collective_counts}:
        counts = Counter(peer.collective_counts.get(kind, 0) for peer in communicator.ranks)
        usual = max(counts, key=lambda count: (counts[count], count))
        for peer in communicator.ranks:
            count = peer.collective_counts.get(kind, 0)
            if count < usual:
                yield peer, f"launched {count:,} {clean_text(kind, 40)}, most others {usual:,}"
