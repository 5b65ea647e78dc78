#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools of dptrack.mcp, without the protocol (agents_sdk.py has it): each on recorded runs from the folder and from a server,
sentences for empty results, refused writes, wrong arguments, grants, names that would forge lines, and the store free for others
between two calls, also of several agents and of one that is killed."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.join(os.path.dirname(TESTS), "tracker", "python")
sys.path[:0] = [os.path.join(TESTS, "api"), os.path.join(TESTS, "python"), PACKAGE]
import lib  # noqa: E402
from lib import check, equal  # noqa: E402

from dptrack import mcp  # noqa: E402
from dptrack.mcp.tools import TOOLS  # noqa: E402

os.environ["DPTRACK_PROGRAM"] = os.path.abspath(lib.PROGRAM)
for name in ("DPTRACK_TOKEN", "DPTRACK_URL"):
    os.environ.pop(name, None)
READS = ["list_runs", "best_run", "why", "compare_runs", "get_series", "diagnose", "list_alerts"]
WRITES = ["add_note", "set_tag", "archive_run"]
RECORD = """
import dptrack
for n, name in enumerate(("base", "wide", "w\\u00efde \\u2192 3")):
    with dptrack.init(experiment="digits", run_name=name, config={"lr": 0.1, "width": 64 * (n + 1)}, system=0, console=False, code=False) as run:
        for step in range(1, 301):
            run.log({"train/loss": 1 / step + n, "phase/step": 0.01}, step=step)
        run.log({"epoch/top1": 90.0 + n}, step=1)
        if n == 1:
            run.alert("Loss rose", "from 1 to 2", level="warning")
"""


class Session:
    """The tools of one agent."""

    def __init__(self, *words, write=False):
        given = mcp.parse([*words])
        self.source, self.write = mcp.Source(given.url, given.logdir, given.db), write

    def call(self, tool, error=False, **arguments):
        text, failed = mcp.answer(self.source, self.write, tool, arguments)
        equal(failed, error, f"{tool} {arguments}: {text}")
        return text


