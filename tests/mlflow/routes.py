# SPDX-License-Identifier: Apache-2.0
"""Every route of MLflow's API with raw HTTP: a table of requests with expected replies, then rules across requests:
repeats, latest points, histories, search and order, pages, both prefixes, odd requests. Needs no network."""
import sys
sys.dont_write_bytecode = True
import json
import math
import os
import re
import struct
import urllib.parse
import zlib
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "api"))
import lib  # noqa: E402

API, AJAX = "/api/2.0/mlflow", "/ajax-api/2.0/mlflow"
DOCS = " See the API docs for more information about request parameters."
used = set()


class Mlflow:
    def __init__(self, server):
        self.server = server

    def __call__(self, method, path, body=None, prefix=API, **args):
        used.add((method, path))
        query = "?" + urllib.parse.urlencode(args, doseq=True) if args else ""
        return self.server.json(method, prefix + path + query, body)

    def ok(self, method, path, body=None, **more):
        status, reply = self(method, path, body, **more)
        lib.equal(status, 200, f"{method} {path} {body or more}: {reply}")
        return reply

    def bad(self, code, method, path, body=None, text=None, status=None, **more):
        got, reply = self(method, path, body, **more)
        want = status or {"RESOURCE_DOES_NOT_EXIST": 404, "ENDPOINT_NOT_FOUND": 404, "NOT_IMPLEMENTED": 501}.get(code, 400)
        lib.equal((got, reply.get("error_code")), (want, code), f"{method} {path} {body or more}: {reply}")
        lib.check(text is None or text in reply.get("message", ""), f"{method} {path} {body or more}: {reply.get('message')!r} lacks {text!r}")


def make(m, experiment="0", **more):
    return m.ok("POST", "/runs/create", dict(experiment_id=experiment, start_time=1000, **more))["run"]["info"]["run_id"]


def locations(m):
    """Artifacts in another place: the address is stored and returned as MLflow's server does."""
    for i, (given, kept, run_at) in enumerate((
            ("s3://bucket/a", "s3://bucket/a", "s3://bucket/a/{}"), ("s3://bucket/a/", "s3://bucket/a/", "s3://bucket/a/{}"), ("s3://bucket", "s3://bucket", "s3://bucket/{}"),
            ("/data/runs", "/data/runs", "/data/runs/{}"), ("file:///data/x", "file:///data/x", "file:///data/x/{}"),
            ("postgresql://db/x?key=1", "postgresql://db/x?key=1", "postgresql://db/x/{}?key=1"), ("./here", os.getcwd() + "/here", os.getcwd() + "/here/{}"),
            ("", None, None))):
        id = m.ok("POST", "/experiments/create", {"name": f"at {i}", "artifact_location": given})["experiment_id"]
        kept, run_at = kept or f"mlflow-artifacts:/{id}", run_at or f"mlflow-artifacts:/{id}/{{}}"
        lib.equal(m.ok("GET", "/experiments/get", experiment_id=id)["experiment"]["artifact_location"], kept, given)
        info = m.ok("POST", "/runs/create", {"experiment_id": id})["run"]["info"]
        run, uri = info["run_id"], run_at.format(info["run_id"] + "/artifacts")
        lib.equal(info["artifact_uri"], uri, given)
        found = m.ok("POST", "/runs/search", {"experiment_ids": [id], "filter": f"artifact_uri = '{uri}'"})["runs"]
        lib.equal([r["info"]["artifact_uri"] for r in found], [uri], f"{given}: searched")
        lib.equal(m.ok("GET", "/artifacts/list", run_id=run), {"root_uri": uri}, f"{given}: artifacts/list")
        model = m.ok("POST", "/logged-models", {"experiment_id": id, "name": "n"})["model"]["info"]
        lib.equal(model["artifact_uri"], run_at.format(f"models/{model['model_id']}/artifacts"), f"{given}: a model")
        status, reply = m.server.json("POST", f"{AJAX}/upload-artifact?run_uuid={run}&path=x", b"x")
        lib.equal(status, 400 if given else 200, f"{given}: upload-artifact {reply}")
    for given, words in (("s3://b/x#y", "fragments or params"), ("runs:/x", "runs:/ URI"), ("s3://b?x=../y", "Invalid query string"), ("https://h/x", "'https' scheme"),
                        ("sftp://h/x", "'sftp' scheme"), ("s3://" + "x" * 2048, "cannot be greater than 2048")):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/create", {"name": "refused", "artifact_location": given}, words)


def experiments(m):
    id = m.ok("POST", "/experiments/create", {"name": "e/1 é", "tags": [{"key": "k", "value": "v"}], "unknown": 1})["experiment_id"]
    lib.check(isinstance(id, str) and id.isdigit(), "an id is text")
    e = m.ok("GET", "/experiments/get", experiment_id=id)["experiment"]
    lib.equal({k: e[k] for k in ("experiment_id", "name", "artifact_location", "lifecycle_stage", "tags", "workspace")},
              {"experiment_id": id, "name": "e/1 é", "artifact_location": f"mlflow-artifacts:/{id}", "lifecycle_stage": "active",
               "tags": [{"key": "k", "value": "v"}], "workspace": "default"}, "experiment")
    lib.check(isinstance(e["creation_time"], int) and e["last_update_time"] >= e["creation_time"], "times are numbers")
    lib.equal(m.ok("GET", "/experiments/get-by-name", experiment_name="e/1 é")["experiment"], e, "by name")
    lib.equal(m.ok("GET", "/experiments/get", experiment_id="0")["experiment"]["name"], "Default", "experiment 0")
    m.bad("RESOURCE_ALREADY_EXISTS", "POST", "/experiments/create", {"name": "e/1 é"}, "Experiment(name=e/1 é) already exists")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/create", {}, "Missing value for required parameter 'name'." + DOCS)
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/create", {"name": 3},
          "Invalid value 3 for parameter 'name' supplied:  Hint: Value was of type 'int'." + DOCS)
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/create", {"name": "x" * 501}, "'name' exceeds the maximum length of 500")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/create", {"name": "y", "artifact_location": "mlflow-artifacts:/7"}, "mlflow-artifacts:/")
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", "/experiments/get", experiment_id="999", text="No Experiment with id=999 exists")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/experiments/get", experiment_id="x", text="Invalid experiment ID 'x'.")
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", "/experiments/get-by-name", experiment_name="no", text="Could not find experiment with name 'no'")
    lib.equal(m.ok("POST", "/experiments/set-experiment-tag", {"experiment_id": id, "key": "t", "value": "x" * 20000}), {}, "tag")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/set-experiment-tag", {"experiment_id": id, "key": "t", "value": "x" * 20001})
    lib.equal(m.ok("POST", "/experiments/delete-experiment-tag", {"experiment_id": id, "key": "t"}), {}, "untag")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/experiments/delete-experiment-tag", {"experiment_id": id, "key": "t"}, "No tag with name: t")
    for _ in range(2):  # its own name is not a conflict
        m.ok("POST", "/experiments/update", {"experiment_id": id, "new_name": "e2"})
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/update", {"experiment_id": id}, "'new_name'")
    m.bad("RESOURCE_ALREADY_EXISTS", "POST", "/experiments/update", {"experiment_id": id, "new_name": "Default"})
    run = make(m, id)
    m.ok("POST", "/experiments/delete", {"experiment_id": id})
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/experiments/delete", {"experiment_id": id})
    lib.equal(m.ok("GET", "/runs/get", run_id=run)["run"]["info"]["lifecycle_stage"], "deleted", "its run")
    m.bad("RESOURCE_ALREADY_EXISTS", "POST", "/experiments/create", {"name": "e2"}, "deleted state")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/create", {"experiment_id": id}, "must be in the 'active' state")
    m.bad("INVALID_STATE", "POST", "/experiments/update", {"experiment_id": id, "new_name": "z"}, "Cannot rename a non-active experiment.")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/set-experiment-tag", {"experiment_id": id, "key": "a", "value": "b"})
    found = lambda **kw: [e["name"] for e in m.ok("POST", "/experiments/search", dict(max_results=100, **kw)).get("experiments", [])]  # noqa: E731
    lib.equal(found(), ["Default"], "active experiments")
    lib.equal(found(view_type="DELETED_ONLY"), ["e2"], "deleted ones")
    lib.equal(found(view_type=3, order_by=["name ASC"]), ["Default", "e2"], "all, by name")
    m.ok("POST", "/experiments/restore", {"experiment_id": id})
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/experiments/restore", {"experiment_id": id})
    lib.equal(found(filter="name LIKE 'e%' AND tags.k = 'v'"), ["e2"], "filter")
    lib.equal(found(filter="attribute.name ILIKE 'DEF%'"), ["Default"], "ILIKE")
    lib.equal(found(filter="tags.k IS NULL"), ["Default"], "IS NULL")
    lib.equal(found(filter=f"experiment_id IN ('{id}')"), ["e2"], "IN")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/search", {"max_results": 1, "filter": "attr.name = 'x'"}, "Invalid entity type 'attr'")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/search", {"max_results": 50001}, "It must be at most 50000")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/search", {"max_results": 0}, "positive integer")
    page = m.ok("GET", "/experiments/search", max_results=1)
    rest = m.ok("GET", "/experiments/search", max_results=1, page_token=page["next_page_token"])
    lib.equal([page["experiments"][0]["name"], rest["experiments"][0]["name"], "next_page_token" in rest], ["e2", "Default", False], "pages")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/experiments/search", max_results=1, page_token="zzz")
    return id


