# SPDX-License-Identifier: Apache-2.0
"""Runs that are resumed, rewound, begun again, sent later (wandb sync) and written by several processes; tags, notes,
step metrics, alerts, a stop; files, media and tables; rewritten lines of the console. With W&B's own package."""
import sys
sys.dont_write_bytecode = True
import subprocess
import tempfile
import time
import install
lib = install.lib

AGAIN = """
import wandb
for part in range(3):
    with wandb.init(project="again", name="resumed", id="res", resume="allow", config={"part": part}, tags=["t"]) as run:
        assert run.resumed == (part > 0), run.resumed
        for i in range(5):
            run.log({"x": part * 10 + i})
        print("part", part)
with wandb.init(project="again", id="rew", name="rewound") as run:
    for i in range(10):
        run.log({"x": i})
with wandb.init(project="again", resume_from="rew?_step=4") as run:
    for i in range(5):
        run.log({"x": 100 + i})
"""

NEVER = """
import wandb
wandb.init(project="again", id="res", resume="never")
"""

STEPS = """
import sys, time, wandb
run = wandb.init(project="steps", name="steps")
run.define_metric("epoch")
run.define_metric("val/*", step_metric="epoch")
run.define_metric("loss", summary="min")
for i in range(6):
    run.log({"loss": 6 - i})
    if i % 2:
        run.log({"val/acc": i / 10, "epoch": i // 2})
run.alert("low", "it is low", level=wandb.AlertLevel.WARN)
run.finish()
"""

MEDIA = """
import numpy as np
run = wandb.init(project="media", name="media")
picture = np.zeros((8, 8, 3), dtype=np.uint8)
picture[:, :4] = 255
table = wandb.Table(columns=["a", "b"], data=[[1, "x"], [2.5, "y"]])
run.log({"one": wandb.Image(picture, caption="a caption"), "many": [wandb.Image(picture), wandb.Image(255 - picture)], "hist": wandb.Histogram([1, 2, 2, 3]),
         "table": table, "page": wandb.Html("<p>hello</p>"), "word": "text"})
with open("weights.bin", "wb") as f:
    f.write(bytes(range(256)) * 100)
run.save("weights.bin", policy="now")
run.log({"loss": 1})
run.finish()
"""

BARS = """
run = wandb.init(project="bars", name="bars")
for i in range(60):
    sys.stderr.write("\\r%3d of 60" % (i + 1))
    sys.stderr.flush()
    if i % 5 == 0:
        run.log({"i": i})
    time.sleep(0.01)
sys.stderr.write("\\n")
print("after the bar")
"""

OFFLINE = """
import wandb
run = wandb.init(project="later", name="later", id="off", mode="offline", config={"a": 1})
for i in range(50):
    run.log({"x": i * i})
print("said offline")
run.summary["end"] = "reached"
"""

SLOW = """
import time, wandb
run = wandb.init(project="stop", name="slow", settings=wandb.Settings(x_file_stream_transmit_interval=0.2))
for i in range(100000):
    run.log({"x": i * 7})
    time.sleep(0.015)
"""

SHARED = """
import sys, wandb
rank = int(sys.argv[1])
run = wandb.init(project="shared", id="many", name="many", settings=wandb.Settings(mode="shared", x_label=f"rank{rank}", x_primary=rank == 0, x_update_finish_state=rank == 0))
for i in range(20):
    run.log({f"x{rank}": i + rank})
print("rank", rank)
"""


def again():
    with lib.fresh() as server:
        install.script(server, AGAIN)
        run = install.run_of(server, "again", "resumed")
        lib.equal(install.points(server, run, "x"), [(part * 5 + i, part * 10 + i) for part in range(3) for i in range(5)], "the points of three sessions")
        lib.equal((run["status"], run["params"]["part"]), ("finished", "2"), "status and the changed param")
        parts = [server.json("GET", f"/api/v1/runs/{run['id']}/console?segment={part}")[1]["lines"] for part in range(3)]
        lib.equal([[line["text"] for line in lines] for lines in parts], [["part 0"], ["part 1"], ["part 2"]], "the console of three sessions")
        run = install.run_of(server, "again", "rewound")
        lib.equal(install.points(server, run, "x"), [(i, i) for i in range(5)] + [(5 + i, 100 + i) for i in range(5)], "the points after a rewind")
        install.script(server, NEVER, code=1)


