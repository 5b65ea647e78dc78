# SPDX-License-Identifier: Apache-2.0
"""The classic flow of MLflow's own Python client against a server whose address is the first argument; each step checks what
it reads back. Run by client.py with the client installed; does not depend on the server's implementation."""
import json
import os
import sys
import tempfile
import time

os.environ["MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"] = "false"
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
os.environ["MPLBACKEND"] = "Agg"
import mlflow  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType  # noqa: E402
from mlflow.exceptions import MlflowException, RestException  # noqa: E402

URL = sys.argv[1]
mlflow.set_tracking_uri(URL)
client = MlflowClient()


def expect(ok, what):
    if not ok:
        raise AssertionError(what)


def refused(code, call, *args, **kw):
    try:
        call(*args, **kw)
    except MlflowException as e:
        expect(e.error_code == code, f"{e.error_code}: {e}")
        return str(e)
    raise AssertionError(f"{call} was not refused")


def now():
    return int(time.time() * 1000)


def fluent():
    first = mlflow.set_experiment("flow")
    expect(mlflow.set_experiment("flow").experiment_id == first.experiment_id, "set_experiment finds the same experiment")
    with mlflow.start_run(run_name="outer", tags={"who": "me"}, description="a *note*") as run:
        mlflow.log_param("lr", 0.1)
        mlflow.log_params({"depth": 3, "long": "x" * 7000})
        for i in range(10):
            mlflow.log_metric("loss", 1 / (i + 1), step=i)
        mlflow.log_metrics({"acc": 0.5, "nan": float("nan"), "inf": float("inf")}, step=3)
        mlflow.set_tags({"stage": "test", "ünïcode": "grüße"})
        with mlflow.start_run(nested=True, run_name="inner") as inner:
            mlflow.log_metric("x", 2)
        refused("INVALID_PARAMETER_VALUE", mlflow.log_param, "lr", 0.2)
        mlflow.log_param("lr", 0.1)
    got = client.get_run(run.info.run_id)
    expect(got.info.status == "FINISHED" and got.info.end_time, got.info)
    expect(got.data.params["lr"] == "0.1" and len(got.data.params["long"]) == 6000, got.data.params["lr"])
    expect(got.data.metrics["loss"] == 0.1 and got.data.metrics["nan"] != got.data.metrics["nan"], got.data.metrics)
    expect(got.data.tags["ünïcode"] == "grüße" and got.data.tags["mlflow.note.content"] == "a *note*", got.data.tags)
    expect(client.get_run(inner.info.run_id).data.tags["mlflow.parentRunId"] == run.info.run_id, "the parent's tag")
    history = client.get_metric_history(run.info.run_id, "loss")
    expect([(m.step, m.value) for m in history] == [(i, 1 / (i + 1)) for i in range(10)], history)
    frame = mlflow.search_runs(experiment_names=["flow"], filter_string="params.lr = '0.1' and metrics.loss < 0.2",
                               order_by=["metrics.loss DESC"])
    expect(list(frame["run_id"]) == [run.info.run_id], frame)
    expect(frame["metrics.acc"][0] == 0.5 and frame["tags.stage"][0] == "test", frame)
    return run


def failing():
    try:
        with mlflow.start_run() as run:
            raise KeyError("x")
    except KeyError:
        pass
    expect(client.get_run(run.info.run_id).info.status == "FAILED", "a run that raised")


def batches():
    run = client.create_run(client.get_experiment_by_name("flow").experiment_id)
    t = now()
    metrics = [Metric(f"m{i % 50}", i, t + i, i) for i in range(800)]
    for _ in range(2):
        client.log_batch(run.info.run_id, metrics, [Param(f"p{i}", str(i)) for i in range(100)], [RunTag("a", "1"), RunTag("a", "2")])
    expect(len(client.get_metric_history(run.info.run_id, "m7")) == 16, "a repeated batch counts once")
    got = client.get_run(run.info.run_id)
    expect(len(got.data.metrics) == 50 and len(got.data.params) == 100 and got.data.tags["a"] == "2", "the batch")
    client.log_metric(run.info.run_id, "out", 1.0, timestamp=t, step=5)
    client.log_metric(run.info.run_id, "out", 2.0, timestamp=t, step=3)
    client.log_metric(run.info.run_id, "out", 1.0, timestamp=t, step=5)
    expect(client.get_run(run.info.run_id).data.metrics["out"] == 1.0, "latest is by step")
    expect([m.step for m in client.get_metric_history(run.info.run_id, "out")] == [3, 5], "history is by time, step")
    refused("INVALID_PARAMETER_VALUE", client.log_batch, run.info.run_id, params=[Param("p0", "other")])
    client.set_terminated(run.info.run_id)


