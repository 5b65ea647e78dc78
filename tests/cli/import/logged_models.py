# SPDX-License-Identifier: Apache-2.0
"""Logged models of MLflow 3, in folders and in SQLite as it writes them: `dptrack import` keeps their ids, params, tags, points, files,
what runs made of them, and versions whose source is models:/m-…; a repeat changes nothing. With MLflow itself: with_mlflow.py."""
import sys
sys.dont_write_bytecode = True
import os
import sqlite3
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

CUT = "line 2: expected time, value, step, run; found '1700000002000 0.5 4'", "line 3 does not end in a line feed: '1700000003000 0.75 5 0a"
RUN, NET, GONE = "0a" * 16, "m-" + "1b" * 16, "m-" + "2c" * 16
TABLES = """
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT, lifecycle_stage TEXT);
CREATE TABLE experiment_tags (key TEXT, value TEXT, experiment_id INTEGER);
CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, lifecycle_stage TEXT, artifact_uri TEXT,
    experiment_id INTEGER);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER);
CREATE TABLE datasets (dataset_uuid TEXT, name TEXT, digest TEXT, dataset_source_type TEXT, dataset_source TEXT, dataset_schema TEXT, dataset_profile TEXT);
CREATE TABLE inputs (input_uuid TEXT, source_type TEXT, source_id TEXT, destination_type TEXT, destination_id TEXT, step INTEGER);
CREATE TABLE input_tags (input_uuid TEXT, name TEXT, value TEXT);
CREATE TABLE logged_models (model_id TEXT PRIMARY KEY, experiment_id INTEGER, name TEXT, artifact_location TEXT, creation_timestamp_ms INTEGER,
    status INTEGER, lifecycle_stage TEXT, model_type TEXT, source_run_id TEXT);
CREATE TABLE logged_model_params (model_id TEXT, experiment_id INTEGER, param_key TEXT, param_value TEXT);
CREATE TABLE logged_model_tags (model_id TEXT, experiment_id INTEGER, tag_key TEXT, tag_value TEXT);
CREATE TABLE logged_model_metrics (model_id TEXT, metric_name TEXT, metric_timestamp_ms INTEGER, metric_step INTEGER, metric_value REAL, run_id TEXT,
    dataset_name TEXT, dataset_digest TEXT);
CREATE TABLE registered_models (name TEXT PRIMARY KEY, description TEXT);
CREATE TABLE registered_model_tags (key TEXT, value TEXT, name TEXT);
CREATE TABLE registered_model_aliases (alias TEXT, version INTEGER, name TEXT);
CREATE TABLE model_versions (name TEXT, version INTEGER, description TEXT, current_stage TEXT, source TEXT, run_id TEXT);
CREATE TABLE model_version_tags (key TEXT, value TEXT, name TEXT, version INTEGER);
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def folders(root):
    at = f"{root}/mlruns/7"
    write(f"{at}/meta.yaml", f"artifact_location: file://{at}\nexperiment_id: '7'\nlifecycle_stage: active\nname: ex\n")
    write(f"{at}/{RUN}/meta.yaml", f"artifact_uri: file://{at}/{RUN}/artifacts\nend_time: 1700000009000\nexperiment_id: '7'\nlifecycle_stage: active\n"
          f"run_id: {RUN}\nrun_name: r1\nstart_time: 1700000000000\nstatus: 3\n")
    write(f"{at}/{RUN}/metrics/acc", "1700000001000 0.375 3\n1700000002000 0.5 4\n")
    write(f"{at}/{RUN}/outputs/{NET}/meta.yaml", f"destination_id: {RUN}\ndestination_type: MODEL_OUTPUT\nsource_id: {RUN}\nsource_type: RUN_OUTPUT\nstep: 2\n"
          "tags: {}\n")
    for model, name, stage, status in ((NET, "net", "active", 2), (GONE, "gone", "deleted", 1)):
        write(f"{at}/models/{model}/meta.yaml", f"artifact_location: file://{at}/models/{model}/artifacts\ncreation_timestamp: 1700000000500\n"
              f"experiment_id: '7'\nlast_updated_timestamp: 1700000000600\nlifecycle_stage: {stage}\nmodel_id: {model}\nmodel_type: null\nname: {name}\n"
              f"source_run_id: {RUN}\nstatus: {status}\nstatus_message: null\n")
    write(f"{at}/models/{NET}/params/p", "1")
    write(f"{at}/models/{NET}/tags/t", "v")
    write(f"{at}/models/{NET}/metrics/acc", f"1700000001000 0.375 3 {RUN}\n1700000002000 0.5 4 {RUN} set abc\n")
    write(f"{at}/models/{NET}/metrics/cut", f"1700000001000 0.25 3 {RUN}\r\n1700000002000 0.5 4\n1700000003000 0.75 5 {RUN}")
    write(f"{at}/models/{NET}/artifacts/MLmodel", "model\n")
    write(f"{at}/models/{NET}/artifacts/deep/data", "data\n")
    reg = f"{root}/mlruns/models/reg"
    write(f"{reg}/meta.yaml", "aliases:\n  champion: '1'\ncreation_timestamp: 1\ndescription: ''\nname: reg\n")
    write(f"{reg}/version-1/meta.yaml", f"aliases: []\ncurrent_stage: None\ndescription: ''\nname: reg\nrun_id: {RUN}\nsource: models:/{NET}\nversion: 1\n")
    return f"{root}/mlruns"


def database(root):
    place = f"{root}/files"
    write(f"{place}/models/{NET}/artifacts/MLmodel", "model\n")
    write(f"{place}/models/{NET}/artifacts/deep/data", "data\n")
    with sqlite3.connect(f"{root}/mlflow.db") as db:
        db.executescript(TABLES)
        rows = {"experiments": [(7, "ex", "active")], "registered_models": [("reg", "")], "registered_model_aliases": [("champion", 1, "reg")],
                "runs": [(RUN, "r1", "FINISHED", 1700000000000, 1700000009000, "active", f"file://{place}/{RUN}/artifacts", 7)],
                "metrics": [("acc", 0.375, 1700000001000, RUN, 3, 0), ("acc", 0.5, 1700000002000, RUN, 4, 0)],
                "logged_models": [(NET, 7, "net", f"file://{place}/models/{NET}/artifacts", 1, 2, "active", None, RUN),
                                  (GONE, 7, "gone", f"file://{place}/models/{GONE}/artifacts", 2, 1, "deleted", None, RUN)],
                "logged_model_params": [(NET, 7, "p", "1")], "logged_model_tags": [(NET, 7, "mlflow.modelVersions", '[{"name": "reg", "version": 1}]'), (NET, 7, "t", "v")],
                "logged_model_metrics": [(NET, "acc", 1700000001000, 3, 0.375, RUN, None, None), (NET, "acc", 1700000002000, 4, 0.5, RUN, "set", "abc")],
                "inputs": [("i", "RUN_OUTPUT", RUN, "MODEL_OUTPUT", NET, 2)], "model_versions": [("reg", 1, "", "None", f"models:/{NET}", RUN)]}
        for table, values in rows.items():
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
    db.close()
    return f"{root}/mlflow.db"


def imported(path, into, more=(), left_out=()):
    for _ in range(2):
        done = subprocess.run([lib.PROGRAM, "import", path, "--logdir", into], capture_output=True, text=True, timeout=120)
        lib.equal((done.returncode, done.stderr), (0, ""), "import " + path)
        lib.equal(done.stdout.count("skipped:"), len(left_out), done.stdout)
        for text in left_out:
            lib.check(text in done.stdout, f"{text!r} in {done.stdout}")
    server = lib.Server(into)

    def ask(route):
        status, reply = server.json("GET", "/api/2.0/mlflow/" + route)
        return lib.check(status == 200, f"{route}: {status} {reply}") and reply

    model = ask("logged-models/" + NET)["model"]
    lib.equal((model["info"]["name"], model["info"]["status"], model["info"]["source_run_id"]), ("net", "LOGGED_MODEL_READY", RUN), "the model")
    lib.equal([t["value"] for t in model["info"]["tags"] if t["key"] == "mlflow.modelVersions"], ['[{"name": "reg", "version": 1}]'], "its versions")
    lib.equal([[t for t in model["info"]["tags"] if t["key"] != "mlflow.modelVersions"], model["data"].get("params")], [[{"key": "t", "value": "v"}], [{"key": "p", "value": "1"}]], "its tags and params")
    lib.equal([(m["key"], m["value"], m["step"], m["run_id"], m.get("dataset_name")) for m in model["data"]["metrics"]],
              [("acc", 0.375, 3, RUN, None), ("acc", 0.5, 4, RUN, "set"), *more], "its points")
    lib.equal(server.json("GET", "/api/2.0/mlflow/logged-models/" + GONE)[0], 404, "a model that was deleted")
    run = ask("runs/get?run_id=" + RUN)["run"]
    lib.equal(run["outputs"]["model_outputs"], [{"model_id": NET, "step": "2"}] if isinstance(run["outputs"]["model_outputs"][0]["step"], str)
              else [{"model_id": NET, "step": 2}], "what the run made")
    lib.equal(len(ask(f"metrics/get-history?run_id={RUN}&metric_key=acc")["metrics"]), 2, "points of the run")
    version = ask("model-versions/get?name=reg&version=1")["model_version"]
    lib.equal((version["source"], version["run_id"]), ("models:/" + NET, RUN), "the version")
    lib.equal(ask("registered-models/alias?name=reg&alias=champion")["model_version"]["version"], "1", "the alias")
    lib.equal(server.request("GET", "/model-versions/get-artifact?name=reg&version=1&path=deep/data")[2], b"data\n", "a file")
    lib.equal(server.stop(), 0, "exit code")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        for name, make, *extra in (("folders", folders, [("cut", 0.25, 3, RUN, None)], CUT), ("database", database)):
            os.makedirs(f"{folder}/{name}")
            imported(make(f"{folder}/{name}"), f"{folder}/{name}/into", *extra)
    lib.finish("logged_models")


main()
