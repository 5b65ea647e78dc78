# SPDX-License-Identifier: Apache-2.0
"""A script with W&B's own package (three versions of it) records here: values, config, summary, console, tags, notes,
status. Each is compared with what the script logged."""
import sys
sys.dont_write_bytecode = True
import functools
import math
import install
lib = install.lib

SCRIPT = """
import math, sys, wandb
run = wandb.init(project="first", name="made", id="abc123", group="pair", job_type="train", tags=["baseline", "two"], notes="a *note*",
                 config={"lr": 0.1, "depth": 3, "deep": {"name": "x", "on": True}, "layers": [1, 2]})
for i in range(20):
    print("line", i)
    run.log({"loss": 1.0 / (i + 1), "train/acc": i * 0.05, "odd": float("nan") if i == 3 else float("inf") if i == 4 else i, "nested": {"a": i}})
print("to stderr", file=sys.stderr)
run.config.update({"late": "yes"})
run.summary["best"] = 0.75
run.summary["word"] = "done"
"""

FAILS = """
import wandb
run = wandb.init(project="first", name="failed", id="fails")
run.log({"loss": 1})
raise RuntimeError("on purpose")
"""

EXITS = """
import sys, wandb
run = wandb.init(project="first", name="exits", entity="team")
run.log({"loss": 1})
run.finish(exit_code=3)
"""


def first(version):
    """The key is a token of scope write, which each version of the client must take."""
    with lib.fresh() as server:
        owner = server.owner_token()
        made = server.json("POST", "/api/v1/tokens", {"name": "writer", "scope": "write"}, headers={"Authorization": f"Bearer {owner}"})[1]
        server.token = owner
        said = install.script(server, SCRIPT, version, key=made["token"])
        lib.check("made" in said and "/dptrack/first/runs/abc123" in said, f"{version} names the run and its address: {said[-1000:]}")
        run = install.run_of(server, "first", "made")
        lib.equal(run["status"], "finished", "status")
        lib.equal(run["params"], {"lr": "0.1", "depth": "3", "deep.name": "x", "deep.on": "true", "layers": "[1,2]", "late": "yes"}, "params")
        lib.equal(install.points(server, run, "loss"), [(i, 1.0 / (i + 1)) for i in range(20)], "loss")
        lib.equal(install.points(server, run, "train/acc"), [(i, i * 0.05) for i in range(20)], "train/acc")
        lib.equal(install.points(server, run, "nested.a"), [(i, i) for i in range(20)], "nested.a")
        lib.equal(install.points(server, run, "odd"), [(i, "NaN" if i == 3 else "Infinity" if i == 4 else i) for i in range(20)], "odd")
        lib.equal(run["metrics"]["best"]["last"], 0.75, "a value of the summary")
        lib.equal({k: run["tags"].get(k) for k in ("baseline", "two", "word", "wandb.group", "wandb.job_type", "wandb.run_id")},
                  {"baseline": "", "two": "", "word": "done", "wandb.group": "pair", "wandb.job_type": "train", "wandb.run_id": "abc123"}, "tags")
        lib.equal(run["notes"], "a *note*", "notes")
        lines = server.json("GET", f"/api/v1/runs/{run['id']}/console")[1]["lines"]
        lib.equal([line["text"] for line in lines if line["text"].startswith("line")], [f"line {i}" for i in range(20)], "the console")
        lib.equal([line["stream"] for line in lines if line["text"] == "to stderr"], ["stderr"], "the stream of a line")
        lib.check(abs(run["start_time"] / 1e3 - __import__("time").time()) < 120, "the start")
        lib.check(math.isfinite(run["metrics"]["loss"]["last"]), "finite")


def ends():
    with lib.fresh() as server:
        install.together(lambda: install.script(server, FAILS, code=1), lambda: install.script(server, EXITS))
        run = install.run_of(server, "first", "failed")
        lib.equal(run["status"], "failed", "a script that raises")
        run = install.run_of(server, "team/first", "exits")
        lib.equal((run["status"], run["status_reason"], run["tags"]["wandb.entity"]), ("failed", "exit code 3", "team"), "an exit code, an entity")


def main():
    install.together(ends, *(functools.partial(first, version) for version in install.VERSIONS))
    lib.finish("basic")


main()
