# SPDX-License-Identifier: Apache-2.0
"""Artifacts with W&B's own package (versions by content, aliases, use, download), and wandb.Api() reading back what a
script logged; the same below a path of a proxy, with the files in an object store."""
import http.client
import http.server
import os
import sys
import tempfile
import threading
sys.dont_write_bytecode = True
import install
lib = install.lib
sys.path.insert(0, os.path.join(lib.SOURCE, "tests", "data"))
import s3server  # noqa: E402
from objectserver import Quiet  # noqa: E402

MAKES = """
import wandb
run = wandb.init(project="art", name="maker", id="maker", config={"lr": 0.5, "deep": {"a": [1, 2]}}, tags=["red"])
run.define_metric("val/*", step_metric="epoch")
for i in range(30):
    run.log({"loss": 30 - i, "acc": i / 30, "val/acc": i / 7, "epoch": 100 + i // 3})
for text in ("first", "second", "second"):
    with open("data.txt", "w") as f:
        f.write(text)
    artifact = wandb.Artifact("set", type="dataset", description="words", metadata={"n": len(text)})
    artifact.add_file("data.txt")
    artifact.add_file("data.txt", name="deep/copy.txt")
    run.log_artifact(artifact, aliases=["latest", text]).wait()
run.summary["best"] = 1
with open("note.txt", "w") as f:
    f.write("a note")
run.save("note.txt")
"""

USES = """
import os
run.finish()
run = wandb.init(project="art", name="user", id="user")
used = run.use_artifact("set:latest")
assert used.version == "v1", used.version
folder = used.download()
assert open(os.path.join(folder, "data.txt")).read() == "second"
assert open(os.path.join(folder, "deep/copy.txt")).read() == "second"
first = run.use_artifact("dptrack/art/set:first")
assert first.version == "v0" and first.metadata == {"n": 5} and first.description == "words", (first.version, first.metadata, first.description)
assert open(first.get_entry("data.txt").download()).read() == "first"
run.log({"loss": 1})
"""

# Versions that are made of others, of several runs' files, and of references: each download has all files.
GROWS = """
import os
import wandb

def made(name, files, type="dataset", **more):
    artifact = wandb.Artifact(name, type=type, **more)
    for path in files:
        with artifact.new_file(path) as f:
            f.write(path + " of " + name)
    return artifact

def downloaded(name):
    artifact = wandb.Api().artifact("dptrack/grow/" + name)
    folder = artifact.download(f"down/{artifact.collection.name}-{artifact.version}")
    if artifact.type != "references":
        artifact.verify(folder)
    found = {os.path.relpath(os.path.join(d, f), folder): open(os.path.join(d, f)).read() for d, _, names in os.walk(folder) for f in names}
    assert sum(1 for _ in artifact.files()) == len(found) == artifact.file_count, (name, found, artifact.file_count)
    assert artifact.size == sum(len(text) for text in found.values()), (name, artifact.size, found)
    return artifact, found

run = wandb.init(project="grow", id="first")
for path in ("a", "b", "c/d"):
    run.log_artifact(made("parts", [path], incremental=True)).wait()
assert downloaded("parts:v0")[1] == {"a": "a of parts"}
artifact, found = downloaded("parts:latest")
assert found == {path: path + " of parts" for path in ("a", "b", "c/d")}, found
draft = artifact.new_draft()
draft.remove("b")
with draft.new_file("e") as f:
    f.write("e of draft")
run.log_artifact(draft).wait()
assert downloaded("parts:latest")[1] == {"a": "a of parts", "c/d": "c/d of parts", "e": "e of draft"}
run.log_artifact(made("parts", ["b"], incremental=True)).wait()
assert set(downloaded("parts:latest")[1]) == {"a", "b", "c/d", "e"} and wandb.Api().artifact("dptrack/grow/parts:latest").version == "v4"
os.makedirs("far/deep")
for path in ("far/one", "far/deep/two"):
    with open(path, "w") as f:
        f.write(path)
references = made("references", ["here"], "references")
references.add_reference("file://" + os.path.abspath("far"))
run.log_artifact(references).wait()
assert downloaded("references:v0")[1] == {"here": "here of references", "one": "far/one", "deep/two": "far/deep/two"}
run.log_artifact(made("kept", ["x"], metadata={"n": 1}), tags=["red"]).wait()
run.log_artifact(made("kept", ["x"], metadata={"n": 2}), tags=["blue"]).wait()
kept, _ = downloaded("kept:latest")
assert (kept.version, kept.metadata, sorted(kept.tags)) == ("v0", {"n": 1}, ["blue", "red"]), (kept.version, kept.metadata, kept.tags)
kept.tags = ["blue", "green"]
kept.save()
assert sorted(downloaded("kept:latest")[0].tags) == ["blue", "green"]
try:
    kept.delete()
    assert False, "it has an alias"
except (ValueError, wandb.errors.CommError):
    assert downloaded("kept:v0")[1] == {"x": "x of kept"}
kept.delete(delete_aliases=True)
assert not wandb.Api().artifact_exists("dptrack/grow/kept:v0")
run.upsert_artifact(made("shared", ["rank0"]), distributed_id="job")
run.finish()
run = wandb.init(project="grow", id="second")
run.finish_artifact(made("shared", ["rank1"]), distributed_id="job").wait()
assert downloaded("shared:latest")[1] == {"rank0": "rank0 of shared", "rank1": "rank1 of shared"}
run.log_artifact(made("parts", ["a"])).wait()
run.finish()
logged = {r: sorted(a.name for a in wandb.Api().run("dptrack/grow/" + r).logged_artifacts()) for r in ("first", "second")}
assert logged == {"first": ["parts:v0", "parts:v1", "parts:v2", "parts:v3", "parts:v4", "references:v0", "shared:v0"], "second": ["parts:v0"]}, logged
assert not wandb.Api().run("dptrack/grow/second").used_artifacts()
"""

