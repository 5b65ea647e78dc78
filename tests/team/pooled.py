# SPDX-License-Identifier: Apache-2.0
"""Several processes through pgbouncer, which gives each transaction another connection: what one stores the others
return, one run is written through all of them, a revoked token is refused."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import lib
from lib import check, until

import cluster
from ports import free_port
import together


@contextlib.contextmanager
def pooler(db, folder):
    """pgbouncer in front of a cluster, once it answers; yields the address of its store t1."""
    port = free_port()
    path = os.path.join(folder, "pgbouncer.ini")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"[databases]\n* = host={db.folder} port={db.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
                f"unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 6\nserver_round_robin = 1\n")
    os.chmod(folder, 0o755)
    process = subprocess.Popen([*cluster.as_nobody(), shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", "-q", path], cwd="/",
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"postgresql://postgres@127.0.0.1:{port}/t1"
    status = [cluster.PROGRAM, "db", "status", "--db", address]
    try:
        check(until(10, lambda: subprocess.run(status, capture_output=True, check=False).returncode == 0), "pgbouncer does not answer")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def reason():
    """The reason why there is no pgbouncer, or None."""
    return cluster.reason() or (None if os.path.exists("/usr/sbin/pgbouncer") else "pgbouncer is not installed (Debian: pgbouncer)")


def main():
    why = reason()
    if why:
        print(f"pooled: {why}")
        sys.exit(77)
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        db.store("t1")
        with pooler(db, folder) as address:
            team = [lib.Process(address, os.path.join(folder, "artifacts")) for _ in range(3)]
            together.read_everywhere(team)
            together.one_run_through_all_processes(team, db)
            together.changes_miss_nothing(team)
            together.streams_wake(team)
            together.tokens_are_shared(team, address)
            for p in team:
                p.stop()
    lib.finish("pooled")


if __name__ == "__main__":
    main()
