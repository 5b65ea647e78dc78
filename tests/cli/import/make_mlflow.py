# SPDX-License-Identifier: Apache-2.0
"""Makes the samples mlflow.sql and mlruns in this folder, and mlflow.json with what MLflow's client returns for both.
It needs MLflow 3.17.2. `make_mlflow.py FOLDER` makes them there: mlflow.db itself, and paths that refer to its
files."""
import json
import os
import shutil
import sqlite3
import sys
import tempfile

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"] = "false"
import mlflow  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.data.meta_dataset import MetaDataset  # noqa: E402
from mlflow.data.http_dataset_source import HTTPDatasetSource  # noqa: E402
from mlflow.entities import Metric, Param, RunTag, ViewType  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ("experiments", "experiment_tags", "runs", "params", "tags", "metrics", "latest_metrics", "datasets", "inputs", "input_tags",
          "logged_models", "logged_model_params", "logged_model_tags", "registered_models", "registered_model_tags",
          "registered_model_aliases", "model_versions", "model_version_tags")
FIRST_MS = 1_700_000_000_000


def a_run(client, experiment, name, number):
    """Creates a run with fixed times, so that a sample made again differs only in ids."""
    start = FIRST_MS + number * 100_000
    run = client.create_run(experiment, start_time=start, run_name=name, tags={"mlflow.user": "ada", "mlflow.source.name": "train.py"})
    metrics = [Metric("loss", 1 / (i + 1) + number, start + i * 7, i) for i in range(40)]
    metrics += [Metric("val/acc", 0.25 * i, start + i, -i) for i in range(3)]
    metrics += [Metric("odd", v, start + i, i) for i, v in enumerate((float("nan"), float("inf"), -0.0, 1e-300))]
    params = [Param("lr", str(0.1 * (number + 1))), Param("text", "a: 'b' \"c\" # d\n  e\t\\ é 日本 " + "long words " * 20), Param("empty-ish", " "),
              Param("number-like", "1e5"), Param("yes", "true"), Param("dir/param", "x")]
    client.log_batch(run.info.run_id, metrics, params, [RunTag("note", "line 1\nline 2: x"), RunTag("team/a", "vision"), RunTag("colon", "a: b")])
    return run.info.run_id, start


def fill(uri, folder=None):
    """folder: where files are stored; None: in the folders of the runs, as the file store does."""
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    client = MlflowClient()
    first = client.create_experiment("seeds: and more", artifact_location=folder, tags={"owner": "ada", "why": "a\nb"})
    second = client.create_experiment("gone", artifact_location=folder)
    ids = []
    for number, (experiment, status) in enumerate(((first, "FINISHED"), (first, "FAILED"), (first, "KILLED"), (first, "RUNNING"), (second, "FINISHED"))):
        run, start = a_run(client, experiment, f"run {number}", number)
        ids.append(run)
        if status != "RUNNING":
            client.set_terminated(run, status, start + 60_000)
    client.log_text(ids[0], "hello\n", "notes/hello.txt")
    client.log_text(ids[0], "", "notes/empty ü.txt")
    client.log_text(ids[0], "model\n", "model/MLmodel")
    client.log_dict(ids[1], {"a": 1}, "d.json")
    with mlflow.start_run(run_id=ids[1]):
        mlflow.log_input(MetaDataset(HTTPDatasetSource("https://example.com/data"), name="cifar"), context="train")
    client.set_terminated(ids[1], "FAILED", FIRST_MS + 160_000)
    client.set_tag(ids[2], "mlflow.parentRunId", ids[0])
    client.set_tag(ids[2], "mlflow.note.content", "# why\n\nit *was* killed")
    client.delete_run(ids[2])
    client.delete_experiment(second)
    registry(client, ids)
    return client