def runs(m, experiment):
    run = m.ok("POST", "/runs/create", {"experiment_id": experiment, "user_id": "me", "start_time": "1234", "tags": [{"key": "a", "value": "1"}]})["run"]
    info, tags = run["info"], {t["key"]: t["value"] for t in run["data"]["tags"]}
    id = info["run_id"]
    lib.equal({k: info[k] for k in info if k not in ("run_id", "run_uuid", "run_name")},
              {"experiment_id": experiment, "user_id": "me", "status": "RUNNING", "start_time": 1234, "lifecycle_stage": "active",
               "artifact_uri": f"mlflow-artifacts:/{experiment}/{id}/artifacts"}, "info")
    lib.check(info["run_uuid"] == id and len(id) == 32 and tags == {"a": "1", "mlflow.runName": info["run_name"]}, f"{info} {tags}")
    lib.equal((run["inputs"], "outputs" in run), ({}, False), "runs/create has inputs but no outputs")
    pairs = [{"key": k, "value": v} for k, v in (("b", "1"), ("a", "2"), ("b", "3"), ("mlflow.user", "u"), ("b", ""), ("B", "4"))]
    away = m.ok("POST", "/experiments/create", {"name": "made away", "artifact_location": "s3://far/place?x=1"})["experiment_id"]
    for where, named in ((experiment, {}), (away, {"run_name": "n " * 300}), (away, {})):
        made = m.ok("POST", "/runs/create", {"experiment_id": where, "user_id": "me", "start_time": 77, "tags": pairs, **named})["run"]
        read = m.ok("GET", "/runs/get?run_id=" + made["info"]["run_id"])["run"]
        lib.equal((made["info"], made["data"]), (read["info"], read["data"]), "runs/create and runs/get return the same run")
        m.ok("POST", "/runs/delete", {"run_id": made["info"]["run_id"]})
    m.bad("BAD_REQUEST", "POST", "/runs/create", {})
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/runs/create", {"experiment_id": "777"}, "No Experiment with id=777 exists")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/create", {"experiment_id": experiment, "run_name": "x", "tags": [{"key": "mlflow.runName", "value": "y"}]})
    got = m.ok("GET", "/runs/get", run_uuid=id)["run"]
    lib.equal((got["info"], got["inputs"], got["outputs"]), (info, {}, {}), "runs/get by run_uuid")
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", "/runs/get", run_id="0" * 32, text="Run with id=" + "0" * 32 + " not found")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/runs/get", text="Missing value for required parameter 'run_id'")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/runs/get", run_id="../x")
    info = m.ok("POST", "/runs/update", {"run_id": id, "status": "FINISHED", "end_time": 5678, "run_name": "new"})["run_info"]
    lib.equal((info["status"], info["end_time"], info["run_name"]), ("FINISHED", 5678, "new"), "runs/update")
    lib.check({"key": "mlflow.runName", "value": "new"} in m.ok("GET", "/runs/get", run_id=id)["run"]["data"]["tags"], "the tag is renamed too")
    other = m.ok("POST", "/runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
    info = m.ok("POST", "/runs/update", {"run_id": other, "status": "FINISHED"})["run_info"]
    lib.equal((info["status"], "end_time" in info), ("FINISHED", False), "a finished run without an end time")
    for status, end in (("RUNNING", 99), ("FAILED", None), ("RUNNING", None)):
        info = m.ok("POST", "/runs/update", dict({"run_id": other, "status": status}, **({"end_time": end} if end else {})))["run_info"]
        lib.equal((info["status"], info["end_time"]), (status, 99), "the end time is kept")
    lib.equal(m.ok("POST", "/runs/update", {"run_id": id, "status": "5"})["run_info"]["status"], "KILLED", "status by number")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/update", {"run_id": id, "status": "LOST"})
    lib.equal(m.ok("POST", "/runs/set-tag", {"run_id": id, "key": "mlflow.runName", "value": "third"}), {}, "set-tag")
    lib.equal(m.ok("GET", "/runs/get", run_id=id)["run"]["info"]["run_name"], "third", "the tag renames the run")
    m.ok("POST", "/runs/set-tag", {"run_id": id, "key": "long", "value": "ü" * 9000})
    m.ok("POST", "/runs/log-parameter", {"run_id": id, "key": "p", "value": "x" * 6001})
    m.ok("POST", "/runs/log-parameter", {"run_id": id, "key": "empty"})
    data = m.ok("GET", "/runs/get", run_id=id)["run"]["data"]
    lib.equal([len(t["value"]) for t in data["tags"] if t["key"] == "long"], [8000], "a long tag is truncated")
    lib.equal({p["key"]: len(p["value"]) for p in data["params"]}, {"p": 6000, "empty": 0}, "a long param is truncated")
    lib.equal(m.ok("POST", "/runs/log-parameter", {"run_id": id, "key": "p", "value": "x" * 6001}), {}, "the same value again")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-parameter", {"run_id": id, "key": "empty", "value": "z"},
          f"Changing param values is not allowed. Param with key='empty' was already logged with value='' for run ID='{id}'. Attempted logging new value 'z'.")
    lib.equal(m.ok("POST", "/runs/delete-tag", {"run_id": id, "key": "a"}), {}, "delete-tag")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/runs/delete-tag", {"run_id": id, "key": "a"}, f"No tag with name: a in run with id {id}")
    for _ in range(2):
        lib.equal(m.ok("POST", "/runs/delete", {"run_id": id}), {}, "delete, twice")
    for path, body in (("set-tag", {"key": "a", "value": "b"}), ("log-parameter", {"key": "a", "value": "b"}), ("log-batch", {}), ("delete-tag", {"key": "long"}),
                       ("log-metric", {"key": "a", "value": 1, "timestamp": 1}), ("update", {}), ("log-inputs", {}), ("outputs", {"models": [{"model_id": "m-1"}]})):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/" + path, dict(body, run_id=id), f"The run {id} must be in the 'active' state. Current state is deleted.")
    lib.equal(m.ok("POST", "/runs/restore", {"run_id": id}), {}, "restore")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/runs/delete", {"run_id": "1" * 32})
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/runs/restore", {"run_id": "1" * 32})
    return id


NAMES_BAD = ["a//b", "a/", "/a", "./a", "../x", ".", "..", "a/../b", "bad$name", "new\nline", "a\tb", "x;y", "🙂", ""]
NAMES_GOOD = ["a/b", "a.b", "a-b_c", "a b", "a:b", "größe/µ", "学習率", ".a", "a..b"]


