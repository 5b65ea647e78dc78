# SPDX-License-Identifier: Apache-2.0
"""Kills during a recording by W&B's own package: of the server, of one of two servers on one PostgreSQL behind HAProxy, and of
the client. No acknowledged line is lost, none is there twice; after `wandb sync` of a killed client's folder every line
that its file has is there once. 6 kills; 60 with DPT_TEST_FULL=1."""
import sys
sys.dont_write_bytecode = True
import contextlib
import glob
import importlib.util
import itertools
import os
import random
import signal
import subprocess
import tempfile
import time
import install
lib = install.lib
sys.path.append(os.path.join(lib.SOURCE, "tracker", "python"))
from dptrack.importers import wandb_files  # noqa: E402

EACH = 20 if os.environ.get("DPT_TEST_FULL") == "1" else 2
APART_S = 2.5
ROWS = int(EACH * APART_S * 60) + 200
RUNS = """
import sys, time, wandb
run = wandb.init(project="kills", name="slow", id=sys.argv[1], settings=wandb.Settings(x_file_stream_transmit_interval=0.2, x_file_stream_retry_wait_min_seconds=0.3))
print("begun", flush=True)
for i in range(int(sys.argv[2])):
    run.log({"x": i * 7})
    print("row", i, flush=True)
    time.sleep(0.015)
"""


def team_of():
    """tests/team/lib.py, whose name is taken."""
    sys.path.append(os.path.join(lib.SOURCE, "tests", "team"))
    spec = importlib.util.spec_from_file_location("team", os.path.join(lib.SOURCE, "tests", "team", "lib.py"))
    team = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(team)
    return team


def client(server, folder, name, rows):
    return subprocess.Popen([install.client(), "-c", RUNS, name, str(rows)], env=install.environment(server, folder), cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def check_all(server, what):
    run = install.run_of(server, "kills", "slow")
    lib.equal(install.points(server, run, "x"), [(i, i * 7) for i in range(ROWS)], what + ": each line once")
    lines = [line["text"] for line in server.json("GET", f"/api/v1/runs/{run['id']}/console?limit=10000")[1]["lines"]]
    lib.equal([line for line in lines if line.startswith("row")], [f"row {i}" for i in range(ROWS)], what + ": each line of the console once")
    lib.equal(run["status"], "finished", what + ": status")


def record_with_kills(server, kill, what):
    """Kills again and again while a client records, then compares."""
    with tempfile.TemporaryDirectory() as folder:
        process = client(server, folder, "slow", ROWS)
        process.stdout.readline()
        for i in range(EACH):
            time.sleep(APART_S)
            kill(i)
        said, _ = process.communicate(timeout=600)
        lib.equal(process.returncode, 0, f"{what}: the script: {said[-1500:]}")
        check_all(server, what)


def one_server():
    with tempfile.TemporaryDirectory() as folder:
        servers = [lib.Server(folder + "/runs")]

        def kill(_):
            servers[-1].process.kill()
            servers[-1].process.wait()
            servers.append(lib.Server(folder + "/runs", "--port", str(servers[0].port)))
        record_with_kills(servers[0], kill, "one server")
        servers[-1].stop()


class Front(lib.Server):
    """HAProxy as the server that the client knows."""

    def __init__(self, port):
        self.host, self.port, self.url, self.token, self.tls = "127.0.0.1", port, f"http://127.0.0.1:{port}", None, None


def two_servers():
    team = team_of()
    if team.proxy_reason():
        print("left out: two servers:", team.proxy_reason())
        return
    with team.cluster.Cluster(fsync=True) as c, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        address = c.store("kills")
        both = [team.Process(address, folder) for _ in range(2)]
        for one in both:
            ends.callback(one.stop)
        proxy = team.Proxy(both)
        ends.callback(proxy.close)

        def kill(i):
            both[i % 2].kill()
            both[i % 2].start()
        record_with_kills(Front(proxy.port), kill, "two servers")
    lib.failures.extend(team.failures)


def file_rows(folder):
    """The values of x in a client's file, read by our own reader of W&B's format."""
    path, = glob.glob(folder + "/wandb/run-*/*.wandb")
    found = []
    with open(path, "rb") as f:
        for record in wandb_files.Log(f).records():
            for row in wandb_files.messages(record, 2):  # the history
                values = {}
                wandb_files.merge_all(values, row)
                found.append(values["x"])
    return found


def killed_clients():
    sync = [os.path.join(os.path.dirname(install.client()), "wandb"), "sync", "--yes", "--include-online"]
    draw, total = random.Random(74), 0
    with lib.fresh() as server:
        for i in range(EACH):
            with tempfile.TemporaryDirectory() as folder:
                process = client(server, folder, f"killed{i}", 100000)
                for line in itertools.islice(process.stdout, draw.randrange(20, 300)):
                    pass
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                process.stdout.close()
                run = server.json("GET", "/api/v1/runs?experiment=kills&limit=1")[1]["runs"][0]
                before, there = [v for _, v in install.points(server, run, "x")], file_rows(folder)
                done = subprocess.run(sync + glob.glob(folder + "/wandb/run-*"), env=install.environment(server, folder), cwd=folder, capture_output=True,
                                      text=True, timeout=180)
                after = install.points(server, run, "x")
                lib.equal(after, [(k, k * 7) for k in range(max(len(before), len(there)))],
                          f"kill {i}: {len(there)} lines in the file, {len(before)} before wandb sync: {done.stderr[-500:]}")
                total += len(after)
    lib.check(total > 20 * EACH, f"{total} lines were compared")


def main():
    for part in sys.argv[1:] or ("one_server", "two_servers", "killed_clients"):
        globals()[part]()
    lib.finish("kills")


main()
