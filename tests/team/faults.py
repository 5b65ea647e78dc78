# SPDX-License-Identifier: Apache-2.0
"""Faults of three processes and their PostgreSQL. A fault returns when it is over, with the affected processes, whose
clients have to wait."""
import os
import random
import signal
import time

from lib import check, until

import cluster
import wire

SYNCHRONOUS = ("ALTER SYSTEM SET synchronous_standby_names = '%s'", "SELECT pg_reload_conf()")


class Site:
    """Three processes, each with a wire to one PostgreSQL. filled: a client writes so much that the log is folded
    meanwhile."""

    def __init__(self, process, folder, instead=(), settings=(), first=None, filled=False):
        self.filled = filled
        self.db = cluster.Cluster(fsync=True, settings=settings)
        self.db.store("t1")
        if first:
            self.db.sql("t1", first)
        self.wires = [wire.Wire(self.db.folder, self.db.port, instead) for _ in range(3)]
        self.team = [process(w.address("t1"), os.path.join(folder, "artifacts")) for w in self.wires]

    def close(self):
        for p in self.team:
            p.stop()
        self.db.close()


class Databases:
    """A primary and its standby; commits wait for the standby. make: creates the database t1 on the primary."""

    def __init__(self, make, synchronous=True):
        self.synchronous = synchronous
        self.primary = cluster.Cluster(fsync=True)
        make(self.primary)
        self.standby = cluster.Cluster(fsync=True, follows=self.primary)
        both = (self.primary, self.standby)
        self.address = f"postgresql://postgres@/t1?host={both[0].folder},{both[1].folder}&port={both[0].port},{both[1].port}"
        self.wait_for_standby()

    def wait_for_standby(self):
        self.primary.sql("postgres", SYNCHRONOUS[0] % ("*" if self.synchronous else ""))
        self.primary.sql("postgres", SYNCHRONOUS[1])
        want = "sync" if self.synchronous else "async"
        query = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        check(until(30, lambda: self.primary.sql("postgres", query) == [want]), "the standby follows")

    def close(self):
        for c in (self.primary, self.standby):
            c.close()


class Pair(Databases):
    """Three processes on a primary and its standby."""

    filled = False

    def __init__(self, process, folder, synchronous=True):
        super().__init__(lambda primary: primary.store("t1"), synchronous)
        self.team = [process(self.address, os.path.join(folder, "artifacts")) for _ in range(3)]

    def close(self):
        for p in self.team:
            p.stop()
        super().close()


def kill_process(site):
    victim = random.choice(site.team)
    victim.kill()
    time.sleep(0.3)
    victim.start()
    return [victim]


def kill_database(site):
    site.db.kill()
    time.sleep(0.5)
    site.db.start()
    return site.team


def swallow_commit(site):
    """Each process loses the reply of a commit, then a commit."""
    for what in ("reply", "request"):
        for w in site.wires:
            check(w.swallow(what, 20), f"no commit whose {what} could be swallowed")
            time.sleep(0.1)
    return site.team


def end_backends(site):
    for _ in range(5):
        site.db.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 't1'")
        time.sleep(0.1)
    return site.team


def stop_process(site):
    victim = random.choice(site.team)
    victim.process.send_signal(signal.SIGSTOP)
    time.sleep(10)
    victim.process.send_signal(signal.SIGCONT)
    return [victim]


def cut_network(site):
    i = random.randrange(len(site.team))
    site.wires[i].cut()
    time.sleep(20)
    site.wires[i].mend()
    return [site.team[i]]


def promote_standby(pair):
    """The primary's network is cut, it dies, and the standby is promoted; then the old primary becomes its standby."""
    pair.standby.replication.cut()
    time.sleep(0.5)
    pair.primary.kill()
    pair.standby.tool("pg_ctl", "-D", pair.standby.data, "-w", "promote")
    pair.primary, pair.standby = pair.standby, pair.primary
    pair.primary.sql("postgres", SYNCHRONOUS[0] % "")
    pair.primary.sql("postgres", SYNCHRONOUS[1])
    pair.standby.follow(pair.primary)
    pair.wait_for_standby()
    return pair.team


# Processes that are not affected may wait this long, and all may from the fault's end on.
FAULTS = {f.__name__: (f, kind, stall_s) for f, kind, stall_s in (
    (kill_process, Site, 1), (kill_database, Site, None), (swallow_commit, Site, None), (end_backends, Site, None),
    (stop_process, Site, 4), (cut_network, Site, 4), (promote_standby, Pair, None))}

# Mechanisms that keep the guarantees, removed: the fault that shows it, how it is removed, and what is then found.
ASYNCHRONOUS = (r"set_config\('synchronous_commit'.*, true\)", "set_config('synchronous_commit', 'off', true)")
UNDONE = (r"(DELETE FROM process WHERE id = \$1 RETURNING) done", r"\1 CAST(-1 AS bigint) AS done")
BY_NUMBER = (r"DELETE FROM log WHERE id = ANY \((CAST\(\$1 AS bigint\[\]\))\)",
             r"DELETE FROM log WHERE id <= (SELECT max(i) FROM unnest(\1) AS i)")
SEQUENCE = [(r"UPDATE counter SET rev = rev \+ \$1 RETURNING rev", "SELECT nextval('hook_rev') WHERE $1::bigint > 0"),
            ("SELECT rev FROM counter", "SELECT last_value AS rev FROM hook_rev"),
            ("FROM counter c", "FROM (SELECT last_value AS rev FROM hook_rev) c")]
UNWRITTEN = ["synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1000000", "wal_buffers=64MB"]
SLOW = ["commit_delay=60000", "commit_siblings=0"]  # so that others run in between
HOOKS = {
    "async-commit": ("kill_database", {"instead": [ASYNCHRONOUS], "settings": UNWRITTEN}, "lost"),
    "async-standby": ("promote_standby", {"synchronous": False}, "lost"),
    "blind-repeat": ("swallow_commit", {"instead": [UNDONE]}, "twice"),
    "log-by-number": ("stop_process", {"instead": [BY_NUMBER], "settings": SLOW, "filled": True}, "lost"),
    "rev-sequence": ("kill_process", {"instead": SEQUENCE, "settings": SLOW,
                                      "first": "CREATE SEQUENCE hook_rev INCREMENT 1000 START 1000000"}, "not reported"),
}