def names(m, experiment):
    id = make(m, experiment)
    for name in NAMES_BAD:
        for path, body in (("log-metric", {"value": 1, "timestamp": 1}), ("log-parameter", {}), ("set-tag", {})):
            m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/" + path, dict(body, run_id=id, key=name))
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "params": [{"key": "fine", "value": ""}, {"key": name, "value": ""}]}, "params[1].key")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "metrics": [{"key": "a//b", "value": 1, "timestamp": 1}]},
          "Invalid value \"a//b\" for parameter 'metrics[0].name' supplied: Names may be treated as files in certain cases, and must not resolve "
          "to other names when treated as such. This name would resolve to 'a/b'")
    for name in NAMES_GOOD:
        m.ok("POST", "/runs/log-metric", {"run_id": id, "key": name, "value": 1, "timestamp": 1})
        m.ok("POST", "/runs/log-batch", {"run_id": id, "params": [{"key": name, "value": name}], "tags": [{"key": name, "value": name}]})
    data = m.ok("GET", "/runs/get", run_id=id)["run"]["data"]
    lib.equal(sorted(x["key"] for x in data["metrics"]), sorted(NAMES_GOOD), "names of metrics")
    lib.equal(sorted(x["value"] for x in data["params"]), sorted(NAMES_GOOD), "names of params")
    for key, field in (("metrics", "Metric name"), ("params", "Param key"), ("tags", "tags[0].key")):
        body = {"metrics": {"key": "k" * 251, "value": 1, "timestamp": 1}}.get(key, {"key": "k" * 251, "value": ""})
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, key: [body]}, f"'{field}' exceeds the maximum length of 250 characters")


def batches(m, experiment):
    id = make(m, experiment)
    metric = lambda i, **kw: dict({"key": f"m{i}", "value": i, "timestamp": 10, "step": i}, **kw)  # noqa: E731
    lib.equal(m.ok("POST", "/runs/log-batch", {"run_id": id}), {}, "an empty batch")
    whole = {"run_id": id, "metrics": [metric(i) for i in range(800)], "params": [{"key": f"p{i}", "value": str(i)} for i in range(100)],
             "tags": [{"key": f"t{i}", "value": str(i)} for i in range(100)]}
    for _ in range(2):
        m.ok("POST", "/runs/log-batch", whole)
    lib.equal(m.server.json("GET", f"/api/v1/runs/{id}")[1]["metrics"]["m7"]["count"], 1, "a repeated batch counts once")
    for key, n, what in (("metrics", 1001, "1000 metrics"), ("params", 101, "100 params"), ("tags", 101, "100 tags")):
        items = [metric(i) if key == "metrics" else {"key": f"x{i}", "value": ""} for i in range(n)]
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, key: items}, f"A batch logging request can contain at most {what}. Got {n}")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "metrics": [metric(i) for i in range(950)], "params": whole["params"]},
          "at most 1000 metrics, params, and tags. Got 1050")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "params": [{"key": "d", "value": "1"}, {"key": "d", "value": "1"}]},
          "Duplicate parameter keys have been submitted: ['d']")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "metrics": [metric(0), {"key": "x", "value": 1}]},
          "Missing value for required parameter 'metrics[1].timestamp'")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "metrics": [metric(0, timestamp=-1)]}, "Timestamp must be a nonnegative long")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-batch", {"run_id": id, "params": [{"key": "p1", "value": "other"}], "metrics": [metric(9000)]},
          "Params were already logged='[{'key': 'p1', 'old_value': '1', 'new_value': 'other'}]'")
    lib.check("m9000" not in [x["key"] for x in m.ok("GET", "/runs/get", run_id=id)["run"]["data"]["metrics"]], "a batch is stored completely or not at all")
    m.ok("POST", "/runs/log-batch", {"run_id": id, "tags": [{"key": "t1", "value": "a"}, {"key": "t1", "value": "b"}]})
    m.ok("POST", "/runs/log-batch", {"run_id": id, "metrics": [{"key": "text", "value": "0.5", "timestamp": "7", "step": "-3"},
                                                             {"key": "nan", "value": "NaN", "timestamp": 7.0}, {"key": "inf", "value": "-Infinity", "timestamp": 7}]})
    data = m.ok("GET", "/runs/get", run_id=id)["run"]["data"]
    points = {x["key"]: x for x in data["metrics"]}
    lib.equal(points["text"], {"key": "text", "value": 0.5, "timestamp": 7, "step": -3}, "numbers as text")
    lib.equal((points["nan"]["value"], points["inf"]["value"], points["nan"]["step"]), ("NaN", "-Infinity", 0), "values that are not numbers")
    lib.check({"key": "t1", "value": "b"} in data["tags"], "the last tag applies")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-metric", {"run_id": id, "key": "a", "value": "abc", "timestamp": 1}, "Hint: Value was of type 'str'")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", "/runs/log-batch", {"run_id": "2" * 32})


def histories(m, experiment):
    id, other = make(m, experiment), make(m, experiment)
    points = [(5, 100, 1.0), (3, 100, 2.0), (5, 100, 1.0), (5, 100, 0.5), (1, 50, 9.0), (9, 10, 4.0), (-2, 100, 1.0)]  # step, time, value
    for s, t, v in points:
        m.ok("POST", "/runs/log-metric", {"run_id": id, "key": "h", "value": v, "timestamp": t, "step": s})
    want = sorted({(t, s, v) for s, t, v in points})
    get = lambda **kw: m.ok("GET", "/metrics/get-history", run_id=id, metric_key="h", **kw)  # noqa: E731
    as_is = lambda reply: [(p["timestamp"], p["step"], p["value"]) for p in reply.get("metrics", [])]  # noqa: E731
    lib.equal(as_is(get()), want, "history by time, step, value; repeats dropped")
    lib.equal(m.server.json("GET", f"/api/v1/runs/{id}")[1]["metrics"]["h"]["count"], len(want), "repeats are counted once")
    last = next(x for x in m.ok("GET", "/runs/get", run_id=id)["run"]["data"]["metrics"] if x["key"] == "h")
    lib.equal((last["step"], last["timestamp"], last["value"]), (9, 10, 4.0), "latest is by step, time, value")
    got, token = [], None
    while True:
        page = get(max_results=2, **({"page_token": token} if token else {}))
        got += as_is(page)
        token = page.get("next_page_token")
        if not token:
            break
    lib.equal(got, want, "pages of a history")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history", run_id=id, metric_key="h", max_results=0)
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history", run_id=id, metric_key="h", max_results=5, page_token="!")
    lib.equal(m.ok("GET", "/metrics/get-history", run_id=id, metric_key="none"), {}, "an unknown key")
    lib.equal(m.ok("GET", "/metrics/get-history", run_id="3" * 32, metric_key="h", max_results=10), {}, "an unknown run")
    m.ok("POST", "/runs/log-batch", {"run_id": other, "metrics": [{"key": "s", "value": i, "timestamp": 1000 - i, "step": i} for i in range(10)]})
    m.ok("POST", "/runs/log-metric", {"run_id": other, "key": "h", "value": 1, "timestamp": 1})
    bulk = m.ok("GET", "/metrics/get-history-bulk", prefix=AJAX, run_id=[id, other], metric_key="h")["metrics"]
    lib.equal([(p["run_id"], p["timestamp"], p["step"]) for p in bulk], sorted([(id, t, s) for t, s, _ in want] + [(other, 1, 0)]), "bulk")
    lib.equal(len(m.ok("GET", "/metrics/get-history-bulk", prefix=AJAX, run_id=[id, other], metric_key="h", max_results=3)["metrics"]), 3, "bulk, limited")
    for args, text in (({"metric_key": "h"}, "must specify at least one run_id"), ({"run_id": [id]}, "must specify a metric_key"),
                       ({"run_id": [id] * 101, "metric_key": "h"}, "cannot specify more than 100 run_ids. Received 101")):
        m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history-bulk", prefix=AJAX, text=text, **args)
    steps = lambda **kw: [p["step"] for p in m.ok("GET", "/metrics/get-history-bulk-interval", run_ids=[other], metric_key="s", **kw).get("metrics", [])]  # noqa: E731
    lib.equal(steps(max_results=5), [0, 2, 4, 6, 9], "samples")
    lib.equal(steps(max_results=1), [9], "one sample is the last point")
    lib.equal(steps(), list(range(10)), "all points fit")
    lib.equal(steps(start_step=3, end_step=6), [3, 4, 5, 6], "an interval")
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history-bulk-interval", run_ids=[id], metric_key="h", start_step=1)
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history-bulk-interval", run_ids=[id], metric_key="h", max_results=2501)
    m.bad("INVALID_PARAMETER_VALUE", "GET", "/metrics/get-history-bulk-interval", metric_key="h", text="'run_ids'")
    lib.equal(m.ok("GET", "/metrics/get-history-bulk", prefix=AJAX, run_id="0" * 32, metric_key="h"), {"metrics": []}, "bulk history of an unknown run")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-metric", {"run_id": id, "key": "k", "value": 1, "timestamp": 1, "dataset_name": "d"}, "Both dataset_name")


