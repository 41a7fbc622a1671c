"""Judges an archive with Ray on two raylets, and kills what may die: for a namespace with only loopback.

Ray listens at the address of the host, so this runs where the host has no other address.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}

import ray
from ray.cluster_utils import Cluster

from sentinel.archives.isolating import isolated
from sentinel.archives.parts import Folder, Part
from sentinel.archives.ray_engine import Ray
from sentinel.archives.record import unpacked_record
from tests.archives.conftest import archived, reported
from tests.archives.test_archive import Deadly


def listening():
    """The addresses that something listens to here, from the table of the kernel."""
    tables = (Path("/proc/net", name).read_text() for name in ("tcp", "tcp6"))
    lines = [line.split() for table in tables for line in table.splitlines()]
    return {line[1].partition(":")[0] for line in lines if line[3] == "0A"}


def started(make, **options):
    """Try again what Ray gives up after thirty seconds, which a busy machine needs."""
    for _ in range(4):
        try:
            return make(**options)
        except Exception as error:
            if "timed out" not in str(error):
                raise
    raise TimeoutError("Ray does not start")


class KillsARaylet(Ray):
    """An engine one of whose machines goes away after the first part."""

    def __init__(self, cluster, node):
        super().__init__()
        self.cluster = cluster
        self.node = node

    def results(self, work, parts):
        for part, found in super().results(work, parts):
            if self.node is not None:
                self.cluster.remove_node(self.node, allow_graceful=False)
                self.node = None
            yield part, found


def main(tree, out):
    """Print what was found as JSON."""
    alone = reported(archived(out / "alone", tree, Ray(workers=1))[0])
    cluster = started(
        Cluster, initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    ray.init(cluster.address, log_to_driver=False)
    second = started(cluster.add_node, num_cpus=1)
    cluster.wait_for_nodes()
    killed = reported(archived(out / "killed", tree, KillsARaylet(cluster, second))[0])
    names = [[f"{part}-{number}" for number in range(4)] for part in range(3)]
    names[1][2] = "poison"
    work = [Part([Folder(str(n), tuple(group))], str(n), 4) for n, group in enumerate(names)]
    isolated_ = {}
    for way in ("raises", "eats"):
        found = [one for _, records in isolated(Ray(), Deadly(way), work) for one in records]
        isolated_[way] = {one.name: one.failure for one in map(unpacked_record, found)}
    addresses = sorted(listening())
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps({"alone": alone, "killed": killed, "isolated": isolated_, "listening": addresses}))


def run(tree, out):
    """What `main` prints, run in a namespace of its own."""
    alone = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = f'ip link set lo up && exec "{sys.executable}" -m tests.archives.in_namespace "{tree}" "{out}"'
    done = subprocess.run([*alone, "sh", "-c", command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    signal.alarm(500)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