def asynchronous():
    with mlflow.start_run() as run:
        operations = [mlflow.log_metric("a", i, step=i, synchronous=False) for i in range(300)]
        operations.append(mlflow.log_params({"p": 1}, synchronous=False))
        for o in operations:
            o.wait()
    expect(len(client.get_metric_history(run.info.run_id, "a")) == 300, "asynchronous points")


def artifacts():
    with tempfile.TemporaryDirectory() as folder, mlflow.start_run() as run:
        os.makedirs(os.path.join(folder, "sub", "empty"))
        data = os.urandom(300000)
        for name, bytes_ in (("data.bin", data), ("sub/50%.png", b"png"), ("sub/a b+c#.txt", b"x"), ("sub/zero", b""), ("grüße.txt", b"g")):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(bytes_)
        os.rename(os.path.join(folder, "sub/a b+c#.txt"), os.path.join(folder, "sub/a b+c.txt"))
        mlflow.log_artifacts(folder)
        mlflow.log_artifact(os.path.join(folder, "data.bin"), "again")
        mlflow.log_text("hello", "notes/hello.txt")
        mlflow.log_dict({"a": 1}, "notes/d.json")
        mlflow.log_table({"a": [1, 2]}, "table.json")
        mlflow.log_table({"a": [3]}, "table.json")
        id = run.info.run_id
        listed = {f.path: (f.is_dir, f.file_size) for f in client.list_artifacts(id)}
        expect(listed["data.bin"] == (False, 300000) and listed["sub"][0] and "grüße.txt" in listed, listed)
        names = [f.path for f in client.list_artifacts(id, "sub")]
        expect(names == ["sub/50%.png", "sub/a b+c.txt", "sub/zero"], names)
        back = mlflow.artifacts.download_artifacts(run_id=id, dst_path=os.path.join(folder, "back"))
        whole = mlflow.artifacts.download_artifacts(run_id=id, artifact_path=".", dst_path=os.path.join(folder, "whole"))
        expect(os.path.exists(os.path.join(whole, "sub", "50%.png")), "everything, by the path .")
        with open(os.path.join(back, "data.bin"), "rb") as f:
            expect(f.read() == data, "the bytes")
        with open(os.path.join(back, "sub", "50%.png"), "rb") as f:
            expect(f.read() == b"png", "a percent sign in a name")
        expect(os.path.getsize(os.path.join(back, "sub", "zero")) == 0, "an empty file")
        expect(mlflow.artifacts.load_text(f"runs:/{id}/notes/hello.txt") == "hello", "load_text")
        expect(list(mlflow.load_table("table.json", run_ids=[id])["a"]) == [1, 2, 3], "log_table appends")
        try:
            mlflow.artifacts.load_text(f"{run.info.artifact_uri}/../../x")
        except Exception as e:
            expect("Invalid path" in str(e), e)
        else:
            raise AssertionError("a path outside the artifacts was accepted")
        repo = mlflow.store.artifact.artifact_repository_registry.get_artifact_repository(run.info.artifact_uri)
        repo.delete_artifacts("again")
        expect("again" not in [f.path for f in client.list_artifacts(id)], "deleted artifacts are not listed")
    return id


def figures():
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3])
    with mlflow.start_run() as run:
        mlflow.log_figure(figure, "plots/line.png")
        import numpy
        mlflow.log_image(numpy.zeros((8, 8, 3), dtype=numpy.uint8), "plots/black.png")
        mlflow.log_image(numpy.zeros((8, 8, 3), dtype=numpy.uint8), key="steps", step=1)
    expect([f.path for f in client.list_artifacts(run.info.run_id, "plots")] == ["plots/black.png", "plots/line.png"], "figures")