FILTERS = [("metrics.loss < 0.5", "b"), ("metrics.loss >= 0.1 AND params.lr = '0.1'", "ab"), ("params.lr != '0.1'", "c"), ("params.lr LIKE '0%'", "abc"),
           ("params.Opt ILIKE 'AD%'", "a"), ("params.Opt LIKE 'AD%'", ""), ("tags.`my tag` = \"x'y\"", "a"), ("tags.\"my tag\" IS NULL", "bcd"),
           ("tags.'my tag' IS NULL", "bcd"), ("params.'Opt' ILIKE'ad%'", "a"), ("params.'Opt = 'a'", None),
           ("params.lr IS NOT NULL", "abc"), ("attributes.run_name = 'a'", "a"), ("run_name IN ('a')", None), ("status = 'FINISHED'", "d"),
           ("attribute.status != 'RUNNING'", "d"), ("attr.start_time > 1001", "cd"), ("run.`Run name` LIKE '%'", "abcd"), ("metrics.a.b = 1", "a"),
           ("datasets.name = 'd1'", "b"), ("dataset.context = 'train' and datasets.digest != 'x'", "b"), ("metrics.nope > 0", ""), ("user_id = 'u'", "abcd"),
           ("artifact_uri LIKE 'mlflow-artifacts:/%'", "abcd"), ("params.lr = 0.1", None), ("metrics.loss < '1'", None), ("metrics.loss LIKE '1'", None),
           ("x.y = 1", None), ("attribute.nope = 'x'", None), ("params.a = 'b' OR params.c = 'd'", None), ("metrics.loss = ", None), ("NOT metrics.loss = 1", None),
           ("(metrics.loss = 1)", None), ("metrics.loss IS NULL", None), ("run_id IN ()", None), ("params.lr = 'x' AND", None), ("experiment_id = '1'", None)]


def extreme_steps(m, experiment):
    """The smallest and the largest step, at once and again (a repeat)."""
    id, want = make(m, experiment), [-2 ** 63, 0, 2 ** 63 - 1]
    for _ in range(2):
        for step in want:
            m.ok("POST", "/runs/log-metric", {"run_id": id, "key": "far", "value": 1, "timestamp": 1000, "step": step})
        history = m.ok("GET", "/metrics/get-history", run_id=id, metric_key="far")["metrics"]
        lib.equal([int(p["step"]) for p in history], want, "the history of extreme steps")
        summary = m.server.json("GET", f"/api/v1/runs/{id}")[1]["metrics"]["far"]
        lib.equal((summary["count"], summary["last_step"]), (3, 2 ** 63 - 1), "their summary")
        buckets = m.server.json("GET", f"/api/v1/series?run={id}&key=far&buckets=10")[1]["series"][0]["buckets"]
        lib.equal(sum(buckets["count"]), 3, "their chart")


def search(m):
    experiment = m.ok("POST", "/experiments/create", {"name": "search"})["experiment_id"]
    ids = {}
    for i, name in enumerate("abcd"):
        ids[name] = m.ok("POST", "/runs/create", {"experiment_id": experiment, "run_name": name, "start_time": 1000 + i, "user_id": "u"})["run"]["info"]["run_id"]
    log = lambda name, **kw: m.ok("POST", "/runs/log-batch", dict(run_id=ids[name], **kw))  # noqa: E731
    point = lambda k, v: {"key": k, "value": v, "timestamp": 1}  # noqa: E731
    log("a", metrics=[point("loss", 0.9), point("a.b", 1)], params=[{"key": "lr", "value": "0.1"}, {"key": "Opt", "value": "adam"}], tags=[{"key": "my tag", "value": "x'y"}])
    log("b", metrics=[point("loss", 0.1)], params=[{"key": "lr", "value": "0.1"}])
    log("c", metrics=[point("loss", "NaN")], params=[{"key": "lr", "value": "0.10"}])
    m.ok("POST", "/runs/update", {"run_id": ids["d"], "status": "FINISHED", "end_time": 2000})
    m.ok("POST", "/runs/log-inputs", {"run_id": ids["b"], "datasets": [{"dataset": {"name": "d1", "digest": "g", "source_type": "local", "source": "s"},
                                                                     "tags": [{"key": "mlflow.data.context", "value": "train"}]}]})
    by_id = {v: k for k, v in ids.items()}

    def found(**kw):
        reply = m.ok("POST", "/runs/search", dict(experiment_ids=[experiment], **kw))
        return "".join(by_id[r["info"]["run_id"]] for r in reply.get("runs", [])), reply.get("next_page_token")
    for text, want in FILTERS:
        if want is None:
            m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"experiment_ids": [experiment], "filter": text})
        else:
            lib.equal(found(filter=text, order_by=["start_time"])[0], want, text)
    lib.equal(found(filter=f"run_id IN ('{ids['a']}', '{ids['c']}')", order_by=["start_time"])[0], "ac", "run_id IN")
    m.ok("POST", "/runs/update", {"run_id": ids["c"], "status": "FINISHED"})  # without an end time: last in both orders
    for order, want in (([], "dcba"), (["metrics.loss"], "bacd"), (["metrics.loss DESC"], "abcd"), (["params.lr desc", "start_time ASC"], "cabd"),
                        (["attributes.end_time", "attributes.start_time"], "dabc"), (["attributes.end_time DESC", "attributes.start_time"], "dabc"), (["tags.`my tag` ASC"], "adcb"), (["`metrics`.loss"], "bacd")):
        lib.equal(found(order_by=order)[0], want, f"order by {order}")
    for order in (["metrics.loss", "metrics.loss DESC"], ["metrics.loss UP"], ["x.y"], ["attribute.nope"], ["a b c"], [""]):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"experiment_ids": [experiment], "order_by": order})
    first, token = found(max_results=3, order_by=["metrics.loss"])
    lib.equal((first, found(max_results=3, order_by=["metrics.loss"], page_token=token)), ("bac", ("d", None)), "pages")
    lib.equal(found(max_results=4)[1], None, "no token on the last page")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"experiment_ids": [experiment], "page_token": "zz"})
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"max_results": 50001}, "Invalid value 50001 for parameter 'max_results' supplied:  Hint:")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"max_results": 0}, "positive integer")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"experiment_ids": "1"}, "Hint: Value was of type 'str'")
    lib.equal(m.ok("POST", "/runs/search", {}), {}, "no experiments, no runs")
    m.ok("POST", "/runs/delete", {"run_id": ids["d"]})
    lib.equal([found()[0], found(run_view_type="DELETED_ONLY")[0], found(run_view_type="ALL")[0]], ["cba", "d", "dcba"], "views")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/search", {"run_view_type": "SOME"})
    summary = m.ok("POST", "/experiments/search-datasets", {"experiment_ids": [experiment]}, prefix=AJAX)
    lib.equal(summary, {"dataset_summaries": [{"experiment_id": experiment, "name": "d1", "digest": "g", "context": "train"}]}, "data sets of an experiment")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/experiments/search-datasets", {}, prefix=AJAX)


