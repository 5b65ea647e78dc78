#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which value of a metric is best: the page, REST, `dptrack compare`, an agent's best_run and the Python package agree, for metrics
known by name, for an unknown one, and where runs say it themselves."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "api"), os.path.join(TOP, "cli"), os.path.join(os.path.dirname(TOP), "tracker", "python")]
import lib  # noqa: E402
from agents import PACKAGE, Session  # noqa: E402
from lib import check, equal  # noqa: E402

KNOWN = {"val/mae": "min", "val/wer": "min", "eval/perplexity": "min", "bleu": "max", "reward": "max", "train/loss": "min", "val/accuracy": "max",
         "val/top5": "max", "TestAcc": None, "my/thing": None, "answers": None, "top1_error": "min", "data/loss": None, "tokens_per_s": "max",
         "loss_mean": "min", "Val Loss": "min", "ROUGE-L": "max", "map50": "max"}
SAID = {"my/depth": "min", "said/loss": "max"}
RECORD = f"""
import dptrack
for n, name in enumerate(("low", "high")):
    with dptrack.init(experiment="best", run_name=name, system=0, console=False, code=False) as run:
        run.define_metric("my/depth", summary="min")
        run.define_metric("said/*", summary="max")
        for step in (1, 2):
            run.log(dict.fromkeys({[*KNOWN, *SAID]!r}, n + step / 10), step=step)
"""


def record(folder):
    subprocess.run([sys.executable, "-c", RECORD], check=True, env=dict(os.environ, PYTHONPATH=PACKAGE, DPTRACK_RUNS_DIR=folder))


def best_by_page(folder, keys):
    pure = os.path.join(lib.BUILD, "web/ui/pure.mjs")
    if not shutil.which("node") or not os.path.exists(pure):
        return {}
    script = os.path.join(folder, "page.mjs")
    with open(script, "w", encoding="utf-8") as f:
        f.write("const p = await import('file://' + process.argv[2]);\nconst [keys, runs] = JSON.parse(process.argv[3]);\n"
                "const said = p.saidOf(runs);\nconsole.log(JSON.stringify(keys.map((k) => said.get(k) ?? p.directionOf(k))));\n")
    runs = [{"tags": {"dptrack.best." + key: best for key, best in SAID.items()}}]
    done = subprocess.run(["node", script, os.path.abspath(pure), json.dumps([keys, runs])], check=True, capture_output=True, text=True)
    return dict(zip(keys, json.loads(done.stdout)))


def best_by_command(folder, key):
    table = subprocess.run([lib.PROGRAM, "compare", "--logdir", folder, "--metric", key, "--csv"], check=True, capture_output=True, text=True).stdout
    head, first, _ = table.splitlines()
    title = head.split(",")[2].rpartition(" ")
    equal(title[0], key, "title")
    return {"min": "low", "max": "high"}.get(title[2]) if title[2] != "last" else None, first.split(",")[1]


def best_by_agent(agent, key):
    said = agent.call("best_run", key=key, experiment="best")
    return None if said.startswith("Whether") else said.split(" ")[0]


def main():
    os.environ["DPTRACK_LIBRARY"] = os.path.join(lib.BUILD, ".libs", "libdptrack.so")
    import dptrack
    with tempfile.TemporaryDirectory() as folder:
        runs = os.path.join(folder, "runs")
        record(runs)
        want = {**KNOWN, **SAID}
        ids = {run["name"]: run["id"] for run in json.loads(subprocess.run(
            [lib.PROGRAM, "ls", "--logdir", runs, "--json"], check=True, capture_output=True, text=True).stdout)["runs"]}
        rest = json.loads(subprocess.run([lib.PROGRAM, "compare", "--logdir", runs, "--json", *ids.values()],
                                         check=True, capture_output=True, text=True).stdout)
        equal({m["key"]: m["best"] for m in rest["metrics"]}, want, "REST")
        equal(rest["goal"], "my/depth", "what runs say is the goal")
        page = best_by_page(folder, list(want))
        equal(page, want if page else {}, "page")
        compared = dptrack.compare("low", "high", runs_dir=runs)
        server = lib.Serving(lib.PROGRAM, "--logdir", runs, "--port", "0")
        agent = Session("--url", server.url)
        for key, best in want.items():
            name = {"min": "low", "max": "high"}.get(best)
            found = compared.best(key)
            equal(found and found.name, name, f"Python: {key}")
            equal(best_by_agent(agent, key), name, f"best_run: {key}")
            column, first = best_by_command(runs, key)
            equal(column, name, f"compare: {key}")
            check(name in (None, first), f"compare: the best run of {key} is first: {first}")
        check("its smallest my/depth" in agent.call("best_run"), "best_run: the goal that runs say")
        server.stop()
    lib.finish("best")


if __name__ == "__main__":
    main()
