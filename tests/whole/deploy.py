#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container files and the dashboard in web/deploy. Kubernetes' own schemas validate the manifests (kubernetes-validate from PyPI, in
build/venv), Compose validates the other file (if docker-compose is installed). The programs are started here as the
containers start them, with the same arguments and variables, on a PostgreSQL and an object store of the test: the
tables are created, a second call changes nothing, the probes answer, and the server stops within its grace period. The
image itself: tests/fresh/run 12 image."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
DEPLOY = os.path.join(SRC, "web", "deploy")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(SRC, "tests", room) for room in ("team", "data", "bench")]
import lib
from lib import check

import cluster
import packages
import s3server
from ports import free_port

PORT = 6007  # of dptrack serve
TOKEN = "0123456789abcdef" * 4
GRAFANA = """
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
with open(sys.argv[1], encoding="utf-8") as f:
    print(JSONEncoder().encode(Dashboard.from_json(json.load(f))))
"""
READ = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)"


def documents(python, name):
    with open(os.path.join(DEPLOY, name), encoding="utf-8") as f:
        done = subprocess.run([python, "-c", READ], stdin=f, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def keeps(got, want):
    """Returns true if a value has everything of another one; the types add defaults."""
    if isinstance(want, dict):
        return isinstance(got, dict) and all(key in got and keeps(got[key], value) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(keeps, got, want))
    return got == want


def of_grafana():
    """Grafana's own types (grafana-foundation-sdk) read the dashboard and write the same panels and queries."""
    python = packages.python(BUILD, "grafana", ["grafana-foundation-sdk==1769699998!10.1.0"])
    done = subprocess.run([python, "-c", GRAFANA, os.path.join(DEPLOY, "grafana-dashboard.json")], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the dashboard in Grafana's types: {done.stdout}{done.stderr}")
    with open(os.path.join(DEPLOY, "grafana-dashboard.json"), encoding="utf-8") as f:
        want = json.load(f)
    got = json.loads(done.stdout)
    lost = [key for key in ("uid", "title", "panels", "time", "refresh", "schemaVersion") if not keeps(got[key], want[key])]
    check(not lost, f"Grafana's types change {lost}")


class Containers:
    """What a file specifies: variables, the command that creates the tables, the server's arguments, probes, grace
    period."""

    def __init__(self, env, tables, words, probes, grace_s):
        self.env, self.tables, self.words, self.probes, self.grace_s = env, tables, words, probes, grace_s


def of_kubernetes(python):
    done = subprocess.run([python, "-m", "kubernetes_validate", "--strict", os.path.join(DEPLOY, "kubernetes.yaml")],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"kubernetes-validate: {done.stdout}{done.stderr}")
    found = {d["kind"]: d for d in documents(python, "kubernetes.yaml")}
    template = found["Deployment"]["spec"]["template"]
    pod, (server,), (tables,) = template["spec"], template["spec"]["containers"], template["spec"]["initContainers"]
    check(found["Service"]["spec"]["selector"] == template["metadata"]["labels"] == found["Deployment"]["spec"]["selector"]["matchLabels"],
          "the service's pods")
    check(server["ports"] == [{"name": "http", "containerPort": PORT}], f"ports: {server['ports']}")
    env = {**found["Secret"]["stringData"], "DPTRACK_TOKEN": TOKEN} # the server refuses the file's own, which is too short
    words = [re.sub(r"\$\((\w+)\)", lambda m: env[m[1]], w) for w in server["args"]]
    return Containers(env, tables["command"], words, [server[p]["httpGet"]["path"] for p in ("readinessProbe", "livenessProbe")],
                      pod["terminationGracePeriodSeconds"])


def of_compose(python):
    tool = shutil.which("docker-compose")
    if tool:
        done = subprocess.run([tool, "-f", os.path.join(DEPLOY, "compose.yaml"), "config", "-q"], capture_output=True, text=True,
                              env={**os.environ, "POSTGRES_PASSWORD": "p", "DPTRACK_TOKEN": "t"})
        check(done.returncode == 0, f"docker-compose config: {done.stderr}")
    else:
        print("deploy: compose.yaml was not validated (docker-compose is not installed)")
    (found,) = documents(python, "compose.yaml")
    a, b, tables, proxy = (found["services"][name] for name in ("a", "b", "tables", "proxy"))
    places = [f"{s['networks']['default']['ipv4_address']}:{PORT}" for s in (a, b)]
    check([proxy["environment"][name] for name in ("DPTRACK_A", "DPTRACK_B")] == places, "the servers of HAProxy")
    check(os.path.exists(os.path.join(DEPLOY, proxy["volumes"][0].split(":")[0])), "HAProxy's file")
    check(a["command"] == b["command"] and a["environment"] == b["environment"] == tables["environment"], "two equal processes")
    values = {"POSTGRES_PASSWORD": "p", "DPTRACK_TOKEN": TOKEN, "DPTRACK_ARTIFACTS": "s3://bucket/dptrack"}
    env, words = ({k: filled(v, values) for k, v in a["environment"].items() if v}, [filled(w, values) for w in a["command"]])
    return Containers(env, tables["entrypoint"], words, ["/ready"], int(a["stop_grace_period"].rstrip("s")))


def filled(text, values):
    """Substitutes ${NAME:?} and ${NAME:-otherwise} as Compose does."""
    return re.sub(r"\$\{(\w+):[?-][^}]*\}", lambda m: values[m[1]], text)


def live(name, containers, db, s3):
    """Runs the containers' commands from start to stop."""
    db.sql("postgres", f"CREATE DATABASE {name}")
    env = {**s3.environment(**containers.env), "DPTRACK_DB": db.address(name), "PATH": BUILD + ":" + os.environ["PATH"]}
    env.update({k: v for k, v in s3.environment().items() if k.startswith("AWS_")})
    for word in ("created the tables", "is up to date"):
        done = subprocess.run(containers.tables, env=env, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0 and word in done.stdout, f"{name}: tables: {done.returncode} {done.stdout}{done.stderr}")
    port = free_port()
    process = subprocess.Popen(["dptrack", *containers.words, "--port", str(port)], env=env, stdout=subprocess.DEVNULL)
    try:
        for path in containers.probes:
            check(lib.until(20, lambda path=path: lib.status(port, path) == 200), f"{name}: {path}")
        process.send_signal(signal.SIGTERM)
        if "/health" in containers.probes:
            check(lib.until(2, lambda: lib.ready(port) == 503) and lib.status(port, "/health") == 200, f"{name}: while it drains")
        check(process.wait(containers.grace_s) == 0, f"{name}: exit code {process.returncode}")
    finally:
        process.kill()


def main():
    why = cluster.reason()
    try:
        python = packages.python(BUILD, "kubernetes", ["kubernetes-validate==1.37.0"])
        of_grafana()
    except packages.Unavailable as e:
        why = str(e)
    if why:
        print(f"deploy: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder, cluster.Cluster() as db:
        os.mkdir(os.path.join(folder, "bucket"))
        s3 = s3server.S3(folder)
        for name, containers in (("kubernetes", of_kubernetes(python)), ("compose", of_compose(python))):
            live(name, containers, db, s3)
    lib.finish("deploy")


main()