def datasets():
    import pandas
    data = mlflow.data.from_pandas(pandas.DataFrame({"x": [1, 2], "y": [0, 1]}), name="toy", targets="y")
    with mlflow.start_run() as run:
        mlflow.log_input(data, context="training", tags={"k": "v"})
        mlflow.log_metric("on", 0.5, dataset=data)
    inputs = client.get_run(run.info.run_id).inputs.dataset_inputs
    expect(len(inputs) == 1 and inputs[0].dataset.name == "toy", inputs)
    expect({t.key: t.value for t in inputs[0].tags} == {"mlflow.data.context": "training", "k": "v"}, inputs[0].tags)
    found = mlflow.search_runs(experiment_names=["flow"], filter_string="datasets.name = 'toy' and dataset.context = 'training'")
    expect(list(found["run_id"]) == [run.info.run_id], found)
    client.log_inputs(run.info.run_id, [DatasetInput(Dataset("other", "d1", "local", "{}"), [InputTag("mlflow.data.context", "eval")])])
    expect(len(client.get_run(run.info.run_id).inputs.dataset_inputs) == 2, "two data sets")


def models():
    experiment = client.get_experiment_by_name("flow").experiment_id
    with mlflow.start_run() as run:
        model = mlflow.initialize_logged_model(name="by-hand", params={"a": "1"}, tags={"t": "v"}, model_type="toy")
        mlflow.log_metric("score", 0.9, step=1, model_id=model.model_id)
        mlflow.log_outputs(models=[mlflow.entities.LoggedModelOutput(model.model_id, step=1)])
        mlflow.set_logged_model_tags(model.model_id, {"u": "w"})
        mlflow.finalize_logged_model(model.model_id, "READY")
    got = mlflow.get_logged_model(model.model_id)
    expect(got.status == "READY" and got.tags["u"] == "w" and got.params == {"a": "1"}, got)
    expect([(m.key, m.value) for m in got.metrics] == [("score", 0.9)], got.metrics)
    expect(client.get_run(run.info.run_id).outputs.model_outputs[0].model_id == model.model_id, "outputs")
    for text, n in (("name = 'by-hand'", 1), ("params.a = '1' AND metrics.score > 0.5", 1), ("tags.t != 'v'", 0),
                    ("metrics.score > 0.95", 0), ("status = 'READY'", None)):
        found = mlflow.search_logged_models([experiment], text, output_format="list")
        expect(n is None or len(found) == n, f"{text}: {found}")
    mlflow.delete_logged_model_tag(model.model_id, "u")
    client.delete_logged_model(model.model_id)
    refused("RESOURCE_DOES_NOT_EXIST", mlflow.get_logged_model, model.model_id)


def sklearn():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    x, y = load_iris(return_X_y=True, as_frame=True)
    mlflow.sklearn.autolog()
    with mlflow.start_run() as run:
        LogisticRegression(max_iter=200).fit(x, y)
    # each model takes the client half a minute: it loads it in another process to see what it needs
    mlflow.sklearn.autolog(log_models=os.environ.get("DPT_TEST_FULL") == "1")
    with mlflow.start_run() as search:
        GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.1, 1]}, cv=2).fit(x, y)
    mlflow.sklearn.autolog(disable=True)
    got = client.get_run(run.info.run_id)
    expect(got.data.params["max_iter"] == "200" and "training_accuracy_score" in got.data.metrics, got.data)
    expect(len(got.outputs.model_outputs) == 1, "the model was logged")
    names = [f.path for f in client.list_artifacts(run.info.run_id)]
    expect("estimator.html" in names and "training_confusion_matrix.png" in names, names)
    names = [f.path for f in mlflow.artifacts.list_artifacts(run_id=run.info.run_id, artifact_path="model")]
    expect("model/MLmodel" in names and "model/requirements.txt" in names, names)
    loaded = mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/model")
    expect((loaded.predict(x) == y).mean() > 0.9, "the loaded model predicts")
    expect(mlflow.pyfunc.load_model(f"models:/{got.outputs.model_outputs[0].model_id}").predict(x) is not None, "loaded by its id")
    children = mlflow.search_runs(experiment_names=["flow"], filter_string=f"tags.mlflow.parentRunId = '{search.info.run_id}'")
    expect(len(children) == 2, children)
    saved = mlflow.search_runs(experiment_names=["flow"], filter_string="params.max_iter = '200'")
    expect(len(saved) >= 1 and os.path.exists(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="model")), "download")


