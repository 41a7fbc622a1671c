"""One rank of a training that goes wrong, for `make demo`: ``ranks.py LOG SECONDS END [DESCRIPTOR]``.

Rank 0 writes the log and gathers what the others send, as the gradients of a training are gathered. It
listens on the socket DESCRIPTOR. ``END`` is ``hang``, where the last rank waits for data that never come, or
an exit status.
"""

import json
import os
import socket
import sys
import threading
import time

STEPS = 60
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def meet(descriptor):
    """Return connections to all other ranks in rank 0, and to rank 0 in the others."""
    if RANK == 0:
        listening = socket.socket(fileno=descriptor)
        return [listening.accept()[0] for _ in range(WORLD - 1)]
    return [socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))]


def read_batch():
    """Wait for data that never come."""
    threading.Event().wait()


def all_reduce(peers):
    """Wait until all ranks are here."""
    for peer in peers if RANK == 0 else ():
        peer.recv(1)
    for peer in peers:
        peer.send(b"x")
    for peer in peers if RANK else ():
        peer.recv(1)


def train(log, seconds, end, peers):
    for step in range(STEPS):
        time.sleep(seconds / STEPS)
        if end == "hang" and step == STEPS - 1 and RANK == WORLD - 1:
            read_batch()
        all_reduce(peers)
        if RANK == 0:
            log.write(json.dumps({"step": step, "time": time.time(), "loss": 0.3 + 2.0 * 0.95**step}) + "\n")
    sys.exit(int(end))


if __name__ == "__main__":
    _, place, seconds, how, *descriptors = sys.argv
    with open(place, "a", buffering=1) as log:
        train(log, float(seconds), how, meet(int(descriptors[0]) if descriptors else -1))
