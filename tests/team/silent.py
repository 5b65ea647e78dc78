# SPDX-License-Identifier: Apache-2.0
"""A machine that becomes unreachable during a group of writes, with rows locked: it sends no more statements, and its
connection is not closed. The limits that dptrack sets in PostgreSQL for its groups (schema/sql/queries.sql,
pg_write_limits) end that group within seconds, so that others can write; by default the system would take two hours to
notice. Two network namespaces act as the machines; a client sends the limits from the shipped statements, and stops
where told. Skipped without root."""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), folder) for folder in ("train", "nodes")]
import lib
from lib import check

import cluster
from helper import skip
from spaces import Spaces

MOST_S = 6  # that others may wait: 3 until it is noticed, on a loaded machine
CLIENT = r"""
import socket, struct, sys, time
address, port, limits = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection((address, port), 10)

def send(letter, body):
    s.sendall(letter + struct.pack(">I", len(body) + 4) + body)

def until_ready():
    data = b""
    while not (len(data) >= 6 and data[-6:-1] == b"Z\0\0\0\5"):
        data += s.recv(1 << 16)
    return data

send(b"", struct.pack(">I", 196608) + b"user\0postgres\0database\0t1\0\0")
until_ready()
for text in ("BEGIN", limits, "UPDATE counter SET rev = rev"):
    send(b"Q", text.encode() + b"\0")
    assert until_ready()[-1:] == b"T", text
for letter, body in ((b"P", b"\0SELECT 1\0\0\0"), (b"B", b"\0\0\0\0\0\0\0\0"), (b"E", b"\0\0\0\0\0")):  # and no Sync
    send(letter, body)
if sys.argv[4] == "midway":
    send(b"P", b"\0SELECT 2\0\0\0")
print("locked", flush=True)
time.sleep(60)
"""


def write_limits():
    with open(os.path.join(cluster.SOURCE, "schema", "sql", "queries.sql"), encoding="utf-8") as f:
        return re.search(r"-- name: pg_write_limits\n-- postgresql:\n(.*?);", f.read(), re.S).group(1)


def move(db, spaces):
    """Moves the database to the first machine."""
    db.stop("fast")
    with open(os.path.join(db.data, "pg_hba.conf"), "a", encoding="ascii") as f:
        f.write(f"host all all {spaces.address[1]}/32 trust\n")
    db.start("*", spaces.command(0))


def others_waited(db, spaces, where):
    """Returns the seconds from the network's failure to another client's write."""
    client = subprocess.Popen(spaces.command(1, sys.executable, "-c", CLIENT, spaces.address[0], db.port, write_limits(), where),
                              stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "locked\n", "the client did not lock the row"
        time.sleep(0.2)
        spaces.link(1, "down")
        began = time.monotonic()
        try:
            db.sql("t1", f"SET lock_timeout = '{MOST_S}s'; UPDATE counter SET rev = rev")
        except AssertionError as e:
            check(False, f"{where}: {e}")
        return time.monotonic() - began
    finally:
        client.kill()
        client.wait()
        spaces.link(1, "up")
        spaces.wait_up()


def main():
    why = cluster.reason()
    if why:
        skip(why)
    with Spaces() as spaces, cluster.Cluster() as db:
        db.store("t1")
        move(db, spaces)
        for where in ("between", "midway"):
            waited_s = others_waited(db, spaces, where)
            check(waited_s > 0.5, f"{where}: nothing was locked ({waited_s:.1f} s)")
            check(waited_s < MOST_S, f"{where}: others waited {waited_s:.1f} s")
            print(f"silent {where} statements of a group: others waited {waited_s:.1f} s")
    lib.finish("silent")


main()
