"""An S3 server for tests: OpenStack Swift with s3api and tempauth, one replica, on loopback.

usage: s3-server.py DIRECTORY, which has swift.conf and the settings of each server. The rings are made
here. One process per server; all of them end with this one.
"""
import ctypes
import os
import signal
import sys

directory = sys.argv[1]
import swift.common.utils as utils  # noqa: E402

utils.SWIFT_CONF_FILE = os.path.join(directory, "swift.conf")

from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import run_wsgi  # noqa: E402

SERVERS = ("account", "container", "object")
PART_POWER = 2
PR_SET_PDEATHSIG = 1


def make_ring(name):
    with open(os.path.join(directory, name + ".port"), encoding="ascii") as file:
        port = int(file.read())
    builder = RingBuilder(PART_POWER, 1, 0)
    builder.add_dev({
        "id": 0, "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": port,
        "replication_ip": "127.0.0.1", "replication_port": port, "device": "disk", "meta": "",
    })
    builder.rebalance()
    builder.get_ring().save(os.path.join(directory, name + ".ring.gz"))


def serve(name):
    pid = os.fork()
    if pid != 0:
        return pid
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    run_wsgi(os.path.join(directory, name + ".conf"), name + "-server", verbose=True)
    os._exit(1)


for server in SERVERS:
    make_ring(server)
pids = [serve(server) for server in (*SERVERS, "proxy")]
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
os.wait()
os._exit(1)
