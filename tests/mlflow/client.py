# SPDX-License-Identifier: Apache-2.0
"""Runs the classic flow (flow.py) of the official MLflow client (3.17.2 from PyPI, in build/venv/mlflow) against a
running server; then its commands, against a server that requires a token; then the client reads the data sets of a
training over S3. Skips where the client cannot be installed."""
import sys
sys.dont_write_bytecode = True
import json
import os
import subprocess
import tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
for part in ("api", "data"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), part))
import lib  # noqa: E402
import install  # noqa: E402
import noisy  # noqa: E402
import s3server  # noqa: E402

INPUTS = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
(run,) = client.search_runs([client.get_experiment_by_name("far").experiment_id])
print(json.dumps([[i.dataset.source_type, i.dataset.source, len(i.dataset.digest), json.loads(i.dataset.profile)["samples"], {t.key: t.value for t in i.tags}]
                  for i in client.get_run(run.info.run_id).inputs.dataset_inputs]))
"""


def commands(python, environment):
    """mlflow runs, experiments and artifacts, with every way to pass a token."""
    with lib.fresh() as server:
        run = lib.make_run(server, "told", "by hand", {"lr": 0.5})
        lib.equal(server.request("PUT", f"/api/v1/runs/{run}/artifacts/a/b.txt", b"words")[0], 200, "PUT")
        experiment = server.json("GET", f"/api/v1/runs/{run}")[1]["experiment_id"]
        owner = {"Authorization": f"Bearer {server.owner_token()}"}
        token = server.json("POST", "/api/v1/tokens", {"name": "reader", "scope": "read"}, headers=owner)[1]["token"]
        bearer, basic = {"MLFLOW_TRACKING_TOKEN": token}, {"MLFLOW_TRACKING_USERNAME": "any", "MLFLOW_TRACKING_PASSWORD": token}
        with tempfile.TemporaryDirectory() as folder:
            for secret, code, word, *args in (
                    (bearer, 0, run, "runs", "list", "--experiment-id", experiment), (basic, 0, "params.lr", "experiments", "csv", "-x", experiment),
                    (bearer, 0, "", "artifacts", "download", "-r", run, "-d", folder), ({}, 1, "MLFLOW_TRACKING_TOKEN", "experiments", "search"),
                    (bearer, 1, "scope write", "experiments", "create", "-n", "new")):
                done = subprocess.run([python, "-m", "mlflow", *args], env=dict(environment, MLFLOW_TRACKING_URI=server.url, **secret),
                                      capture_output=True, text=True, timeout=120)
                lib.check(done.returncode == code and word in done.stdout + done.stderr, f"mlflow {' '.join(args)}: {done.returncode} {done.stdout[-300:]} {done.stderr[-500:]}")
            with open(os.path.join(folder, "a", "b.txt"), encoding="utf-8") as f:
                lib.equal(f.read(), "words", "the file of mlflow artifacts download")


def trained(python, environment):
    """The data sets of a run of dptrain over S3, as seen by the client."""
    dptrain = os.path.join(lib.BUILD, "dptrain")
    with lib.fresh() as server, tempfile.TemporaryDirectory() as tmp:
        noisy.folder(os.path.join(tmp, "folder"), {"train": 12, "val": 5})
        bucket = s3server.S3(tmp)
        for command, env in ((["shard", "--data-path", f"{tmp}/folder", "--out", f"{tmp}/shards"], None),
                             (["--data-path", "s3://shards", "--model", "resnet20", "--image-size", "32", "-b", "4", "--threads", "1", "--experiment", "far",
                               "--max-steps", "2", "--runs-dir", f"{tmp}/runs", "--report-to", server.url], bucket.environment())):
            done = subprocess.run([dptrain, *command], env=env, capture_output=True, text=True, timeout=300)
            lib.equal((done.returncode, done.stderr if done.returncode else ""), (0, ""), f"dptrain {command[0]}")
        bucket.stop()
        done = subprocess.run([python, "-c", INPUTS, server.url], env=environment, capture_output=True, text=True, timeout=120)
        lib.equal((done.returncode, done.stderr[-500:] if done.returncode else ""), (0, ""), "the client")
        lib.equal(json.loads(done.stdout), [["s3", "s3://shards", 64, n, {"mlflow.data.context": context}] for n, context in ((12, "training"), (5, "validation"))],
                  "the inputs as seen by the client")


def main():
    python, environment = install.client(lib.BUILD), install.environment(lib.BUILD)
    with lib.fresh() as server:
        said, problem = install.flow(python, environment, server.url)
        print(said)
        lib.check(not problem, f"the flow: {problem}")
        run = server.json("GET", "/api/v1/runs?filter=tags.stage='test'")[1]["runs"][0]
        lib.equal((run["experiment"], run["name"], run["status"], run["metrics"]["loss"]["count"]), ("flow", "outer", "finished", 10),
                  "what the client logged, read with REST v1")
    commands(python, environment)
    trained(python, environment)
    lib.finish("client")


main()