def system_metrics():
    mlflow.set_system_metrics_sampling_interval(0.2)
    mlflow.set_system_metrics_samples_before_logging(1)
    with mlflow.start_run(log_system_metrics=True) as run:
        end = time.time() + 60
        while time.time() < end and "system/cpu_utilization_percentage" not in client.get_run(run.info.run_id).data.metrics:
            time.sleep(0.2)
    keys = client.get_run(run.info.run_id).data.metrics
    expect("system/cpu_utilization_percentage" in keys, keys)


def lifecycle():
    id = mlflow.create_experiment("life", tags={"team": "a"})
    refused("RESOURCE_ALREADY_EXISTS", mlflow.create_experiment, "life")
    run = client.create_run(id, tags={"mlflow.runName": "named"})
    expect(run.info.run_name == "named", run.info)
    client.update_run(run.info.run_id, name="renamed")
    expect(client.get_run(run.info.run_id).data.tags["mlflow.runName"] == "renamed", "renaming the run changes the tag")
    client.set_tag(run.info.run_id, "mlflow.runName", "third")
    expect(client.get_run(run.info.run_id).info.run_name == "third", "the tag renames the run")
    client.delete_run(run.info.run_id)
    expect(not client.search_runs([id]) and len(client.search_runs([id], run_view_type=ViewType.DELETED_ONLY)) == 1, "deleted runs")
    refused("INVALID_PARAMETER_VALUE", client.log_metric, run.info.run_id, "x", 1)
    client.restore_run(run.info.run_id)
    client.log_metric(run.info.run_id, "x", 1)
    client.set_tag(run.info.run_id, "t", "v")
    client.delete_tag(run.info.run_id, "t")
    refused("RESOURCE_DOES_NOT_EXIST", client.delete_tag, run.info.run_id, "t")
    client.rename_experiment(id, "lives")
    client.set_experiment_tag(id, "k", "v")
    expect(client.get_experiment(id).tags == {"team": "a", "k": "v"}, "tags of an experiment")
    client.delete_experiment_tag(id, "k")
    client.delete_experiment(id)
    expect(client.get_experiment(id).lifecycle_stage == "deleted", "deleted")
    expect(client.get_run(run.info.run_id).info.lifecycle_stage == "deleted", "its runs are deleted too")
    expect(id not in [e.experiment_id for e in client.search_experiments()], "not listed")
    client.restore_experiment(id)
    expect(client.get_run(run.info.run_id).info.lifecycle_stage == "active", "restored with its runs")
    expect([e.name for e in client.search_experiments(filter_string="tags.team = 'a' AND name LIKE 'liv%'")] == ["lives"], "search")
    expect(mlflow.get_experiment_by_name("nowhere") is None, "an experiment that does not exist")
    elsewhere = mlflow.create_experiment("elsewhere", artifact_location="s3://bucket/x")
    info = client.create_run(elsewhere).info
    expect(client.get_experiment(elsewhere).artifact_location == "s3://bucket/x" and
           info.artifact_uri == f"s3://bucket/x/{info.run_id}/artifacts", f"artifacts in another place: {info.artifact_uri}")
    refused("INVALID_PARAMETER_VALUE", mlflow.create_experiment, "ours", artifact_location="mlflow-artifacts:/0")