def inputs(m, experiment):
    id = make(m, experiment)
    one = {"dataset": {"name": "n", "digest": "d", "source_type": "t", "source": "{}", "schema": "s", "profile": "p"}, "tags": [{"key": "k", "value": "1"}]}
    again = dict(one, tags=[{"key": "k", "value": "2"}])
    lib.equal(m.ok("POST", "/runs/log-inputs", {"run_id": id, "datasets": [one], "models": [{"model_id": "m-in"}]}), {}, "log-inputs")
    m.ok("POST", "/runs/log-inputs", {"run_id": id, "datasets": [again]})
    lib.equal(m.ok("POST", "/runs/outputs", {"run_id": id, "models": [{"model_id": "m-out", "step": 3}]}), {}, "outputs")
    run = m.ok("GET", "/runs/get", run_id=id)["run"]
    lib.equal(run["inputs"], {"dataset_inputs": [one], "model_inputs": [{"model_id": "m-in"}]}, "inputs; the first tags are kept")
    lib.equal(run["outputs"], {"model_outputs": [{"model_id": "m-out", "step": 3}]}, "outputs")
    make(m, experiment)  # a run without inputs
    for i in range(4):  # one data set per run and one shared by all, each with its own tags
        tagged = [[{"key": k, "value": f"{k}{i}{n}"} for k in "zab"[:i]] for n in range(2)]
        sets = [{"dataset": dict(one["dataset"], digest=digest), "tags": tags} for digest, tags in zip((f"own{i}", "d"), tagged)]
        m.ok("POST", "/runs/log-inputs", {"run_id": make(m, experiment), "datasets": sets})
    m.ok("POST", "/runs/outputs", {"run_id": make(m, experiment), "models": [{"model_id": "m-other", "step": 1}]})
    listed = m.ok("POST", "/runs/search", {"experiment_ids": [experiment]})["runs"]
    lib.check(sum("model_outputs" in run["outputs"] for run in listed) >= 2, "outputs in a search")
    for run in listed:
        lib.equal(run, m.ok("GET", "/runs/get", run_id=run["info"]["run_id"])["run"], "a run found by a search equals runs/get")
    for field, n in (("name", 501), ("digest", 37), ("source", 65536)):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-inputs", {"run_id": id, "datasets": [{"dataset": dict(one["dataset"], **{field: "x" * n})}]}, f"'{field}' exceeds")
    large = dict(one["dataset"], name="large", profile="x" * 8000000)
    m.ok("POST", "/runs/log-inputs", {"run_id": id, "datasets": [{"dataset": large}]})
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-inputs", {"run_id": id, "datasets": [{"dataset": {"name": "x"}}]}, "digest")
    old = json.dumps({"artifact_path": "a", "flavors": {}, "utc_time_created": "t", "run_id": id})
    m.ok("POST", "/runs/log-model", {"run_id": id, "model_json": old})
    m.ok("POST", "/runs/log-model", {"run_id": id, "model_json": old})
    tags = {t["key"]: t["value"] for t in m.ok("GET", "/runs/get", run_id=id)["run"]["data"]["tags"]}
    lib.equal(json.loads(tags["mlflow.log-model.history"]), [json.loads(old)] * 2, "log-model")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-model", {"run_id": id, "model_json": "{}"}, "missing mandatory fields")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/runs/log-model", {"run_id": id, "model_json": "{"}, "Malformed model info")


def models(m, experiment):
    run = make(m, experiment)
    made = m.ok("POST", "/logged-models", {"experiment_id": experiment, "name": "first", "model_type": "t", "source_run_id": run,
                                          "params": [{"key": "a", "value": "1"}], "tags": [{"key": "k", "value": "v"}]})["model"]
    id = made["info"]["model_id"]
    lib.equal({k: made["info"][k] for k in ("experiment_id", "name", "status", "model_type", "source_run_id", "artifact_uri", "tags")},
              {"experiment_id": experiment, "name": "first", "status": "LOGGED_MODEL_PENDING", "model_type": "t", "source_run_id": run,
               "artifact_uri": f"mlflow-artifacts:/{experiment}/models/{id}/artifacts", "tags": [{"key": "k", "value": "v"}]}, "a logged model")
    second = m.ok("POST", "/logged-models", {"experiment_id": experiment})["model"]["info"]
    lib.check(second["name"].count("-") == 2, "a model without a name gets one")
    path = f"/logged-models/{id}"
    m.ok("POST", "/runs/log-batch", {"run_id": run, "metrics": [{"key": "acc", "value": 0.5 + s / 10, "timestamp": s, "step": s, "model_id": id, "dataset_name": "d",
                                                               "dataset_digest": "g"} for s in (1, 2)]})
    used.update({("GET", "/logged-models/{model}"), ("PATCH", "/logged-models/{model}"), ("DELETE", "/logged-models/{model}"), ("PATCH", "/logged-models/{model}/tags"),
                 ("DELETE", "/logged-models/{model}/tags/{key}"), ("POST", "/logged-models/{model}/params"), ("GET", "/logged-models/{model}/artifacts/directories"),
                 ("GET", "/logged-models/{model}/artifacts/files")})
    lib.equal(m.ok("PATCH", path, {"model_id": id, "status": "LOGGED_MODEL_READY"})["model"]["info"]["status"], "LOGGED_MODEL_READY", "finished")
    m.bad("INVALID_PARAMETER_VALUE", "PATCH", path, {"status": "X"})
    lib.equal(m.ok("PATCH", path + "/tags", {"tags": [{"key": "a/b", "value": "w"}]}), {}, "tags")
    lib.equal(m.ok("POST", path + "/params", {"model_id": id, "params": [{"key": "b", "value": "2"}]}), {}, "params")
    lib.equal(m.ok("POST", path + "/params", {"params": [{"key": "c", "value": "3"}, {"key": "b", "value": "2"}]}), {}, "the same params again")
    m.bad("INVALID_PARAMETER_VALUE", "POST", path + "/params", {"params": [{"key": "d", "value": "4"}, {"key": "b", "value": "5"}]}, text="Changing param "
          f"values is not allowed. Param with key='b' was already logged with value='2' for logged model ID='{id}'. Attempted logging new value '5'.")
    got = m.ok("GET", path)["model"]
    lib.equal((got["data"]["params"], [(p["key"], p["value"], p["step"], p["run_id"], p["dataset_name"]) for p in got["data"]["metrics"]]),
              ([{"key": "a", "value": "1"}, {"key": "b", "value": "2"}, {"key": "c", "value": "3"}], [("acc", 0.6, 1, run, "d"), ("acc", 0.7, 2, run, "d")]), "params and metrics of a model")
    lib.equal(m.ok("DELETE", path + "/tags/a%2Fb"), {}, "untag")
    m.bad("RESOURCE_DOES_NOT_EXIST", "DELETE", path + "/tags/a%2Fb", text=f"No tag with key 'a/b' found for model with ID '{id}'.")
    find = lambda **kw: [x["info"]["name"] for x in m.ok("POST", "/logged-models/search", dict(experiment_ids=[experiment], **kw)).get("models", [])]  # noqa: E731
    for text, want in (("name = 'first'", ["first"]), ("metrics.acc > 0.65", ["first"]), ("metrics.acc > 0.75", []), ("params.b = '2' AND tags.k LIKE 'v%'", ["first"]),
                       ("attributes.model_type != 't'", []), (f"source_run_id IN ('{run}')", ["first"]), ("status = 'LOGGED_MODEL_READY'", ["first"])):
        lib.equal(find(filter=text), want, text)
    lib.equal(find(order_by=[{"field_name": "metrics.acc", "dataset_name": "d"}]), ["first", second["name"]], "ordered by a metric")
    lib.equal(find(order_by=[{"field_name": "creation_time", "ascending": True}, {"field_name": "name"}])[0:1] != [], True, "ordered by an attribute")
    lib.equal(find(datasets=[{"dataset_name": "d"}]), ["first"], "with metrics on a data set")
    page = m.ok("POST", "/logged-models/search", {"experiment_ids": [experiment], "max_results": 1})
    lib.equal(len(m.ok("POST", "/logged-models/search", {"experiment_ids": [experiment], "max_results": 1, "page_token": page["next_page_token"]})["models"]), 1, "pages")
    m.ok("POST", "/runs/log-batch", {"run_id": run, "metrics": [
        {"key": "f1", "value": value, "timestamp": 1 + (name == "e"), "step": 1, "model_id": of, "dataset_name": name, "dataset_digest": digest}
        for of, value, name, digest in ((id, 1, "d", "g"), (id, 9, "e", "h"), (second["model_id"], 2, "d", "g"), (second["model_id"], 8, "e", "h"))]})
    for dataset, want in (({"dataset_name": "d"}, "first"), ({"dataset_digest": "g"}, "first"), ({"dataset_name": "e"}, second["name"])):
        lib.equal(find(order_by=[{"field_name": "metrics.f1", "ascending": True, **dataset}])[0], want, f"ordered by a metric on {dataset}")
        lib.equal(find(order_by=[{"field_name": "metrics.f1", "ascending": False, **dataset}])[1], want, f"in descending order on {dataset}")
    for text, words in (("metrics.acc LIKE 'x'", "Invalid comparison operator for metrics.acc: 'LIKE'. Expected one of ('<', '<=', '>', '>=', '=', '!=')."),
                        ("params.b > '1'", "Invalid comparison operator for params.b: '>'. Expected one of ('=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN')."),
                        ("name not like 'x%'", "Invalid comparison operator for attributes.name: 'NOT LIKE'. Expected one of ('=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN')."),
                        ("name", "Invalid filter string: 'name'. Expected a list of comparisons separated by 'AND' (e.g. 'metrics.loss > 0.1 AND params.lr = 0.01').")):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", {"experiment_ids": [experiment], "filter": text}, text=words)
    follow = {"experiment_ids": [experiment], "max_results": 1, "page_token": page["next_page_token"]}
    for change, text in (
            ({"experiment_ids": ["0", experiment]}, "Experiment IDs in the page token do not match the requested experiment IDs. "
             f"Expected: ['0', '{experiment}']. Found: ['{experiment}']"),
            ({"filter": "name = 'first'"}, "Filter string in the page token does not match the requested filter string. Expected: name = 'first'. Found: None"),
            ({"order_by": [{"field_name": "name"}]}, "Order by in the page token does not match the requested order by. "
             "Expected: [{'field_name': 'name', 'ascending': True, 'dataset_name': None, 'dataset_digest': None}]. Found: None")):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", {**follow, **change}, text=text)
    one = {**follow, "order_by": [{"field_name": "metrics.f1", "dataset_name": "d"}], "page_token": ""}
    token = m.ok("POST", "/logged-models/search", one)["next_page_token"]
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", {**one, "order_by": [{"field_name": "metrics.f1", "dataset_name": "e"}], "page_token": token},
          text="Order by in the page token does not match the requested order by. "
          "Expected: [{'field_name': 'metrics.f1', 'ascending': True, 'dataset_name': 'e', 'dataset_digest': None}]. "
          "Found: [{'field_name': 'metrics.f1', 'ascending': True, 'dataset_name': 'd', 'dataset_digest': None}]")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", {**follow, "page_token": "x"}, text="Invalid page token: 'x'")
    for bad in ({"experiment_ids": []}, {"experiment_ids": [experiment], "filter": "x = 1"}, {"experiment_ids": [experiment], "order_by": [{"field_name": "params.a"}]},
                {"experiment_ids": [experiment], "datasets": [{}]}):
        if bad != {"experiment_ids": []}:
            m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", bad)
    proxy = f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/models/{id}/artifacts/MLmodel"
    lib.equal(m.server.request("PUT", proxy, b"flavors")[0], 200, "a model's file")
    lib.equal(m.ok("GET", path + "/artifacts/directories"), {"root_uri": made["info"]["artifact_uri"], "files": [{"path": "MLmodel", "is_dir": False, "file_size": 7}]}, "list")
    lib.equal(m.server.request("GET", f"{AJAX}{path}/artifacts/files?artifact_file_path=MLmodel")[2], b"flavors", "and back")
    lib.equal(m.ok("DELETE", path), {}, "deleted")
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", path, text=f"Logged model with ID '{id}' not found.")
    lib.equal(m.ok("GET", path, allow_deleted="true")["model"]["info"]["name"], "first", "allow_deleted")
    m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models", {"experiment_id": experiment, "name": "a/b"})