def record(folder):
    done = subprocess.run([sys.executable, "-c", RECORD], env=dict(os.environ, PYTHONPATH=PACKAGE, DPTRACK_RUNS_DIR=folder,
                          DPTRACK_LIBRARY=os.path.join(lib.BUILD, ".libs", "libdptrack.so"), PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def questions(s):
    """Each tool that reads."""
    runs = s.call("list_runs")
    lines = runs.splitlines()
    check(len(lines) == 3 and "base" in lines[2] and "finished" in runs and "train/loss 0.0033333" in runs and "phase/" not in runs, f"list_runs: {runs}")
    equal(len(s.call("list_runs", limit=1).splitlines()), 2, "one run, and that there are more")
    check("wïde → 3" in s.call("list_runs", order_by='metrics."epoch/top1".max DESC', limit=1), "an order, and names in UTF-8")
    check(s.call("best_run").startswith("wïde → 3 (") and "its largest epoch/top1 is 92" in s.call("best_run"), "the goal is found by itself")
    best = s.call("best_run", key="train/loss", experiment="digits")
    check(best.startswith("base (") and "smallest train/loss is 0.0033333" in best and "Next: wide" in best and "width=64" in best, best)
    check(s.call("best_run", key="train/loss", direction="max").startswith("wïde"), "a direction")
    compared = s.call("compare_runs", runs=["base", "wide"])
    check("| width | 64 | 128 |" in compared and "| lr |" not in compared and "| epoch/top1 | 90 | 91 |" in compared, compared)
    series = s.call("get_series", run="base", key="train/loss", points=10).splitlines()
    check(series[0].startswith("300 points") and len(series) == 11 and series[-1].split()[:2] == ["300", "0.0033333"], f"get_series: {series}")
    equal(len(s.call("get_series", run="base", key="train/loss").splitlines()), 51, "50 lines unless asked for others")
    id = lines[2].split()[0]
    check(s.call("get_series", run=id[:6], key="epoch/top1").endswith("1 90 90 90\n"), "a prefix of an id")
    check("Loss rose: from 1 to 2" in s.call("list_alerts", run="wide"), "a program's alerts")
    check(len(s.call("why", runs=["base", "wide"])) > 20 and len(s.call("diagnose", run="base")) > 20, "why, diagnose")


def sentences(s):
    """Empty results, and arguments that are wrong."""
    for want, tool, arguments in (("No runs match", "list_runs", {"filter": "params.lr = 7"}),
                                  ("No rule has found anything.", "list_alerts", {}), ("has sent no alerts", "list_alerts", {"run": "base"}),
                                  ("No run has the metric zzz", "best_run", {"key": "zzz"}), ("has no series zzz. It has: epoch/top1", "get_series", {"run": "base", "key": "zzz"})):
        said = s.call(tool, **arguments)
        check(want in said, f"{tool} {arguments}: {said}")
    for want, tool, arguments in (("no experiment 'none'", "list_runs", {"experiment": "none"}), ("no run none", "diagnose", {"run": "none"}), ("argument run is missing", "diagnose", {}), ("diagnose: unknown argument rum: expected run", "diagnose", {"rum": "x"}),
                                  ("2 to 50", "why", {"runs": ["base"]}), ("list of strings", "why", {"runs": "base"}), ("expected a string", "get_series", {"run": 3, "key": "x"}),
                                  ("1 to 1000", "list_runs", {"limit": 0}), ("max or min", "best_run", {"key": "x", "direction": "up→"}), ("", "list_runs", {"filter": "(("})):
        said = s.call(tool, error=True, **arguments)
        check(want in said, f"{tool} {arguments}: {said}")
    equal(s.call("list_runs", experiment=None, limit=None).count("\n"), 3, "null is absent")


def refusals(s):
    for tool in WRITES:
        said = s.call(tool, error=True, run="base", text="x", key="k")
        check("--write" in said, f"{tool} is refused: {said}")


def declarations():
    equal([(tool.name, tool.writes) for tool in TOOLS.values()], [(name, False) for name in READS] + [(name, True) for name in WRITES], "the tools")
    for tool in TOOLS.values():
        schema = tool.schema()
        check(schema["type"] == "object" and set(schema["required"]) <= set(schema["properties"]), tool.name)


def changes(folder):
    s = Session("--logdir", folder, write=True)
    s.call("add_note", run="base", text="first")
    check("end of its note" in s.call("add_note", run="base", text="second → `x`"), "a note")
    s.call("set_tag", run="base", key="a b/c", value="v")
    s.call("set_tag", run="base", key="flag")
    check("archived" in s.call("archive_run", run="wide"), "archive")
    check("wide" not in s.call("list_runs"), "an archived run is not listed")
    shown = json.loads(subprocess.run([lib.PROGRAM, "show", "base", "--logdir", folder, "--json"], capture_output=True, text=True, check=True).stdout)
    equal(shown["notes"], "first\n\nsecond → `x`", "the note")
    equal({k: shown["tags"][k] for k in ("a b/c", "flag")}, {"a b/c": "v", "flag": ""}, "the tags")


FORGED = ["b\nFAKE best: 1.0", "x |\n| fake | 0.99 |", "a\u202etxt.exe", "a\u2028FAKE", "two  fields", "e\u200bnd \\| \\"]


def forged(server):
    """Texts of others stay in their line and cell, whichever tool shows them. MLflow's routes take names with line breaks."""
    made = json.loads(server.request("POST", "/api/2.0/mlflow/experiments/create", {"name": "e | x\u2028  \u202ey"})[2])["experiment_id"]
    ids = []
    for n, text in enumerate(FORGED):
        reply = server.request("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": made, "run_name": text, "start_time": 1})
        ids.append(json.loads(reply[2])["run"]["info"]["run_id"])
        key = text.replace("\n", " ")
        equal(server.request("POST", f"/api/v1/runs/{ids[-1]}/params", {"params": {key: text, "n": str(n)}})[0], 200, "params")
        points = [{"key": one, "step": step, "value": n + 0.1 * step} for one in ("acc", key, "phase/step") for step in range(1, 31)]
        equal(server.request("POST", f"/api/v1/runs/{ids[-1]}/metrics", {"points": points})[0], 200, "points")
    s = Session("--url", server.url)
    runs = s.call("list_runs", order_by="start_time ASC", limit=len(ids)).splitlines()
    equal(len(runs), len(ids) + 1, "a line a run")
    equal({len(line.split("  ")) for line in runs[:-1]}, {6}, f"fields of runs: {runs}")
    for id in ids:
        best = s.call("best_run", key="acc", direction="max", filter=f"run_id = '{id}'").splitlines()
        equal((len(best), best[1]), (4, "Params:"), f"best_run: {best}")
    compared = s.call("compare_runs", runs=ids)
    columns = {line.replace("\\\\", "").replace("\\|", "").count("|") for line in compared.splitlines()[:-1]}
    equal(columns, {len(ids) + 2}, f"columns: {compared}")
    said = [compared, *runs, s.call("why", runs=ids), s.call("get_series", run=ids[0], key="none\nFAKE")]
    bad = {f"{ord(c):x}" for text in said for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"}
    equal(bad, set(), "characters that are not seen")
    check("FAKE" not in [line[:4] for text in said for line in text.splitlines()], f"a forged line: {said}")
    table = server.request("GET", "/api/v1/compare/why.md?" + "&".join("run=" + id for id in ids))[2].decode()
    equal([c for c in "\u202e\u2028" if c in table], [], f"the server's table: {table}")
    for id in ids:
        server.request("DELETE", f"/api/v1/runs/{id}")


def grants(folder):
    """A token that may read changes nothing, whatever --write says."""
    server = lib.Server(folder)
    server.token = server.owner_token()
    token = json.loads(server.request("POST", "/api/v1/tokens", {"name": "agent", "scope": "read"})[2])["token"]
    s = Session("--url", server.url, write=True)
    check("token is needed" in s.call("list_runs", error=True), "without a token")
    os.environ["DPTRACK_TOKEN"] = token
    s = Session("--url", server.url, write=True)
    s.call("list_runs")
    check("scope write" in s.call("set_tag", error=True, run="base", key="k"), "a token that may read")
    del os.environ["DPTRACK_TOKEN"]
    Session("--logdir", folder, write=True).call("set_tag", run="base", key="by owner")  # the lock file is its owner's alone
    server.stop()
    Session("--logdir", folder).call("list_runs")  # a server of its own needs no token of the store


def crowd(folder):
    """Several agents at once, each of which opens the store for each call; then dptrack itself finds it free."""
    failed = []

    def ask(session):
        for _ in range(3):
            text, bad = mcp.answer(session.source, False, "list_runs", {})
            if bad or "base" not in text:
                failed.append(text)

    threads = [threading.Thread(target=ask, args=(Session("--logdir", folder),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failed, [], "agents at once")


def killed(folder):
    """A killed agent leaves no server behind."""
    script = ("import sys, time\nfrom dptrack import mcp\nsource = mcp.Source(None, sys.argv[1], None)\n"
              "with source.server():\n    print('open', flush=True)\n    time.sleep(60)\n")
    process = subprocess.Popen([sys.executable, "-c", script, folder], stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=PACKAGE))
    process.stdout.readline()
    from dptrack._query import holder
    check(holder(folder + "/dptrack.db"), "it holds the store")
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 30
    while holder(folder + "/dptrack.db") and time.monotonic() < end:
        time.sleep(0.05)
    equal(holder(folder + "/dptrack.db"), None, "nobody holds the store")


def bad_places(folder):
    for words, want in ((["--logdir", folder + "/none"], "no folder"), (["--url", "nowhere"], "expected an address"), (["--url", "http://127.0.0.1:9"], "does not answer")):
        try:
            said = Session(*words).call("list_runs", error=True)
        except mcp.Error as error:
            said = str(error)
        check(want in said and "\n" not in said, f"{words}: {said}")



def main():
    with tempfile.TemporaryDirectory() as folder:
        record(folder)
        declarations()
        s = Session("--logdir", folder)
        questions(s)
        sentences(s)
        refusals(s)
        server = lib.Server(folder)  # the store is free between calls
        questions(s)
        remote = Session("--url", server.url)
        questions(remote)
        sentences(remote)
        forged(server)
        server.stop()
        changes(folder)
        crowd(folder)
        killed(folder)
        bad_places(folder)
        grants(folder)
    lib.finish("agents")


if __name__ == "__main__":
    main()