def pages():
    id = mlflow.create_experiment("pages")
    ids = [client.create_run(id, start_time=1000 + i).info.run_id for i in range(25)]
    got, token = [], None
    while True:
        page = client.search_runs([id], max_results=7, page_token=token)
        got += [r.info.run_id for r in page]
        token = page.token
        if not token:
            break
    expect(got == ids[::-1], "pages by start time")


def filters():
    """Realistic names and values in filters."""
    with mlflow.start_run(run_name="a b") as run:
        mlflow.log_params({"learning rate": 0.1, "a.b/c-d": "x", "quote": "it's", "pct": "50%", "under_score": "a_b"})
        mlflow.log_metrics({"val acc": 0.9, "m:1": 2})
        mlflow.set_tag("my tag", "v")
    id = run.info.run_id
    for text in ("params.`learning rate` = '0.1'", "params.\"learning rate\" = '0.1'", "params.`a.b/c-d` = 'x'", 'params.quote = "it\'s"',
                 "params.pct LIKE '50%'", "params.under_score LIKE 'a_b'", "metrics.`val acc` > 0.5", "metrics.`m:1` = 2", "tags.`my tag` = 'v'",
                 "tags.mlflow.runName = 'a b'", f"attributes.run_id = '{id}'", f"run_id IN ('{id}')", "tags.`my tag` IS NOT NULL and end_time > 5"):
        found = mlflow.search_runs(experiment_names=["flow"], filter_string=text)
        expect(list(found["run_id"]) == [id], f"{text}: {len(found)} runs")


def registry():
    """A model is registered when it is logged, and loaded by number, alias, stage."""
    class Twice(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return [2 * x for x in model_input]

    with mlflow.start_run() as run:
        logged = mlflow.pyfunc.log_model(name="twice", python_model=Twice(), registered_model_name="doubler", pip_requirements=[])
    first = client.get_model_version("doubler", "1")
    expect(first.run_id == run.info.run_id and first.source == f"models:/{logged.model_id}", first)
    second = mlflow.register_model(f"runs:/{run.info.run_id}/twice", "doubler", tags={"by": "hand"})
    expect(second.version in (2, "2") and second.tags == {"by": "hand"}, second)
    client.set_registered_model_alias("doubler", "champion", "2")
    client.transition_model_version_stage("doubler", "1", "Production")
    for address in ("models:/doubler/1", "models:/doubler@champion", "models:/doubler/Production", "models:/doubler/latest"):
        expect(list(mlflow.pyfunc.load_model(address).predict([1, 2])) == [2, 4], address)
    expect(client.get_registered_model("doubler").aliases == {"champion": "2"}, "aliases")
    expect([v.version for v in client.search_model_versions("name = 'doubler'", order_by=["version_number ASC"])] in ([1, 2], ["1", "2"]), "search")
    expect([m.name for m in client.search_registered_models("name LIKE 'dou%'")] == ["doubler"], "search")
    copy = client.copy_model_version("models:/doubler@champion", "copied")
    expect(copy.source == "models:/doubler/2" and list(mlflow.pyfunc.load_model("models:/copied/1").predict([3])) == [6], copy)
    client.delete_model_version("doubler", "1")
    refused("RESOURCE_DOES_NOT_EXIST", client.get_model_version, "doubler", "1")
    client.delete_registered_model("doubler")
    expect(not client.search_model_versions("name = 'doubler'"), "the versions are deleted too")


def unsupported():
    """What is not supported here is refused at once, with a message."""
    expect("serves experiments" in refused("ENDPOINT_NOT_FOUND", client.list_webhooks), "webhooks")

    @mlflow.trace
    def traced(x):
        return x + 1
    expect(traced(1) == 2, "a traced function continues")


def main():
    steps = [fluent, failing, batches, asynchronous, artifacts, figures, datasets, models, sklearn, system_metrics, lifecycle, pages, filters, registry, unsupported]
    wanted = sys.argv[2:]
    mlflow.set_experiment("flow")
    for step in steps:
        if wanted and step.__name__ not in wanted:
            continue
        start = time.time()
        step()
        print(f"{step.__name__}: ok, {time.time() - start:.1f} s", flush=True)
    print(json.dumps({"steps": len(steps), "client": mlflow.__version__}))


main()