def registry(m, experiment):
    """Registered models, versions, aliases, stages; files of a version."""
    reg, ver = "/registered-models", "/model-versions"
    made = m.ok("POST", reg + "/create", {"name": "net", "description": "d", "tags": [{"key": "k", "value": "v"}]})["registered_model"]
    lib.equal({k: made[k] for k in made if "timestamp" not in k}, {"name": "net", "description": "d", "tags": [{"key": "k", "value": "v"}]}, "made")
    m.bad("RESOURCE_ALREADY_EXISTS", "POST", reg + "/create", {"name": "net"}, "Registered Model (name=net) already exists.")
    m.bad("INVALID_PARAMETER_VALUE", "POST", reg + "/create", {"name": "a/b"}, "Names cannot contain '/' or ':'.")
    run = make(m, experiment)
    source = f"mlflow-artifacts:/{experiment}/{run}/artifacts/model"
    lib.equal(m.server.request("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/model/MLmodel", b"flavors")[0], 200, "PUT")
    one = m.ok("POST", ver + "/create", {"name": "net", "source": source, "run_id": run, "tags": [{"key": "a", "value": "1"}]})["model_version"]
    lib.equal({k: one[k] for k in one if "timestamp" not in k},
              {"name": "net", "version": "1", "current_stage": "None", "source": source, "run_id": run, "run_link": "", "description": "", "status": "READY", "tags": [{"key": "a", "value": "1"}]}, "version")
    logged = m.ok("POST", "/logged-models", {"experiment_id": experiment, "name": "l", "source_run_id": run})["model"]["info"]
    for i in (2, 3):
        two = m.ok("POST", ver + "/create", {"name": "net", "source": "models:/" + logged["model_id"], "model_id": logged["model_id"]})["model_version"]
        lib.equal((two["version"], two["run_id"]), (str(i), run), "the run comes from the logged model")
    tags = {t["key"]: t["value"] for t in m.ok("GET", "/logged-models/" + logged["model_id"])["model"]["info"]["tags"]}
    lib.equal(json.loads(tags["mlflow.modelVersions"]), [{"name": "net", "version": 2}, {"name": "net", "version": 3}], "the logged model lists its versions")
    lib.equal(m.ok("GET", ver + "/get-download-uri", name="net", version="2"), {"artifact_uri": logged["artifact_uri"]}, "the address of a version's files")
    for bad in ("/etc", "s3://b/../x", "file:///etc/passwd", "s3://b/%2e%2e/x", source, f"runs:/{run}/model", f"models:/{logged['model_id']}", "models:/", "models://h/net/1"):
        m.bad("INVALID_PARAMETER_VALUE", "POST", ver + "/create", {"name": "net", "source": bad}, "Invalid model version source")
    m.bad("INVALID_PARAMETER_VALUE", "POST", ver + "/create", {"name": "net", "source": "http://h/x"}, "connect to the host named in the URI")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", ver + "/create", {"name": "net", "source": "models:/none/1"}, "Registered Model with name=none not found")
    m.bad("RESOURCE_DOES_NOT_EXIST", "POST", ver + "/create", {"name": "none", "source": source, "run_id": run}, "Registered Model with name=none not found")
    lib.equal(m.server.request("GET", "/model-versions/get-artifact?name=net&version=1&path=MLmodel")[2], b"flavors", "a file of a version")
    m.ok("POST", reg + "/set-tag", {"name": "net", "key": "k", "value": "w"})
    m.ok("DELETE", reg + "/delete-tag", {"name": "net", "key": "none"})
    m.ok("POST", ver + "/set-tag", {"name": "net", "version": "1", "key": "b", "value": "2"})
    m.ok("DELETE", ver + "/delete-tag", {"name": "net", "version": "1", "key": "a"})
    m.ok("POST", reg + "/alias", {"name": "net", "alias": "champion", "version": "1"})
    m.ok("POST", reg + "/alias", {"name": "net", "alias": "champion", "version": "2"})
    m.bad("INVALID_PARAMETER_VALUE", "POST", reg + "/alias", {"name": "net", "alias": "v7", "version": "2"}, "reserved")
    lib.equal(m.ok("GET", reg + "/alias", name="net", alias="champion")["model_version"]["aliases"], ["champion"], "aliases of a version")
    lib.equal(m.ok("GET", reg + "/alias", name="net", alias="latest")["model_version"]["version"], "3", "latest")
    m.bad("INVALID_PARAMETER_VALUE", "GET", reg + "/alias", name="net", alias="none", text="Registered model alias none not found.")
    m.ok("POST", ver + "/transition-stage", {"name": "net", "version": "1", "stage": "production"})
    m.ok("POST", ver + "/transition-stage", {"name": "net", "version": "2", "stage": "Production", "archive_existing_versions": True})
    m.bad("INVALID_PARAMETER_VALUE", "POST", ver + "/transition-stage", {"name": "net", "version": "2", "stage": "x"}, "Invalid Model Version stage: x.")
    stages = lambda r: [(v["version"], v["current_stage"]) for v in r]  # noqa: E731
    want = [("1", "Archived"), ("2", "Production"), ("3", "None")]
    lib.equal(stages(m.ok("GET", reg + "/get", name="net")["registered_model"]["latest_versions"]), want, "the latest version of each stage")
    lib.equal(stages(m.ok("GET", reg + "/get-latest-versions", name="net", stages=["none", "Archived"])["model_versions"]), want[::2], "the latest version of selected stages")
    lib.equal(m.ok("POST", reg + "/get-latest-versions", {"name": "net"})["model_versions"][1]["aliases"], ["champion"], "with aliases")
    found = lambda **kw: [v["version"] for v in m.ok("GET", ver + "/search", **kw).get("model_versions", [])]  # noqa: E731
    lib.equal(found(filter="version_number > 1 AND name = 'net'"), ["2", "3"], "the most recently changed first")
    lib.equal(found(filter=f"run_id = '{run}'", order_by="version_number"), ["1", "2", "3"], "by run")
    lib.equal(found(filter="tags.b = '2'"), ["1"], "by tag")
    m.bad("INVALID_PARAMETER_VALUE", "GET", ver + "/search", filter="version_number LIKE '1'", text="Invalid comparator for attribute version_number: LIKE")
    for i in range(3):
        m.ok("POST", reg + "/create", {"name": f"page {i}"})
    names, token = [], ""
    while token is not None:
        page = m.ok("GET", reg + "/search", max_results=2, page_token=token, filter="name LIKE 'page%'", order_by="name DESC")
        names += [r["name"] for r in page["registered_models"]]
        token = page.get("next_page_token")
    lib.equal(names, ["page 2", "page 1", "page 0"], "pages")
    lib.equal(m.ok("PATCH", reg + "/update", {"name": "net", "description": "new"})["registered_model"]["description"], "new", "description")
    lib.equal(m.ok("PATCH", ver + "/update", {"name": "net", "version": "1", "description": "new"})["model_version"]["description"], "new", "the description of a version")
    m.bad("RESOURCE_ALREADY_EXISTS", "POST", reg + "/rename", {"name": "net", "new_name": "page 0"})
    lib.equal(m.ok("POST", reg + "/rename", {"name": "net", "new_name": "web"})["registered_model"]["aliases"], [{"alias": "champion", "version": "2"}], "renamed")
    m.ok("DELETE", ver + "/delete", {"name": "web", "version": "2"})
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", ver + "/get", name="web", version="2", text="Model Version (name=web, version=2) not found")
    m.bad("INVALID_PARAMETER_VALUE", "GET", reg + "/alias", name="web", alias="champion")
    m.ok("DELETE", ver + "/delete", {"name": "web", "version": "3"})
    lib.equal(m.ok("POST", ver + "/create", {"name": "web", "source": "s3://b/x"})["model_version"]["version"], "4", "version numbers are not reused")
    m.ok("DELETE", reg + "/alias", {"name": "web", "alias": "none"})
    m.ok("DELETE", reg + "/delete", {"name": "web"})
    m.bad("RESOURCE_DOES_NOT_EXIST", "GET", ver + "/get", name="web", version="1")
    m.bad("RESOURCE_DOES_NOT_EXIST", "DELETE", reg + "/delete", {"name": "web"})


