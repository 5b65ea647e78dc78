#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dptrack mcp as its protocol defines it, line by line: initialization, the list of tools, each tool on recorded runs from
the folder and from a server, sentences for empty results, refused writes, wrong arguments, malformed messages, and the
store free for others between two calls."""
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), place) for place in ("api", "python")]
import lib  # noqa: E402
from lib import check, equal  # noqa: E402

PACKAGE = os.path.join(lib.SOURCE, "tracker", "python")
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
    """A started program, after its initialization."""

    def __init__(self, *words, version="2025-06-18"):
        self.process = subprocess.Popen([lib.PROGRAM, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.count = 0
        self.hello = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})["result"]
        self.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params=None):
        self.count += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, **({} if params is None else {"params": params})}))
        reply = self.read()
        assert reply["id"] == self.count and reply["jsonrpc"] == "2.0", reply
        return reply

    def call(self, tool, error=False, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        equal((result["isError"], len(result["content"]), result["content"][0]["type"]), (error, 1, "text"), f"{tool} {arguments}: {result}")
        return result["content"][0]["text"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)


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


def protocol(s):
    names = [t["name"] for t in s.ask("tools/list")["result"]["tools"]]
    equal(names, READS, "without --write")
    for tool in s.ask("tools/list")["result"]["tools"]:
        schema = tool["inputSchema"]
        check(tool["annotations"]["readOnlyHint"] and schema["type"] == "object" and set(schema["required"]) <= set(schema["properties"]), tool["name"])
    equal(s.ask("ping")["result"], {}, "ping")
    equal(s.ask("resources/list")["error"]["code"], -32601, "an unknown method")
    equal(s.ask("tools/call", {"name": "rm"})["error"]["code"], -32602, "an unknown tool")
    for line, code in (("{", -32700), ("[]", -32600), ('{"id": 7}', -32600), ("\x7f", -32700)):
        s.send(line)
        equal(s.read()["error"]["code"], code, line)
    s.send("")
    s.send('{"jsonrpc": "2.0", "id": "text", "method": "ping"}')
    equal(s.read()["id"], "text", "an id may be a text; an empty line gets no answer")
    for tool in WRITES:
        said = s.call(tool, error=True, run="base", text="x", key="k")
        check("--write" in said, f"{tool} is refused: {said}")


def changes(folder):
    s = Session("--logdir", folder, "--write")
    equal([t["name"] for t in s.ask("tools/list")["result"]["tools"]], READS + WRITES, "with --write")
    s.call("add_note", run="base", text="first")
    check("end of its note" in s.call("add_note", run="base", text="second → `x`"), "a note")
    s.call("set_tag", run="base", key="a b/c", value="v")
    s.call("set_tag", run="base", key="flag")
    check("archived" in s.call("archive_run", run="wide"), "archive")
    check("wide" not in s.call("list_runs"), "an archived run is not listed")
    shown = json.loads(subprocess.run([lib.PROGRAM, "show", "base", "--logdir", folder, "--json"], capture_output=True, text=True, check=True).stdout)
    equal(shown["notes"], "first\n\nsecond → `x`", "the note")
    equal({k: shown["tags"][k] for k in ("a b/c", "flag")}, {"a b/c": "v", "flag": ""}, "the tags")
    equal(s.end(), 0, "exit at the end of the input")


def main():
    with tempfile.TemporaryDirectory() as folder:
        record(folder)
        s = Session("--logdir", folder)
        equal((s.hello["protocolVersion"], s.hello["serverInfo"]["name"]), ("2025-06-18", "dptrack"), "initialize")
        equal(Session("--logdir", folder, version="1999-01-01").hello["protocolVersion"], "2025-11-25", "a version that is unknown")
        questions(s)
        sentences(s)
        protocol(s)
        server = lib.Serving(lib.PROGRAM, "--logdir", folder, "--port", "0")  # the store is free between calls
        questions(s)
        remote = Session("--url", server.url)
        questions(remote)
        sentences(remote)
        equal(remote.end(), 0, "the end")
        server.stop()
        equal(s.end(), 0, "the end")
        changes(folder)
        done = subprocess.run([lib.PROGRAM, "mcp", "--logdir", folder + "/none"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        check(done.returncode == 2 and "no folder" in done.stderr and not done.stdout, f"a folder that is missing: {done}")
    lib.finish("agents")


if __name__ == "__main__":
    main()