READS = """
import wandb
api = wandb.Api()
run = api.run("dptrack/art/maker")
assert (run.name, run.state, run.tags, run.config) == ("maker", "finished", ["red"], {"lr": 0.5, "deep": {"a": [1, 2]}}), (run.name, run.state, run.tags, run.config)
assert run.summary["best"] == 1 and run.summary["loss"] == 1, dict(run.summary)
rows = run.history(samples=1000, pandas=False)
assert [(r["_step"], r["loss"]) for r in rows] == [(i, 30 - i) for i in range(30)], rows
assert [(r["_step"], r["val/acc"], r["epoch"]) for r in rows] == [(i, i / 7, 100 + i // 3) for i in range(30)], rows
rows = run.history(keys=["val/acc"], x_axis="epoch", pandas=False)
assert [(r["epoch"], r["val/acc"]) for r in rows] == [(100 + i // 3, i / 7) for i in range(30)], rows
assert [r["val/acc"] for r in run.scan_history(keys=["val/acc"], page_size=7)] == [i / 7 for i in range(30)] and run.lastHistoryStep == 29
assert len(run.history(samples=10, keys=["loss"], pandas=False)) == 10
assert [r["acc"] for r in run.scan_history(keys=["acc"], page_size=7)] == [i / 30 for i in range(30)]
assert [r["loss"] for r in run.scan_history()] == [30 - i for i in range(30)]
assert set(next(iter(run.scan_history(keys=["acc"])))) == {"_step", "acc"} and set(next(iter(run.scan_history(keys=["acc", "_runtime"])))) == {"_step", "acc", "_runtime"}
assert [r.name for r in api.runs("dptrack/art", filters={"config.lr": 0.5})] == ["maker"]
assert [r.name for r in api.runs("dptrack/art", filters={"$or": [{"state": "finished"}, {"tags": "red"}]}, order="+created_at")] == ["maker", "user"]
assert len(api.runs("dptrack/art", filters={"summary_metrics.loss": {"$lt": 0}})) == 0
files = {f.name: f for f in run.files()}
assert "note.txt" in files and files["note.txt"].size == 6, list(files)
assert files["note.txt"].download(replace=True).read() == "a note"
assert [a.name for a in run.logged_artifacts() if a.type == "dataset"] == ["set:v0", "set:v1"], [a.name for a in run.logged_artifacts()]
user = api.run("dptrack/art/user")
assert sorted(a.name for a in user.used_artifacts()) == ["set:v0", "set:v1"]
artifact = api.artifact("dptrack/art/set:latest")
assert artifact.version == "v1" and sorted(artifact.aliases) == ["latest", "second"], artifact.aliases
assert artifact.logged_by().id == "maker" and [r.id for r in artifact.used_by()] == ["user"]
assert [a.version for a in api.artifacts("dataset", "dptrack/art/set")] == ["v1", "v0"]
artifact.aliases.append("good")
artifact.save()
assert api.artifact("dptrack/art/set:good").version == "v1"
run.tags.append("blue")
run.update()
assert sorted(api.run("dptrack/art/maker").tags) == ["blue", "red"]
"""


class Below(http.server.ThreadingHTTPServer):
    """A proxy that has the server at /track/."""
    daemon_threads = True

    def __init__(self, server):
        super().__init__(("127.0.0.1", 0), BelowHandler)
        self.host, self.port, self.url = server.host, server.port, f"http://127.0.0.1:{self.server_address[1]}/track"
        threading.Thread(target=self.serve_forever, daemon=True).start()


    def handle_error(self, request, client_address):
        """A script that ends resets its connections."""


class BelowHandler(Quiet):
    def forward(self):
        lib.check(self.path.startswith("/track/"), f"{self.command} {self.path} is not below the path of the proxy")
        c = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        c.request(self.command, self.path[6:], body, dict(self.headers) | {"X-Forwarded-Host": self.headers["Host"], "X-Forwarded-Prefix": "/track"})
        reply = c.getresponse()
        data = reply.read()
        own = ("transfer-encoding", "connection", "content-length", "date", "server")
        self.answer(reply.status, data, **{k: v for k, v in reply.getheaders() if k.lower() not in own})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward


def read(version, server, front=None):
    install.script(front or server, MAKES + USES, version)
    maker = install.run_of(server, "art", "maker")
    status, _, data = server.request("GET", f"/api/v1/runs/{maker['id']}/artifacts/wandb-artifacts/set/v1/data.txt")
    lib.equal((status, data), (200, b"second"), "a file of an artifact")
    install.script(front or server, READS, version)
    install.script(front or server, GROWS, version)


def direct(version):
    with lib.fresh() as server:
        read(version, server)


def in_objects(version):
    with tempfile.TemporaryDirectory() as folder:
        bucket = os.path.join(folder, "shop", "team")
        os.makedirs(bucket)
        logdir = os.path.join(folder, "runs")
        server = lib.Server(logdir, "--artifacts", "s3://shop/team", env=s3server.S3(folder).environment())
        read(version, server, Below(server))
        server.stop()
        lib.check(len(os.listdir(bucket)) >= 5 and not os.path.exists(logdir + "/dptrack.artifacts"), f"the files are objects: {os.listdir(bucket)}")


def main():
    install.together(lambda: direct(install.NEWEST), lambda: direct("0.22.0"), lambda: in_objects("0.28.2"))
    lib.finish("reading")


main()