def requests(m, server):
    """How a request is parsed, for any route."""
    def raw(method, path, body, **headers):
        status, _, data = server.request(method, path, body, headers)
        return status, json.loads(data)
    lib.equal(raw("POST", API + "/runs/search", b"not json", **lib.JSON), (200, {}), "a body that is not JSON counts as empty")
    status, reply = raw("POST", API + "/experiments/create", b"", **lib.JSON)
    lib.equal((status, reply["error_code"]), (400, "INVALID_PARAMETER_VALUE"), "no body")
    lib.equal(raw("POST", API + "/runs/search", b"{}")[1]["message"], "Bad Request. Content-Type header is missing.", "no Content-Type")
    lib.equal(raw("POST", API + "/runs/search", b"{}", **{"Content-Type": "text/plain"})[0], 400, "another Content-Type")
    lib.equal(raw("POST", API + "/runs/search", json.dumps("{}").encode(), **{"Content-Type": "application/json; charset=utf-8"})[0], 200, "JSON in JSON")
    lib.equal(raw("POST", API + "/runs/search", b"[1]", **lib.JSON)[0], 400, "no object")
    lib.equal(raw("POST", API + "/runs/search", b"[" * 100000, **lib.JSON)[0], 400, "very deep")
    lib.equal(raw("POST", API + "/runs/search", b'{"experiment_ids":null,"runViewType":"ALL"}', **lib.JSON)[0], 200, "null and camelCase")
    create = API + "/runs/create"
    lib.equal(raw("POST", create, b'\xef\xbb\xbf{"experiment_id":"0"}', **lib.JSON)[0], 200, "a byte order mark")
    for odd in ('{"experiment_id":"0"}'.encode("utf-16"), '{"experiment_id":"0"}'.encode("utf-16-be"), '{"experiment_id":"ü"}'.encode("latin-1")):
        status, reply = raw("POST", create, odd, **lib.JSON)
        lib.check(status == 400 and "UTF-8" in reply["message"], f"the reason is the encoding: {reply}")
    run = make(m)
    for value, want in (("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity")):
        body = '{"run_id":"%s","key":"bare NaN","value":%s,"timestamp":1}' % (run, value)
        lib.equal(raw("POST", API + "/runs/log-metric", body.encode(), **lib.JSON), (200, {}), f"{value} without quotes")
        history = m.ok("GET", "/metrics/get-history", run_id=run, metric_key="bare NaN")["metrics"]
        lib.check(want in [p["value"] for p in history], f"{value} without quotes: {history}")
    for odd in (b'{"max_results":1e999}', b'{"filter":"\\u0000"}', b'{"fil\\u0000ter":""}', b'{"max_results":9223372036854775808}'):
        status, reply = raw("POST", API + "/runs/search", odd, **lib.JSON)
        lib.equal((status, reply.get("message", "")[:31]), (400, "Invalid value in the request body"[:31]), f"JSON that cannot be represented: {odd}")
        if b"u0000" in odd:
            lib.check(reply["message"].endswith("a string with a NUL character (\\u0000) is not accepted: remove the character"), f"NUL: {reply}")
    status, reply = raw("GET", API + "/runs/get", json.dumps({"run_id": run}).encode())
    lib.equal((status, reply.get("run", {}).get("info", {}).get("run_id")), (200, run), "GET with a body")
    for path in (API + "/nope", "/ajax-api/2.0/nope", "/api/3.0/mlflow/traces"):
        status, reply = raw("GET", path, None)
        lib.equal((status, reply["error_code"]), (404, "ENDPOINT_NOT_FOUND"), path)
    lib.equal(raw("PUT", API + "/runs/get", b"")[0], 405, "a method that the address does not support")
    with server.socket() as s:
        s.sendall(f"POST {API}/runs/set-tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1048577\r\n\r\n".encode())
        status, _, body = lib.replies(lib.read_all(s)[0])[0]
    lib.equal((status, "error_code" in json.loads(body)), (413, True), "more than 1 MiB")
    for path in ("/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/server-info"):
        status, reply = raw("GET", path, None)
        lib.equal((status, reply["workspaces_enabled"]), (200, False), path)
    lib.equal(raw("POST", API + "/artifacts/presigned-upload-url", b"{}", **lib.JSON)[0], 400, "presigned")
    lib.equal(raw("GET", "/model-versions/get-artifact?path=../x", None)[0], 400, "a bad path is reported before the model")
    lib.equal(raw("GET", "/model-versions/get-artifact?path=x&name=n&version=1", None)[0], 404, "an unknown model")
    used.update({("POST", "/artifacts/presigned-upload-url")})