def registry(client, ids):
    client.create_registered_model("resnet", tags={"task": "images"}, description="first: the best")
    client.create_registered_model("empty")
    source = client.get_run(ids[0]).info.artifact_uri + "/model"
    for number in range(3):
        client.create_model_version("resnet", source, ids[0], tags={"n": str(number)}, description=f"version {number}")
    client.delete_model_version("resnet", "2")
    client.set_registered_model_alias("resnet", "best", "3")
    client.transition_model_version_stage("resnet", "1", "Staging")


def describe(client):
    """Returns what the client returns, without what an import does not keep: file locations, times of the registry."""
    out = {"experiments": [], "runs": [], "models": []}
    for e in client.search_experiments(view_type=ViewType.ALL):
        out["experiments"].append([e.name, e.lifecycle_stage, {k: v for k, v in e.tags.items() if not k.startswith("mlflow.experiment")}])
        for r in client.search_runs([e.experiment_id], run_view_type=ViewType.ALL):
            i = r.info
            history = {k: sorted([repr(m.value), m.timestamp, m.step] for m in client.get_metric_history(i.run_id, k)) for k in r.data.metrics}
            inputs = [[d.dataset.name, d.dataset.digest, d.dataset.source_type, sorted([t.key, t.value] for t in d.tags)] for d in r.inputs.dataset_inputs]
            out["runs"].append({"id": i.run_id, "name": i.run_name, "status": i.status, "start": i.start_time, "end": i.end_time,
                                "stage": i.lifecycle_stage, "experiment": e.name, "params": r.data.params, "tags": r.data.tags,
                                "latest": {k: repr(v) for k, v in r.data.metrics.items()}, "history": history, "inputs": inputs,
                                "files": files(client, i.run_id, "")})
    for m in client.search_registered_models():
        versions = [[v.version, v.description, v.current_stage, v.run_id, v.tags] for v in client.search_model_versions(f"name='{m.name}'")]
        out["models"].append([m.name, m.description or "", m.tags, {a: str(v) for a, v in m.aliases.items()}, sorted(versions)])
    for part in ("experiments", "models"):
        out[part].sort(key=lambda item: item[0])
    out["runs"].sort(key=lambda r: r["id"])
    return out


def files(client, run, path):
    found = {}
    for f in client.list_artifacts(run, path):
        if f.is_dir:
            found.update(files(client, run, f.path))
        else:
            found[f.path] = f.file_size or 0
    return found


def dump(database, to):
    """Writes the relevant tables as text: the complete file has a megabyte of other tables' indexes. @HERE@ is its
    folder."""
    here = os.path.dirname(database)
    with sqlite3.connect(database) as db, open(to, "w", encoding="utf-8") as out:
        for table in TABLES:
            out.write(db.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()[0] + ";\n")
            for row in db.execute(f"SELECT {quoted(db, table)} FROM {table} ORDER BY rowid"):
                out.write(f"INSERT INTO {table} VALUES ({', '.join(map(str, row))});\n".replace(here, "@HERE@"))


def quoted(db, table):
    return ", ".join(f"quote({c[1]})" for c in db.execute(f"PRAGMA table_info({table})"))


def make(folder):
    os.makedirs(folder, exist_ok=True)
    database = os.path.join(folder, "mlflow.db")
    by_db = describe(fill("sqlite:///" + database, os.path.join(folder, "files")))
    by_files = describe(fill("file://" + os.path.join(folder, "mlruns")))
    with open(os.path.join(folder, "mlflow.json"), "w", encoding="utf-8") as f:
        json.dump({"db": by_db, "mlruns": by_files}, f, indent=0, sort_keys=True)
    return database


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(os.path.abspath(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="/tmp/mlflow-") as made:
            dump(make(made), os.path.join(HERE, "mlflow.sql"))
            shutil.copy(os.path.join(made, "mlflow.json"), HERE)
            for name in ("mlruns", "files"):
                shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
                shutil.copytree(os.path.join(made, name), os.path.join(HERE, name))
