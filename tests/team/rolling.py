# SPDX-License-Identifier: Apache-2.0
"""HAProxy with the shipped configuration in front of two processes: while clients write, read and upload through it,
each process is restarted in turn; no request fails, and everything acknowledged is stored."""
import os
import sys
import tempfile
import time

import lib

import cluster
import load

TOKEN = "rolling-" + "0123456789" * 3


def main():
    why = lib.proxy_reason()
    if why:
        print(f"rolling: {why}")
        sys.exit(77)
    os.environ["DPTRACK_TOKEN"] = TOKEN
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        team = [lib.Process(db.store("t1") if not i else db.address("t1"), os.path.join(folder, "artifacts"), "--behind-proxy",
                            "--drain", "2", keep=("DPTRACK_TOKEN",)) for i in range(2)]
        proxy = lib.Proxy(team)
        with load.Load(proxy.port, TOKEN) as clients:
            for process in team:
                time.sleep(1)
                load.restart(process)
            time.sleep(1)
        print(f"rolling: {clients.asked()} requests while both processes were restarted")
        for p in team:
            p.stop()
        proxy.close()
    lib.finish("rolling")


main()
