# SPDX-License-Identifier: Apache-2.0
"""The classic flow of MLflow's own client (tests/mlflow/flow.py) through HAProxy with the shipped configuration, in
front of two processes on one PostgreSQL: requests go to either process, and each reads what the other has
acknowledged."""
import os
import re
import sys
sys.dont_write_bytecode = True
import tempfile

import lib

import cluster
sys.path.insert(0, os.path.join(cluster.SOURCE, "tests", "mlflow"))
import install

TOKEN = "flowing-" + "0123456789" * 3
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def commits(process):
    text = process.request("GET", "/metrics", headers=HEADERS)[1]
    return int(re.search(rb"^dptrack_store_commits_total (\d+)$", text, re.M)[1])


def main():
    why = lib.proxy_reason()
    if why:
        print(f"flow: {why}")
        sys.exit(77)
    os.environ["DPTRACK_TOKEN"] = TOKEN
    python, environment = install.client(cluster.BUILD), dict(install.environment(cluster.BUILD), MLFLOW_TRACKING_TOKEN=TOKEN)
    with cluster.Cluster() as db, tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        address = db.store("t1")
        team = [lib.Process(address, os.path.join(folder, "artifacts"), "--behind-proxy", keep=("DPTRACK_TOKEN",)) for _ in range(2)]
        proxy = lib.Proxy(team)
        said, problem = install.flow(python, environment, f"http://127.0.0.1:{proxy.port}")
        print(said)
        lib.check(not problem, f"the flow: {problem}")
        lib.check(all(commits(p) > 10 for p in team), f"both take part: {[commits(p) for p in team]} commits")
        runs = [p.json("GET", "/api/v1/runs?filter=tags.stage='test'", headers=HEADERS)[1]["runs"] for p in team]
        for r in runs:
            lib.check(r[0]["name"] == "outer" and r[0]["metrics"]["loss"]["count"] == 10, f"what the client logged: {r}")
        proxy.close()
        for p in team:
            p.stop()
    lib.finish("flow")


main()