def logged():
    """Three runs of one process."""
    with lib.fresh() as server:
        install.script(server, STEPS + MEDIA + BARS)
        run = install.run_of(server, "steps", "steps")
        lib.equal(install.points(server, run, "val/acc"), [(0, 0.1), (1, 0.3), (2, 0.5)], "steps of define_metric")
        alerts = server.json("GET", f"/api/v1/runs/{run['id']}/alerts")[1]["alerts"]
        lib.equal([(a["title"], a["text"], a["level"]) for a in alerts], [("low", "it is low", "warning")], "the alert")
        run = install.run_of(server, "media", "media")
        found = server.json("GET", f"/api/v1/runs/{run['id']}/media")[1]
        lib.equal({k["key"]: k["kind"] for k in found["keys"]},
                  {"one": "image", "one/caption": "text", "many/0": "image", "many/1": "image", "hist": "histogram", "table": "table", "page": "text", "word": "text"},
                  "media")
        status, _, data = server.request("GET", f"/api/v1/runs/{run['id']}/artifacts/weights.bin")
        lib.equal((status, data), (200, bytes(range(256)) * 100), "a saved file")
        run = install.run_of(server, "bars", "bars")
        lines = [line["text"] for line in server.json("GET", f"/api/v1/runs/{run['id']}/console")[1]["lines"]]
        lib.equal([line for line in lines if "of 60" in line or "after" in line], [" 60 of 60", "after the bar"], "a progress bar")


def later():
    with lib.fresh() as server, tempfile.TemporaryDirectory() as folder:
        install.script(server, OFFLINE, folder=folder)
        for options in ([], ["--include-synced"]):
            install.sync(server, folder, *options)
            run = install.run_of(server, "later", "later")
            lib.equal(install.points(server, run, "x"), [(i, i * i) for i in range(50)], "an offline folder")
            lib.equal((run["status"], run["params"], run["tags"].get("end")), ("finished", {"a": "1"}, "reached"), "its status, config and summary")


def stopped():
    """POST /stop ends a script that records."""
    with lib.fresh() as server, tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([install.client(), "-c", SLOW], env=install.environment(server, folder), cwd=folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        while not server.json("GET", "/api/v1/runs")[1]["runs"] and process.poll() is None:
            time.sleep(0.2)
        run = server.json("GET", "/api/v1/runs")[1]["runs"][0]
        lib.equal(server.json("POST", f"/api/v1/runs/{run['id']}/stop"), (200, {"stopping": True}), "the request to stop")
        said, _ = process.communicate(timeout=120)
        lib.check(process.returncode != 0, f"the script ends: {said[-500:]}")
        lib.check(install.run_of(server, "stop", "slow")["status"] in ("killed", "failed"), "its status")
        other = lib.make_run(server)
        lib.equal(server.json("POST", f"/api/v1/runs/{other}/stop"), (200, {"stopping": False}), "a run of another program")


def shared():
    with lib.fresh() as server, tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen([install.client(), "-c", SHARED, str(rank)], env=install.environment(server, folder), cwd=folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True) for rank in range(3)]
        for process in processes:
            said, _ = process.communicate(timeout=180)
            lib.equal(process.returncode, 0, f"a rank: {said[-1500:]}")
        run = install.run_of(server, "shared", "many")
        for rank in range(3):
            lib.equal(sorted(v for _, v in install.points(server, run, f"x{rank}")), [i + rank for i in range(20)], f"rank {rank}")
        lib.equal(run["status"], "finished", "status")


def main():
    install.together(*(globals()[flow] for flow in sys.argv[1:] or ("again", "logged", "later", "shared", "stopped")))
    lib.finish("flows")


main()