def odd_clients(m, server):
    """Requests of MLflow's own REST tests: a thousand runs at once (and more, with whole ids), slashes in front of an address, runs without a
    name."""
    for ids in ([f"id_{i}" for i in range(1000)], [f"{i:032x}" for i in range(1100)]):
        for path, key, text in (("/metrics/get-history-bulk", "run_id", "cannot specify more than 100 run_ids. Received %d run_ids."),
                                ("/metrics/get-history-bulk-interval", "run_ids", "must specify at most 100 run_ids. Received %d run_ids.")):
            m.bad("INVALID_PARAMETER_VALUE", "GET", path, prefix=AJAX, text=text % len(ids), metric_key="loss", **{key: ids})
    run = make(m)
    for path in ("/model-versions/get-artifact?path=../x", "/get-artifact?path=../x&run_id=" + run, "/get-artifact?path=file:///x&run_id=" + run,
                 "/nope", "/api/2.0/mlflow-artifacts/artifacts?path=..%2Fx", API + "/runs/get?run_id=" + run, API + "/runs/nope"):
        status, _, data = server.request("GET", path)
        for slashes in ("/", "//"):
            got = server.request("GET", slashes + path)
            if path != "/nope":
                lib.equal((got[0], json.loads(got[2])), (status, json.loads(data)), slashes + path)
            else:
                lib.equal(got[0], 400, f"{slashes}{path}: not an address of MLflow")
    for text in ("metrics.loss", "name = 'a' OR name = 'b'"):
        m.bad("INVALID_PARAMETER_VALUE", "POST", "/logged-models/search", {"experiment_ids": ["0"], "filter": text}, "Invalid filter string")
    drawn = {m.ok("POST", "/runs/create", {"experiment_id": "0"})["run"]["info"]["run_name"] for _ in range(30)}
    lib.check(len(drawn) > 25 and all(re.fullmatch("[a-z]+-[a-z]+-[0-9]{1,3}", n) and len(n) <= 20 for n in drawn), f"names: {drawn}")


def journals(m, server):
    """Keys that MLflow would refuse are shown when they come from a journal."""
    run = lib.make_run(server, experiment="journal", params={"we;ird//key": "1"})
    lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "lo$s//x", "step": 1, "value": math.pi, "wall_time": 1700000000.25}]})[0], 200, "points")
    lib.equal(server.json("PATCH", f"/api/v1/runs/{run}", {"status": "preempted"})[0], 200, "preempted")
    got = m.ok("GET", "/runs/get", run_id=run)["run"]
    lib.equal((got["data"]["metrics"], got["data"]["params"]), ([{"key": "lo$s//x", "value": math.pi, "timestamp": 1700000000250, "step": 1}],
                                                                [{"key": "we;ird//key", "value": "1"}]), "shown")
    lib.equal(got["info"]["status"], "KILLED", "preempted is KILLED")
    lib.equal(len(m.ok("GET", "/metrics/get-history", run_id=run, metric_key="lo$s//x")["metrics"]), 1, "its history")


def png(seed, width=3, height=2):
    """A small picture."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    raw = b"".join(b"\0" + bytes((seed + x) % 256 for x in range(width * 3)) for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def pictures(m, experiment):
    """Files that log_image(key=, step=) uploads are the run's media, once each, for as long as the file exists."""
    run, ending = make(m, experiment), "0a1b2c3d-0000-4000-8000-0123456789ab"
    place = f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts"

    def name(key, step, end=".png"):
        return f"/images/{key}+step+{step}+timestamp+{1700000000123 + step}+{ending}{end}"

    def do(method, path, body=None):
        lib.equal(m.server.request(method, place + urllib.parse.quote(path), body)[0], 200, f"{method} {path}")

    def media():
        listed = m.server.json("GET", f"/api/v1/runs/{run}/media")[1]["media"]
        return [(x["key"], x["step"], x["wall_time"], x["width"], x["height"],
                 m.server.request("GET", f"/api/v1/runs/{run}/media/{x['content']}")[2]) for x in listed]

    def row(key, step, seed, width=3):
        return key, step, (1700000000123 + step) / 1000, width, 2, png(seed, width)

    for path, body in ((name("dogs~small", 0), png(1)), (name("dogs~small", -2), png(2)), (name("a.b c", 7), png(1, 4)), (name("step", 1), png(3)),
                       (name("dogs~small", 0), png(1)), (name("dogs~small", 0, end="+compressed.webp"), b"RIFF"), (name("torn", 0), b"no picture"),
                       ("/images/plain.png", png(5)), (name("x", 1).replace("+step+1", "+step+one"), png(5)), ("/b" + name("x", 1), png(5))):
        do("PUT", path, body)
    want = [row("dogs/small", -2, 2), row("dogs/small", 0, 1), row("step", 1, 3), row("a.b c", 7, 1, 4)]
    lib.equal(media(), want, "pictures")
    do("PUT", name("dogs~small", 0), png(9))
    lib.equal(media()[1], row("dogs/small", 0, 9), "a picture that is uploaded again")
    do("DELETE", name("dogs~small", -2))
    do("DELETE", "/images/plain.png")
    lib.equal(media(), [row("dogs/small", 0, 9), *want[2:]], "one picture deleted")
    do("DELETE", "/images")
    lib.equal(media(), [], "all pictures deleted")
    do("PUT", name("again", 3), png(4))
    lib.equal(m.server.request("DELETE", f"/api/v1/runs/{run}/artifacts/images")[0], 204, "DELETE with API v1")
    lib.equal(media(), [], "pictures deleted with API v1")


def prefixes(server):
    """Both prefixes give the same answers, on every route of the table."""
    for method, path, _, _, limit in lib.routes():
        if not path.startswith(API + "/") or "presigned" in path:
            continue
        path = path.replace("{model}", "m-1").replace("{key}", "k")
        replies = [server.request(method, path.replace(API, prefix, 1), b"{}" if limit else None, lib.JSON)[0::2] for prefix in (API, AJAX)]
        if path == API + "/logged-models" or not path.endswith("/search"):
            lib.equal(replies[0], replies[1], f"{method} {path} under both prefixes")
        lib.check(replies[0][0] < 500, f"{method} {path}: {replies[0]}")


def main():
    with lib.fresh() as server:
        m = Mlflow(server)
        experiment = experiments(m)
        runs(m, experiment)
        names(m, experiment)
        batches(m, experiment)
        histories(m, experiment)
        extreme_steps(m, experiment)
        search(m)
        inputs(m, experiment)
        pictures(m, experiment)
        models(m, experiment)
        registry(m, experiment)
        requests(m, server)
        odd_clients(m, server)
        journals(m, server)
        locations(m)
        prefixes(server)
        elsewhere = {("GET", "/artifacts/list"), ("POST", "/upload-artifact")}  # tests/api/artifacts.py
        for method, path, _, _, _ in lib.routes():
            for prefix in (API, AJAX):
                if path.startswith(prefix + "/"):
                    lib.check((method, path[len(prefix):]) in used | elsewhere, f"{method} {path} is not requested by this test")
    lib.finish("routes")


main()
