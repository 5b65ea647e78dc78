# SPDX-License-Identifier: Apache-2.0
"""The calls that differential.py sends to both servers: (name, method, address, body, what to keep of the reply:
{token: path in the reply}). <token> in an address or a body is replaced by that value. The key "type" of the last is
the Content-Type."""
import json
import urllib.parse

API, AJAX = "/api/2.0/mlflow", "/ajax-api/2.0/mlflow"
RUN = ("run", "info", "run_id")


def text_of(body):
    return body if body is None or isinstance(body, str) else json.dumps(body)


def post(what, path, body, **keep):
    return f"POST {path} {what}", "POST", API + path, text_of(body), keep


def ajax(what, path, body):
    return f"POST {path} {what}", "POST", AJAX + path, text_of(body), {}


def get(what, address, **args):
    return f"GET {address} {what}", "GET", API + address + ("?" + urllib.parse.urlencode(args, doseq=True, safe="<>") if args else ""), None, {}


def file(what, method, path, body=None):
    return f"{method} {path} {what}", method, "/api/2.0/mlflow-artifacts" + path, text_of(body), {}


def odd(call):
    """Where such a call is refused, the messages may differ."""
    return "odd: " + call[0], *call[1:]


def classic():
    """The calls of the Python client's classic flow, each also with errors."""
    yield post("", "/experiments/create", {"name": "one", "tags": [{"key": "k", "value": "v"}]}, exp1=("experiment_id",))
    yield post("again", "/experiments/create", {"name": "one"})
    yield post("nothing", "/experiments/create", {})
    yield post("a number", "/experiments/create", {"name": 3})
    yield post("long", "/experiments/create", {"name": "x" * 501})
    yield get("", "/experiments/get", experiment_id="<exp1>")
    for id in ("999999", "abc", ""):
        yield get(id, "/experiments/get", experiment_id=id)
    yield get("", "/experiments/get-by-name", experiment_name="one")
    yield get("none", "/experiments/get-by-name", experiment_name="zzz")
    yield get("Default", "/experiments/get-by-name", experiment_name="Default")
    yield post("", "/experiments/set-experiment-tag", {"experiment_id": "<exp1>", "key": "t", "value": "w"})
    yield post("bad key", "/experiments/set-experiment-tag", {"experiment_id": "<exp1>", "key": "a//b", "value": "w"})
    yield post("", "/experiments/delete-experiment-tag", {"experiment_id": "<exp1>", "key": "t"})
    yield post("again", "/experiments/delete-experiment-tag", {"experiment_id": "<exp1>", "key": "t"})
    yield post("", "/runs/create", {"experiment_id": "<exp1>", "user_id": "u", "start_time": 1000, "run_name": "r1", "tags": [{"key": "a", "value": "1"}]}, run1=RUN)
    yield post("bare", "/runs/create", {"experiment_id": "<exp1>"}, run2=RUN)
    yield post("text times", "/runs/create", {"experiment_id": "<exp1>", "start_time": "5"}, run3=RUN)
    yield post("two names", "/runs/create", {"experiment_id": "<exp1>", "run_name": "x", "tags": [{"key": "mlflow.runName", "value": "y"}]})
    yield post("nothing", "/runs/create", {})
    yield post("unknown", "/runs/create", {"experiment_id": "888888"})
    yield post("bad", "/runs/create", {"experiment_id": "x"})
    yield get("", "/runs/get", run_id="<run1>")
    yield get("bare", "/runs/get", run_id="<run2>")
    yield get("uuid", "/runs/get", run_uuid="<run1>")
    yield get("unknown", "/runs/get", run_id="0" * 32)
    yield get("nothing", "/runs/get")
    for value in (1, 0.5, "0.25", "NaN", "Infinity", "-Infinity", "abc", None, True, [1]):
        yield post(f"value {value!r}", "/runs/log-metric", {"run_id": "<run1>", "key": f"m{value!r}".strip("[]"), "value": value, "timestamp": 10, "step": 1})
    for stamp in (5, "6", 7.0, 7.5, -1, "x", None):
        yield post(f"timestamp {stamp!r}", "/runs/log-metric", {"run_id": "<run1>", "key": "t", "value": 1, "timestamp": stamp})
    for key in ("a/b", "a//b", "a/", "../x", ".", "a$b", "ü", "k" * 251, "", 5):
        yield post(f"key {key!r:.20}", "/runs/log-metric", {"run_id": "<run1>", "key": key, "value": 1, "timestamp": 1})
        yield post(f"key {key!r:.20}", "/runs/log-parameter", {"run_id": "<run1>", "key": key, "value": "v"})
        yield post(f"key {key!r:.20}", "/runs/set-tag", {"run_id": "<run1>", "key": key, "value": "v"})
        yield post(f"key {key!r:.20}", "/runs/log-batch", {"run_id": "<run1>", "metrics": [{"key": key, "value": 1, "timestamp": 2}]})
    yield post("other value", "/runs/log-parameter", {"run_id": "<run1>", "key": "a/b", "value": "w"})
    yield post("no value", "/runs/log-parameter", {"run_id": "<run1>", "key": "empty"})
    yield post("a number", "/runs/log-parameter", {"run_id": "<run1>", "key": "n", "value": 3})
    yield post("", "/runs/delete-tag", {"run_id": "<run1>", "key": "a"})
    yield post("again", "/runs/delete-tag", {"run_id": "<run1>", "key": "a"})
    yield post("", "/runs/log-batch", {"run_id": "<run2>", "metrics": [{"key": "loss", "value": i, "timestamp": i, "step": i} for i in range(9)],
                                       "params": [{"key": "lr", "value": "0.1"}], "tags": [{"key": "t", "value": "1"}, {"key": "t", "value": "2"}]})
    for what, body in (("params", {"params": [{"key": "lr", "value": "9"}]}), ("twice", {"params": [{"key": "z", "value": "1"}, {"key": "z", "value": "1"}]}),
                       ("no timestamp", {"metrics": [{"key": "x", "value": 1}]}), ("no key", {"tags": [{"value": "1"}]}), ("text", {"metrics": "x"}), ("empty", {}),
                       ("many", {"metrics": [{"key": "x", "value": 1, "timestamp": 1}] * 1001}), ("many params", {"params": [{"key": f"q{i}", "value": ""} for i in range(101)]})):
        yield post(what, "/runs/log-batch", dict(body, run_id="<run2>"))
    yield get("", "/runs/get", run_id="<run2>")
    yield get("", "/metrics/get-history", run_id="<run2>", metric_key="loss")
    yield get("limited", "/metrics/get-history", run_id="<run2>", metric_key="loss", max_results=100)
    yield get("a page", "/metrics/get-history", run_id="<run2>", metric_key="loss", max_results=2)
    yield get("zero", "/metrics/get-history", run_id="<run2>", metric_key="loss", max_results=0)
    yield get("none", "/metrics/get-history", run_id="<run2>", metric_key="nope", max_results=5)
    yield get("samples", "/metrics/get-history-bulk-interval", run_ids=["<run2>"], metric_key="loss", max_results=4)
    yield get("one side", "/metrics/get-history-bulk-interval", run_ids=["<run2>"], metric_key="loss", start_step=1)
    for text in ("metrics.loss > 3", "metrics.loss > '3'", "params.lr = '0.1'", "params.lr = 0.1", "tags.t LIKE '2%'", "status = 'RUNNING'", "attributes.run_name = 'r1'",
                 "x.y = 'z'", "attribute.nope = 'x'", "run_id IN ()", "params.a = 'b' OR params.b = 'c'", "metrics.loss IS NULL", "params.lr IS NOT NULL", "NOT params.lr = 'x'",
                 "metrics.loss LIKE 'x'", "start_time > 10", "start_time > 'x'", "params.lr", "datasets.nope = 'x'", "status IN ('RUNNING')", "metrics.loss == 3"):
        yield post(text, "/runs/search", {"experiment_ids": ["<exp1>"], "filter": text})
    for order in (["metrics.loss"], ["metrics.loss DESC", "params.lr"], ["x.y"], ["metrics.loss UP"], ["attribute.nope"], ["start_time desc"]):
        yield post(f"by {order}", "/runs/search", {"experiment_ids": ["<exp1>"], "order_by": order})
    yield post("twice the same field", "/runs/search", {"experiment_ids": ["<exp1>"], "order_by": ["metrics.loss", "metrics.loss"]})
    for limit in (0, -1, 50001, "x"):
        yield post(f"limit {limit}", "/runs/search", {"experiment_ids": ["<exp1>"], "max_results": limit})
        yield post(f"limit {limit}", "/experiments/search", {"max_results": limit})
    yield post("a page", "/runs/search", {"experiment_ids": ["<exp1>"], "max_results": 1})
    yield post("a list as a body", "/runs/search", "[1]")
    yield post("no JSON", "/runs/search", "x")
    yield post("without max_results", "/experiments/search", {})
    for text in ("name = 'one'", "attribute.name LIKE 'o%'", "attr.name = 'one'", "tags.k = 'v'", "tags.k IS NULL", "name IS NULL", "nope = 'x'", "creation_time > 'x'"):
        yield post(text, "/experiments/search", {"max_results": 10, "filter": text})
    dataset = {"name": "d", "digest": "g", "source_type": "t", "source": "s"}
    yield post("", "/runs/log-inputs", {"run_id": "<run2>", "datasets": [{"dataset": dataset, "tags": [{"key": "mlflow.data.context", "value": "train"}]}]})
    yield post("long", "/runs/log-inputs", {"run_id": "<run2>", "datasets": [{"dataset": dict(dataset, name="x" * 501)}]})
    yield post("", "/logged-models", {"experiment_id": "<exp1>", "name": "m1", "source_run_id": "<run2>", "params": [{"key": "a", "value": "1"}]}, model=("model", "info", "model_id"))
    yield post("bad name", "/logged-models", {"experiment_id": "<exp1>", "name": "a/b"})
    yield post("", "/runs/outputs", {"run_id": "<run2>", "models": [{"model_id": "<model>", "step": 1}]})
    yield get("inputs", "/runs/get", run_id="<run2>")
    yield ("PATCH /logged-models", "PATCH", API + "/logged-models/<model>", json.dumps({"model_id": "<model>", "status": "LOGGED_MODEL_READY"}), {})
    yield get("", "/logged-models/<model>")
    yield get("none", "/logged-models/m-0")
    yield post("", "/logged-models/search", {"experiment_ids": ["<exp1>"], "filter": "name = 'm1'"})
    yield post("bad", "/logged-models/search", {"experiment_ids": ["<exp1>"], "filter": "metrics.a > 'x'"})
    yield post("", "/runs/update", {"run_id": "<run1>", "status": "FINISHED", "end_time": 2000, "run_name": "r2"})
    yield post("bad", "/runs/update", {"run_id": "<run1>", "status": "LOST"})
    yield post("", "/runs/delete", {"run_id": "<run1>"})
    yield post("deleted", "/runs/set-tag", {"run_id": "<run1>", "key": "a", "value": "b"})
    yield post("", "/runs/restore", {"run_id": "<run1>"})
    yield post("unknown", "/runs/delete", {"run_id": "0" * 32})
    yield post("", "/experiments/update", {"experiment_id": "<exp1>", "new_name": "two"})
    yield post("", "/experiments/delete", {"experiment_id": "<exp1>"})
    yield post("again", "/experiments/delete", {"experiment_id": "<exp1>"})
    yield post("of a deleted one", "/experiments/update", {"experiment_id": "<exp1>", "new_name": "three"})
    yield post("in a deleted one", "/runs/create", {"experiment_id": "<exp1>"})
    yield post("", "/experiments/restore", {"experiment_id": "<exp1>"})
    yield get("", "/artifacts/list", run_id="<run1>")
    yield get("bad", "/artifacts/list", run_id="<run1>", path="../x")
    yield from files()


def files():
    """Artifacts through the proxy, with a folder as root; parts and presigned addresses are for other stores."""
    root = "<exp1>/<run1>/artifacts"
    yield file("", "PUT", f"/artifacts/{root}/d/a.txt", "words")
    yield file("again", "PUT", f"/artifacts/{root}/d/a.txt", "other words")
    yield file("nothing", "PUT", f"/artifacts/{root}/empty", "")
    yield file("plus", "PUT", f"/artifacts/{root}/a+b%20c%25.txt", "x")
    for path in ("../x", "%2e%2e/x", "d/../../x", "/etc/passwd", "..%5Cx", "%252e%252e/x", "a%23b", "c:%5Cx"):
        for method in ("PUT", "GET", "DELETE"):
            yield file("", method, "/artifacts/" + path, "x" if method == "PUT" else None)
        yield file("", "GET", "/artifacts?path=" + path)
    yield file("", "GET", f"/artifacts/{root}/d/a.txt")
    yield file("none", "GET", f"/artifacts/{root}/d/none.txt")
    yield file("a folder", "GET", f"/artifacts/{root}/d")
    for path in ("", "d", "none", "empty"):
        yield file(path, "GET", f"/artifacts?path={root}/{path}".rstrip("/"))
        yield get(path, "/artifacts/list", run_id="<run1>", path=path)
    yield get("of none", "/artifacts/list", run_id="0" * 32)
    parts = [{"part_number": 1, "etag": "e", "url": "u"}]
    yield file("", "POST", f"/mpu/create/{root}", {"path": f"{root}/big", "num_parts": 2})
    yield file("no parts", "POST", f"/mpu/create/{root}", {"path": f"{root}/big"})
    yield file("", "POST", f"/mpu/complete/{root}", {"path": f"{root}/big", "upload_id": "u", "parts": parts})
    yield file("", "POST", f"/mpu/abort/{root}", {"path": f"{root}/big", "upload_id": "u"})
    yield file("", "GET", f"/presigned/{root}/d/a.txt")
    yield post("", "/artifacts/presigned-upload-url", {"run_id": "<run1>", "path": "x"})
    yield file("", "DELETE", f"/artifacts/{root}/d/a.txt")
    yield file("again", "DELETE", f"/artifacts/{root}/d/a.txt")
    yield file("a folder", "DELETE", f"/artifacts/{root}/d")


def histories():
    """Several runs at once, samples: all parameters, points that are ordered only by timestamp or value."""
    bulk, interval = "/metrics/get-history-bulk", "/metrics/get-history-bulk-interval"

    def get(what, address, args):
        return (f"GET {address} {what}", "GET", AJAX + address + "?" + urllib.parse.urlencode(args, doseq=True, safe="<>"), None, {})
    for token in ("h1", "h2"):
        yield post(token, "/runs/create", {"experiment_id": "<exp1>", "start_time": 1, "run_name": token}, **{token: RUN})
        yield post("points of " + token, "/runs/log-batch", {"run_id": f"<{token}>", "metrics": [
            {"key": key, "value": value, "timestamp": 1000 + (37 * i) % 11, "step": step}
            for key in ("a", "b/c") for i, (step, value) in enumerate([(-3, 1.0), (0, "NaN"), (0, 2.5), (0, 2.5), (1, "Infinity"), (1, "-Infinity"), (7, 1e300), (9, -0.0)] +
                                                                      [(s, s / 8) for s in range(10, 40 if token == "h2" else 60)])]})
    for what, args in {
            "one": {"run_id": "<h1>", "metric_key": "a"}, "some": {"run_id": "<h1>", "metric_key": "b/c", "max_results": 7},
            "one that is there twice": {"run_id": ["<h1>", "<h1>"], "metric_key": "a", "max_results": 60}, "unknown run": {"run_id": "0" * 32, "metric_key": "a"},
            "bad run": {"run_id": "../x", "metric_key": "a"}, "unknown key": {"run_id": "<h1>", "metric_key": "zz"}, "no run": {"metric_key": "a"}, "no key": {"run_id": "<h1>"},
            "empty key": {"run_id": "<h1>", "metric_key": ""}, "empty run": {"run_id": "", "metric_key": "a"}, "bad key": {"run_id": "<h1>", "metric_key": "a//b"},
            "many runs": {"run_id": ["%032x" % i for i in range(101)], "metric_key": "a"}, "100 runs": {"run_id": ["%032x" % i for i in range(100)], "metric_key": "a"},
            "0": {"run_id": "<h1>", "metric_key": "a", "max_results": 0}, "-1": {"run_id": "<h1>", "metric_key": "a", "max_results": -1},
            "x": {"run_id": "<h1>", "metric_key": "a", "max_results": "x"}, "1.5": {"run_id": "<h1>", "metric_key": "a", "max_results": "1.5"},
            "too many": {"run_id": "<h1>", "metric_key": "a", "max_results": 25001}, "empty max": {"run_id": "<h1>", "metric_key": "a", "max_results": ""},
            "run_ids": {"run_ids": "<h1>", "metric_key": "a"}, "unknown word": {"run_id": "<h1>", "metric_key": "a", "zzz": "1"}}.items():
        yield get(what, bulk, args)
    yield ("GET " + bulk + " under /api", "GET", API + bulk + "?run_id=<h1>&metric_key=a", None, {})
    for what, args in {
            "one": {"run_ids": "<h1>", "metric_key": "a"}, "two": {"run_ids": ["<h2>", "<h1>"], "metric_key": "a", "max_results": 9},
            "twice": {"run_ids": ["<h1>", "<h1>"], "metric_key": "a", "max_results": 4}, "one point": {"run_ids": "<h1>", "metric_key": "a", "max_results": 1},
            "two points": {"run_ids": "<h1>", "metric_key": "a", "max_results": 2}, "as many as there are": {"run_ids": "<h1>", "metric_key": "a", "max_results": 57},
            "2500": {"run_ids": "<h1>", "metric_key": "a", "max_results": 2500}, "2501": {"run_ids": "<h1>", "metric_key": "a", "max_results": 2501},
            "0": {"run_ids": "<h1>", "metric_key": "a", "max_results": 0}, "-1": {"run_ids": "<h1>", "metric_key": "a", "max_results": -1},
            "x": {"run_ids": "<h1>", "metric_key": "a", "max_results": "x"}, "unknown": {"run_ids": "0" * 32, "metric_key": "a"},
            "known and unknown": {"run_ids": ["0" * 32, "<h2>"], "metric_key": "a", "max_results": 3}, "no runs": {"metric_key": "a"}, "no key": {"run_ids": "<h1>"},
            "empty key": {"run_ids": "<h1>", "metric_key": ""}, "run_id": {"run_id": "<h1>", "metric_key": "a"}, "bad run": {"run_ids": "../x", "metric_key": "a"},
            "many": {"run_ids": ["%032x" % i for i in range(101)], "metric_key": "a"}, "bad key": {"run_ids": "<h1>", "metric_key": "a//b"}}.items():
        yield get(what, interval, args)
    for start, end in ((0, 9), (-5, 0), (9, 0), (0, 0), (5, 5), (1000, 2000), ("x", 9), (0, "x"), ("", 9), (0, ""), ("", ""), (1.5, 9), (-2**63, 2**63 - 1), (0, 2**63)):
        yield get(f"{start!r} to {end!r}", interval, {"run_ids": ["<h1>", "<h2>"], "metric_key": "a", "max_results": 5, "start_step": start, "end_step": end})
    yield get("only the end", interval, {"run_ids": "<h1>", "metric_key": "a", "end_step": 1})
    for what, args in {"of all": {}, "empty max": {"max_results": ""}, "bad token": {"page_token": "%%%", "max_results": 3}, "-1": {"max_results": -1}, "x": {"max_results": "x"},
                       "more than there are": {"max_results": 25000}, "too many": {"max_results": 100000}}.items():
        yield get(what, "/metrics/get-history", dict({"run_id": "<h1>", "metric_key": "a"}, **args))
    for what, args in {"bad run": {"run_id": "../x", "metric_key": "a"}, "unknown run": {"run_id": "0" * 32, "metric_key": "a"}, "nothing": {}, "no run": {"metric_key": "a"},
                       "no key": {"run_id": "<h1>"}, "bad key": {"run_id": "<h1>", "metric_key": "a//b"}}.items():
        yield get(what, "/metrics/get-history", args)


def datasets():
    """Inputs of runs, and the data sets of experiments."""
    full = {"name": "full", "digest": "d1", "source_type": "local", "source": "{\"uri\": \"x\"}", "schema": "{\"columns\": []}", "profile": "{\"rows\": 3}"}

    def item(tags=None, **change):
        value = {k: v for k, v in dict(full, **change).items() if v is not None}
        return {"dataset": value} if tags is None else {"dataset": value, "tags": [{"key": k, "value": v} for k, v in tags]}

    def log(what, run, *items):
        return post(what, "/runs/log-inputs", {"run_id": run, "datasets": list(items)})
    search = "/experiments/search-datasets"
    yield post("", "/experiments/create", {"name": "data"}, exp2=("experiment_id",))
    for token in ("r4", "r5"):
        yield post(token, "/runs/create", {"experiment_id": "<exp2>", "start_time": int(token[1]), "run_name": token}, **{token: RUN})
    yield ajax("none", search, {"experiment_ids": ["<exp2>"]})
    yield log("all", "<r4>", item([("mlflow.data.context", "train")]), item([("mlflow.data.context", "eval"), ("x", "y")], name="other"))
    yield log("again with other tags", "<r4>", item([("mlflow.data.context", "test")]))
    yield log("no tags", "<r5>", item(), item(digest="d2"))
    yield log("another profile", "<r5>", item(profile="{}", schema=None))
    yield log("the same twice", "<r5>", item([("a", "1")], name="twice"), item([("a", "2")], name="twice"))
    yield post("", "/experiments/create", {"name": "scratch"}, exp9=("experiment_id",))
    yield post("scratch", "/runs/create", {"experiment_id": "<exp9>", "start_time": 1, "run_name": "scratch"}, scratch=RUN)
    for field in ("name", "digest", "source_type", "source", "schema", "profile"):
        yield odd(log("without " + field, "<scratch>", item(**{field: None})))
        yield odd(log("empty " + field, "<scratch>", item(**{field: ""})))
        yield odd(log("a number as " + field, "<scratch>", item(**{field: 3})))
    for field, length in (("name", 501), ("digest", 37), ("source", 65536)):
        yield log("long " + field, "<r4>", item(**{field: "x" * length}))
        yield log("just as long " + field, "<r5>", item(**{field: "x" * (length - 1)}))
    for what, tags in (("long key", [("k" * 256, "v")]), ("long value", [("k", "v" * 501)]), ("just long", [("k" * 255, "v" * 500)]), ("empty key", [("", "v")]), ("empty value", [("k", "")]),
                       ("twice", [("k", "1"), ("k", "2")])):
        yield odd(log("tag: " + what, "<scratch>", item(tags, name="tag " + what)))
    for what, body in (("nothing", {"run_id": "<scratch>"}), ("no run", {"datasets": [item()]}), ("unknown run", {"run_id": "0" * 32, "datasets": [item()]}), ("text", {"run_id": "<scratch>", "datasets": "x"}),
                       ("numbers", {"run_id": "<scratch>", "datasets": [1]}), ("no data set", {"run_id": "<scratch>", "datasets": [{}]}), ("null", {"run_id": "<scratch>", "datasets": None}),
                       ("models", {"run_id": "<scratch>", "models": [{"model_id": "m-" + "0" * 32}]}), ("a model without id", {"run_id": "<scratch>", "models": [{}]}),
                       ("text as models", {"run_id": "<scratch>", "models": "x"})):
        yield odd(post(what, "/runs/log-inputs", body))
    for run in ("<r4>", "<r5>"):
        yield get(run, "/runs/get", run_id=run)
    for what, body in (("one", {"experiment_ids": ["<exp2>"]}), ("two", {"experiment_ids": ["<exp2>", "<exp1>"]}), ("nothing", {}), ("no ids", {"experiment_ids": []}), ("null", {"experiment_ids": None}),
                       ("text", {"experiment_ids": "<exp2>"}), ("numbers", {"experiment_ids": [0]}), ("unknown", {"experiment_ids": ["99999"]}), ("no number", {"experiment_ids": ["x"]}),
                       ("21", {"experiment_ids": [str(i) for i in range(1000, 1021)]}), ("20", {"experiment_ids": [str(i) for i in range(1000, 1020)]}), ("empty id", {"experiment_ids": [""]}),
                       ("twice", {"experiment_ids": ["<exp2>", "<exp2>"]}), ("no JSON", "{"), ("unknown field", {"experiment_ids": ["<exp2>"], "zz": 1})):
        yield ajax(what, search, body)
    for text in ("datasets.name = 'full'", "dataset.name LIKE 'ful%'", "datasets.name ILIKE 'FUL%'", "datasets.digest = 'd2'", "datasets.context = 'train'", "datasets.context != 'train'",
                 "datasets.name IN ('full', 'other')", "datasets.name NOT IN ('full')", "datasets.name > 'a'", "datasets.context IS NULL", "datasets.name = 3", "datasets.context = 'train' AND datasets.name = 'full'"):
        yield post(text, "/runs/search", {"experiment_ids": ["<exp2>"], "filter": text, "order_by": ["run_name"]})
    yield post("", "/runs/delete", {"run_id": "<r4>"})
    yield log("into a deleted run", "<r4>", item())
    yield ajax("with a deleted run", search, {"experiment_ids": ["<exp2>"]})
    yield post("", "/runs/restore", {"run_id": "<r4>"})


def models():
    """Logged models: created, changed, searched, deleted."""
    address = "/logged-models"

    def change(method, what, path, body=None):
        return (f"{method} {address}{path} {what}", method, API + address + path, body if body is None or isinstance(body, str) else json.dumps(body), {})
    yield post("", "/experiments/create", {"name": "models"}, exp3=("experiment_id",))
    yield post("", "/runs/create", {"experiment_id": "<exp3>", "start_time": 1, "run_name": "r6"}, r6=RUN)
    for i, (name, kind) in enumerate((("alpha", "t"), ("beta", ""), ("beta", "u"))):
        yield post(f"{name} {i}", address, {"experiment_id": "<exp3>", "name": name, "model_type": kind, "source_run_id": "<r6>" if i else "",
                                            "params": [{"key": "p", "value": str(i)}, {"key": "same", "value": "s"}], "tags": [{"key": "t", "value": "v%d" % i}]}, **{f"mod{i}": ("model", "info", "model_id")})
        yield post(f"metric of {name} {i}", "/runs/log-metric", {"run_id": "<r6>", "key": "acc", "value": i / 2, "timestamp": 5 + i, "step": i, "model_id": f"<mod{i}>"})
        yield post(f"metric with data of {name} {i}", "/runs/log-metric", {"run_id": "<r6>", "key": "acc", "value": i / 4, "timestamp": 19 - i, "step": i, "model_id": f"<mod{i}>",
                                                                         "dataset_name": "full", "dataset_digest": "d1"})
    for what, body in (("nothing", {}), ("no experiment", {"name": "x"}), ("unknown experiment", {"experiment_id": "99999", "name": "x"}), ("no number", {"experiment_id": "x", "name": "x"}),
                       ("a number as name", {"experiment_id": "<exp1>", "name": 3}), ("bad name", {"experiment_id": "<exp1>", "name": "a:b"}), ("quoted name", {"experiment_id": "<exp1>", "name": "a'b"}),
                       ("long name", {"experiment_id": "<exp1>", "name": "x" * 501}), ("text as params", {"experiment_id": "<exp1>", "params": "x"}),
                       ("param without key", {"experiment_id": "<exp1>", "params": [{"value": "1"}]}), ("tag without key", {"experiment_id": "<exp1>", "tags": [{"value": "1"}]}),
                       ("params twice", {"experiment_id": "<exp1>", "name": "twice", "params": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]}),
                       ("unknown run", {"experiment_id": "<exp1>", "name": "of none", "source_run_id": "0" * 32})):
        yield odd(post(what, address, body))
    yield post("to be changed", address, {"experiment_id": "<exp1>", "name": "changed"}, mod9=("model", "info", "model_id"))
    for what, tags in (("", [{"key": "k", "value": "v"}, {"key": "t", "value": "changed"}]), ("empty", []), ("no key", [{"value": "v"}]), ("no value", [{"key": "nv"}]), ("text", "x"), ("null", None),
                                      ("bad key", [{"key": "a//b", "value": "v"}]), ("long key", [{"key": "k" * 251, "value": "v"}]), ("long value", [{"key": "lv", "value": "v" * 8001}]), ("a number", [{"key": "n", "value": 3}])):
        yield odd(change("PATCH", "tags " + what, "/<mod9>/tags", {"model_id": "<mod9>", "tags": tags}))
    yield change("PATCH", "no tags", "/<mod9>/tags", {"model_id": "<mod9>"})
    yield change("PATCH", "unknown", "/m-0/tags", {"model_id": "m-0", "tags": [{"key": "a", "value": "b"}]})
    yield change("DELETE", "", "/<mod9>/tags/k")
    yield change("DELETE", "again", "/<mod9>/tags/k")
    yield change("DELETE", "of none", "/m-0/tags/k")
    yield odd(change("DELETE", "slash", "/<mod9>/tags/a%2Fb"))
    for what, params in (("", [{"key": "late", "value": "1"}]), ("again", [{"key": "late", "value": "1"}]), ("other value", [{"key": "late", "value": "2"}]), ("no key", [{"value": "v"}]), ("text", "x"), ("empty", []),
                         ("long key", [{"key": "k" * 251, "value": "v"}]), ("long value", [{"key": "lv", "value": "v" * 6001}]), ("bad key", [{"key": "a//b", "value": "v"}])):
        yield odd(change("POST", "params " + what, "/<mod9>/params", {"model_id": "<mod9>", "params": params}))
    yield change("POST", "params of none", "/m-0/params", {"model_id": "m-0", "params": [{"key": "a", "value": "b"}]})
    yield change("PATCH", "", "/<mod1>", {"model_id": "<mod1>", "status": "LOGGED_MODEL_READY"})
    yield post("in the end", address, {"experiment_id": "<exp1>", "name": "finished"}, mod8=("model", "info", "model_id"))
    for status in ("LOGGED_MODEL_READY", 3, "2", "LOGGED_MODEL_PENDING", "nope", 9, None, ""):
        yield odd(change("PATCH", f"status {status!r}", "/<mod8>", {"model_id": "<mod8>", "status": status}))
    yield change("PATCH", "no status", "/<mod9>", {"model_id": "<mod9>"})
    yield change("PATCH", "of none", "/m-0", {"model_id": "m-0", "status": "LOGGED_MODEL_READY"})
    for i in range(3):
        yield change("GET", "", f"/<mod{i}>")
    for text in ("name = 'beta'", "name != 'beta'", "name LIKE 'b%'", "name ILIKE 'B%'", "name IN ('alpha', 'x')", "attributes.name = 'alpha'", "model_type = 't'", "status = 'READY'", "status = 'LOGGED_MODEL_READY'",
                 "source_run_id = '<r6>'", "model_id = '<mod1>'", "model_id IN ('<mod1>', '<mod2>')", "creation_timestamp > 0", "creation_timestamp > 'x'", "creation_time > 0", "last_updated_timestamp < 5",
                 "metrics.acc > 0.2", "metrics.acc = 0.5", "metrics.acc > '1'", "metrics.none > 0", "metrics.acc LIKE 'x'", "params.p = '1'", "params.p != '1'", "params.p = 1", "params.same LIKE 's%'", "tags.t = 'v1'",
                 "tags.t ILIKE 'V%'", "tags.none = 'x'", "tags.t IS NULL", "name = 'beta' AND params.p = '2'", "name = 'beta' OR name = 'alpha'", "name = 'beta' and params.p = '2'", "attribute.name = 'alpha'",
                 "attr.name = 'x'", "metric.acc > 0", "param.p = '1'", "tag.t = 'v1'", "nope = 'x'", "attributes.nope = 'x'", "x.y = 'z'", "name", "name =", "= 'x'", "name = beta", "((", "", " ", "name like 'b%'",
                 "`name` = 'beta'", "params.`p` = '1'", "params.\"p\" = '1'", "name IS NULL", "experiment_id = '1'"):
        yield odd(post("by " + text, address + "/search", {"experiment_ids": ["<exp3>"], "filter": text}))
    for order in ([{"field_name": "name"}], [{"field_name": "name", "ascending": False}, {"field_name": "creation_timestamp"}], [{"field_name": "metrics.acc"}], [{"field_name": "metrics.acc", "ascending": False}],
                  [{"field_name": "metrics.acc", "dataset_name": "full"}], [{"field_name": "metrics.acc", "dataset_name": "full", "dataset_digest": "d1", "ascending": False}],
                  [{"field_name": "metrics.acc", "dataset_digest": "d1"}], [{"field_name": "metrics.none"}], [{"field_name": "params.p"}], [{"field_name": "tags.t"}], [{"field_name": "nope"}], [{"field_name": ""}], [{}],
                  [{"field_name": "name", "ascending": "x"}], "name", ["name"], [{"field_name": "creation_time"}], [{"field_name": "attributes.name"}], [{"field_name": "name", "dataset_name": "full"}],
                  [{"field_name": "status"}], [{"field_name": "model_type"}], [{"field_name": "last_updated_timestamp"}], [{"field_name": "name"}, {"field_name": "name"}], [{"field_name": "x.y"}]):
        yield odd(post(f"ordered {order}", address + "/search", {"experiment_ids": ["<exp3>"], "order_by": order}))
    for data in ([{"dataset_name": "full"}], [{"dataset_name": "full", "dataset_digest": "d1"}], [{"dataset_name": "full", "dataset_digest": "zz"}], [{"dataset_name": "zz"}], [{"dataset_digest": "d1"}], [{}], "x"):
        yield post(f"data {data}", address + "/search", {"experiment_ids": ["<exp3>"], "datasets": data, "filter": "metrics.acc >= 0", "order_by": [{"field_name": "name"}]})
    for limit in (0, -1, 1, 50000, 50001, "x", "2", 1.5):
        yield odd(post(f"limit {limit!r}", address + "/search", {"experiment_ids": ["<exp3>"], "max_results": limit}))
    for what, body in (("nothing", {}), ("no ids", {"experiment_ids": []}), ("unknown", {"experiment_ids": ["99999"]}), ("no number", {"experiment_ids": ["x"]}), ("text", {"experiment_ids": "<exp3>"}),
                       ("bad token", {"experiment_ids": ["<exp3>"], "page_token": "zz"}), ("no JSON", "{")):
        yield post(what, address + "/search", body)
    yield post("metric of no model", "/runs/log-metric", {"run_id": "<r6>", "key": "acc", "value": 1, "timestamp": 5, "model_id": "m-0"})
    yield post("batch with a model", "/runs/log-batch", {"run_id": "<r6>", "metrics": [{"key": "f1", "value": 0.5, "timestamp": 5, "model_id": "<mod2>", "dataset_name": "full"}]})
    for what, body in (("", {"run_id": "<r6>", "models": [{"model_id": "<mod0>", "step": 2}]}), ("again", {"run_id": "<r6>", "models": [{"model_id": "<mod0>", "step": 3}]}), ("no step", {"run_id": "<r6>", "models": [{"model_id": "<mod1>"}]}),
                       ("no id", {"run_id": "<r6>", "models": [{"step": 3}]}), ("none", {"run_id": "<r6>", "models": []}), ("nothing", {"run_id": "<r6>"}), ("unknown run", {"run_id": "0" * 32, "models": [{"model_id": "<mod0>", "step": 1}]}),
                       ("text", {"run_id": "<r6>", "models": "x"})):
        yield post(what, "/runs/outputs", body)
    record = {"artifact_path": "m", "flavors": {}, "utc_time_created": "2026-01-01 00:00:00.000000", "run_id": "<r6>"}
    for what, text in (("", json.dumps(record)), ("again", json.dumps(record)), ("no JSON", "{"), ("a list", "[]"), ("empty", ""), ("a number", 3),
                       *(("without " + k, json.dumps({n: v for n, v in record.items() if n != k})) for k in record)):
        yield post("model " + what, "/runs/log-model", {"run_id": "<r6>", "model_json": text})
    yield post("model of none", "/runs/log-model", {"run_id": "0" * 32, "model_json": json.dumps(record)})
    yield get("with models", "/runs/get", run_id="<r6>")
    yield get("files", "/logged-models/<mod0>/artifacts/directories")
    yield get("bad files", "/logged-models/<mod0>/artifacts/directories", artifact_directory_path="../x")
    yield get("files of none", "/logged-models/m-0/artifacts/directories")
    yield ("GET files none", "GET", AJAX + "/logged-models/<mod0>/artifacts/files?artifact_file_path=zz", None, {})
    yield ("GET files bad", "GET", AJAX + "/logged-models/<mod0>/artifacts/files?artifact_file_path=../x", None, {})
    yield ("GET files without", "GET", AJAX + "/logged-models/<mod0>/artifacts/files", None, {})
    yield change("DELETE", "", "/<mod2>")
    yield change("DELETE", "again", "/<mod2>")
    yield change("GET", "deleted", "/<mod2>")
    yield change("GET", "deleted, allowed", "/<mod2>?allow_deleted=true")
    yield change("GET", "deleted, allowed badly", "/<mod2>?allow_deleted=maybe")
    yield post("after a deletion", address + "/search", {"experiment_ids": ["<exp3>"]})


MODELS, VERSIONS = "/registered-models", "/model-versions"


def sent(method, what, path, body):
    return f"{method} {path} {what}", method, API + path, text_of(body), {}


def model_names():
    """Registered models: created, renamed, described, tagged, deleted."""
    yield post("", MODELS + "/create", {"name": "net", "tags": [{"key": "k", "value": "v"}, {"key": "k", "value": "w"}, {"key": "t", "value": ""}], "description": "a *net*"})
    yield post("again", MODELS + "/create", {"name": "net"})
    yield post("bare", MODELS + "/create", {"name": "a b.c"})
    yield post("number", MODELS + "/create", {"name": 3})
    yield post("nothing", MODELS + "/create", {})
    for name in ("", " ", "a/b", "a:b", "..", ".", "../x", "ünï", "quo'te", 'dou"ble', "x" * 256, "a#b", "50%", "-", "None"):
        yield post(f"name {name!r:.20}", MODELS + "/create", {"name": name})
    for key, value in (("", "v"), ("a//b", "v"), ("a$b", "v"), ("k" * 251, "v"), ("k" * 250, "v"), ("v", "x" * 100001), ("v", "x" * 5001), ("no value", None)):
        tag = {"key": key} if value is None else {"key": key, "value": value}
        yield post(f"tag {key:.20} {str(value):.5}", MODELS + "/create", {"name": "tagged " + str(len(key)) + str(len(str(value))), "tags": [tag]})
        yield post(f"tag {key:.20} {str(value):.5}", MODELS + "/set-tag", dict(tag, name="net"))
        yield sent("DELETE", f"tag {key:.20} {str(value):.5}", MODELS + "/delete-tag", {"name": "net", "key": key})
    for what, body in (("no model", {"name": "none", "key": "k", "value": "v"}), ("no key", {"name": "net", "value": "v"}), ("no name", {"key": "k", "value": "v"}), ("bad name", {"name": "a/b", "key": "k", "value": "v"})):
        yield post(what, MODELS + "/set-tag", body)
        yield sent("DELETE", what, MODELS + "/delete-tag", body)
    yield sent("DELETE", "tag that is not there", MODELS + "/delete-tag", {"name": "net", "key": "zz"})
    yield post("tag again", MODELS + "/set-tag", {"name": "net", "key": "k", "value": "x"})
    for name in ("net", "a b.c", "none", "", "a/b", " ", ".."):
        yield get(name, MODELS + "/get", name=name)
    yield get("nothing", MODELS + "/get")
    for what, body in (("", {"name": "net", "description": "new"}), ("empty", {"name": "net", "description": ""}), ("none", {"name": "net"}), ("null", {"name": "net", "description": None}),
                       ("unknown", {"name": "none", "description": "x"}), ("nothing", {}), ("bad name", {"name": "a:b"}), ("number", {"name": "net", "description": 3})):
        yield sent("PATCH", what, MODELS + "/update", body)
    yield get("updated", MODELS + "/get", name="net")
    for what, body in (("", {"name": "a b.c", "new_name": "renamed"}), ("taken", {"name": "renamed", "new_name": "net"}), ("itself", {"name": "renamed", "new_name": "renamed"}), ("unknown", {"name": "a b.c", "new_name": "x"}),
                       ("no name", {"new_name": "x"}), ("no new name", {"name": "renamed"}), ("empty", {"name": "renamed", "new_name": ""}), ("blank", {"name": "renamed", "new_name": " "}), ("slash", {"name": "renamed", "new_name": "a/b"}),
                       ("leads elsewhere", {"name": "renamed", "new_name": "../x"})):
        yield post(what, MODELS + "/rename", body)
    yield get("renamed", MODELS + "/get", name="renamed")
    for what, body in (("", {"name": "renamed"}), ("again", {"name": "renamed"}), ("nothing", {}), ("bad name", {"name": "a/b"})):
        yield sent("DELETE", what, MODELS + "/delete", body)
    yield post("the name again", MODELS + "/create", {"name": "renamed"})


def versions():
    """Versions, stages, aliases, tags."""
    yield post("of sources", "/experiments/create", {"name": "sources"}, exps=("experiment_id",))
    yield post("", "/runs/create", {"experiment_id": "<exps>", "start_time": 1, "run_name": "source"}, rs=RUN)
    source = "mlflow-artifacts:/<exps>/<rs>/artifacts/model"
    yield file("", "PUT", "/artifacts/<exps>/<rs>/artifacts/model/MLmodel", "flavors")
    yield file("", "PUT", "/artifacts/<exps>/<rs>/artifacts/model/sub/file", "x")
    yield post("to register", "/logged-models", {"experiment_id": "<exps>", "name": "logged", "source_run_id": "<rs>"}, mods=("model", "info", "model_id"))
    yield post("first", VERSIONS + "/create", {"name": "net", "source": source, "run_id": "<rs>", "description": "one", "run_link": "http://h/r", "tags": [{"key": "k", "value": "v"}, {"key": "k", "value": "w"}]})
    yield post("bare", VERSIONS + "/create", {"name": "net", "source": "s3://b/model"})
    yield post("of a logged model", VERSIONS + "/create", {"name": "net", "source": "models:/<mods>", "model_id": "<mods>"})
    yield post("of a logged model's address", VERSIONS + "/create", {"name": "net", "source": "models:/<mods>"})
    yield get("tagged", "/logged-models/<mods>")
    yield post("of another version", VERSIONS + "/create", {"name": "ünï", "source": "models:/net/1"})
    yield post("of no model", VERSIONS + "/create", {"name": "net", "source": source, "model_id": "m-0"})
    yield post("of another run", VERSIONS + "/create", {"name": "net", "source": source, "run_id": "0" * 32})
    yield post("of no run", VERSIONS + "/create", {"name": "net", "source": source})
    yield post("of the run's address", VERSIONS + "/create", {"name": "net", "source": "runs:/<rs>/model", "run_id": "<rs>"})
    for args in ({"run_id": "<rs>"}, {"run_id": "0" * 32}, {"run_id": ""}, {"model_id": "<mods>"}, {"model_id": ""}):
        yield post(f"of another version with {args}", VERSIONS + "/create", dict(args, name="net", source="models:/net/1"))
    for name in ("none", "", "a/b", None):
        yield post(f"name {name!r}", VERSIONS + "/create", {"name": name, "source": source, "run_id": "<rs>"})
    for at in ("", None, 3, "/etc", "x", "file:///etc", "file://host/x", "file://localhost/x", "s3://b", "s3://b/x", "s3://b/../x", "s3://b/x/..", "s3://b/./x", "s3://b/%2e%2e/x", "s3://b/%252e%252e/x", "s3://b/x%00", "http://h/x?y=../z",
               "http://h/x#y", "https://h/a//b/", "dbfs:/x", "dbfs:x", "runs:/<rs>/model", "mlflow-artifacts:/../x", "mlflow-artifacts://h:1/x/y", "models:/m-0", "models:/net/99", "models:/net/Staging", "models:/net/latest", "models:/net@x", "models:/none/1", "models://h/net/1", "models:/net/", "models:/net/nope", "models:/net/0", "models:/@a",
               "models:/", "models:/a/b/c", "MODELS:/net/1", "hdfs://h:8020/p", "a:b/c", "s3://b/a b", "s3://b/a+b"):
        yield post(f"source {at!r}", VERSIONS + "/create", {"name": "net", "source": at})
    yield post("local with a run", VERSIONS + "/create", {"name": "net", "source": "/etc", "run_id": "<rs>"})
    yield post("local with no such run", VERSIONS + "/create", {"name": "net", "source": "/etc", "run_id": "0" * 32})
    for key, value in (("", "v"), ("a//b", "v"), ("k" * 251, "v"), ("v", "x" * 100001), ("no value", None)):
        tag = {"key": key} if value is None else {"key": key, "value": value}
        yield post(f"tag {key:.20} {str(value):.5}", VERSIONS + "/create", {"name": "net", "source": source, "run_id": "<rs>", "tags": [tag]})
        yield post(f"tag {key:.20} {str(value):.5}", VERSIONS + "/set-tag", dict(tag, name="net", version="1"))
        yield sent("DELETE", f"tag {key:.20} {str(value):.5}", VERSIONS + "/delete-tag", {"name": "net", "version": "1", "key": key})
    for version in ("1", "2", "3", "99", "0", "-1", "x", "1.0", " 1", "", 1, None):
        yield get(f"{version!r}", VERSIONS + "/get", name="net", **({} if version is None else {"version": version}))
        yield get(f"{version!r}", VERSIONS + "/get-download-uri", name="net", **({} if version is None else {"version": version}))
        yield sent("PATCH", f"{version!r}", VERSIONS + "/update", {"name": "net", "version": version, "description": "d"})
        yield post(f"version {version!r}", VERSIONS + "/set-tag", {"name": "net", "version": version, "key": "k", "value": "v"})
        yield post(f"version {version!r}", MODELS + "/alias", {"name": "net", "alias": "some", "version": version})
    for name in ("none", "", "a/b"):
        yield get(name, VERSIONS + "/get", name=name, version="1")
        yield get(name, VERSIONS + "/get-download-uri", name=name, version="1")
        yield sent("PATCH", name, VERSIONS + "/update", {"name": name, "version": "1"})
    yield sent("PATCH", "no description", VERSIONS + "/update", {"name": "net", "version": "1"})
    yield sent("PATCH", "empty description", VERSIONS + "/update", {"name": "net", "version": "2", "description": ""})
    yield get("updated", VERSIONS + "/get", name="net", version="2")


def aliases_and_stages():
    for alias in ("champion", "Champion", "a-b_c", "ünï", "latest", "LATEST", "v1", "V22", "v", "vx", "1", "a b", "a/b", "a@b", "", "x" * 255, "x" * 256, None, 3):
        yield post(f"alias {alias!r:.12}", MODELS + "/alias", {"name": "net", "alias": alias, "version": "1"})
        yield get(f"alias {alias!r:.12}", MODELS + "/alias", name="net", **({} if alias is None else {"alias": alias}))
    yield post("moves", MODELS + "/alias", {"name": "net", "alias": "champion", "version": "2"})
    yield post("a second", MODELS + "/alias", {"name": "net", "alias": "second", "version": "2"})
    yield get("moved", MODELS + "/alias", name="net", alias="champion")
    yield get("with aliases", MODELS + "/get", name="net")
    yield get("with aliases", VERSIONS + "/get", name="net", version="2")
    for what, args in (("unknown", {"name": "net", "alias": "zz"}), ("no model", {"name": "none", "alias": "zz"}), ("bad name", {"name": "a/b", "alias": "zz"}), ("bad alias", {"name": "net", "alias": "a b"}), ("nothing", {})):
        yield get(what, MODELS + "/alias", **args)
        yield sent("DELETE", what, MODELS + "/alias", args)
    yield sent("DELETE", "", MODELS + "/alias", {"name": "net", "alias": "second"})
    yield get("deleted", MODELS + "/alias", name="net", alias="second")
    yield get("latest of none", MODELS + "/alias", name="renamed", alias="latest")
    for version, stage, archive in (("1", "Staging", None), ("2", "staging", None), ("3", "STAGING", True), ("1", "Production", False), ("2", "Archived", None), ("3", "None", None), ("1", "nope", None), ("1", "", None),
                                    ("99", "Staging", None), ("99", "Staging", True), ("x", "Staging", None), ("1", "Archived", True), ("1", "none", True), ("1", "Deleted_Internal", None), ("1", 3, None), ("1", "Staging", "maybe"), ("1", "Staging", 1)):
        body = {"name": "net", "version": version, "stage": stage}
        yield post(f"{version} {stage} {archive}", VERSIONS + "/transition-stage", body if archive is None else dict(body, archive_existing_versions=archive))
    yield get("staged", MODELS + "/get", name="net")
    yield get("", MODELS + "/get-latest-versions", name="net")
    yield get("two", MODELS + "/get-latest-versions", name="net", stages=["Staging", "archived"])
    yield get("none there", MODELS + "/get-latest-versions", name="net", stages="Production")
    yield get("bad", MODELS + "/get-latest-versions", name="net", stages="nope")
    yield get("no model", MODELS + "/get-latest-versions", name="none")
    yield get("nothing", MODELS + "/get-latest-versions")
    yield post("", MODELS + "/get-latest-versions", {"name": "net"})
    yield post("two", MODELS + "/get-latest-versions", {"name": "net", "stages": ["None", "Staging"]})
    yield post("text", MODELS + "/get-latest-versions", {"name": "net", "stages": "None"})
    yield post("empty", MODELS + "/get-latest-versions", {"name": "net", "stages": []})
    for what, path in (("", "MLmodel"), ("none", "zz"), ("bad", "../x"), ("a folder", "sub")):
        yield (f"GET /model-versions/get-artifact {what}", "GET", "/model-versions/get-artifact?" + urllib.parse.urlencode({"name": "net", "version": "1", "path": path}), None, {})
    yield ("GET /model-versions/get-artifact no model", "GET", "/model-versions/get-artifact?name=none&version=1&path=x", None, {})
    yield ("GET /model-versions/get-artifact no version", "GET", "/model-versions/get-artifact?name=net&version=99&path=x", None, {})


def registry_searches():
    yield post("for searches", MODELS + "/create", {"name": "Beta_1", "tags": [{"key": "team", "value": "A"}]})
    yield post("for searches", MODELS + "/create", {"name": "beta%2", "tags": [{"key": "team", "value": "b"}, {"key": "t.u v", "value": "x"}]})
    yield post("a prompt", MODELS + "/create", {"name": "prompt", "tags": [{"key": "mlflow.prompt.is_prompt", "value": "true"}]})
    for i in range(4):
        yield post(f"for searches {i}", VERSIONS + "/create", {"name": "Beta_1", "source": f"s3://b/{i}", "tags": [{"key": "i", "value": str(i)}]})
    yield post("a prompt's", VERSIONS + "/create", {"name": "prompt", "source": "dummy-source", "tags": [{"key": "mlflow.prompt.is_prompt", "value": "true"}]})
    filters = ("name = 'net'", "name != 'net'", "name LIKE 'b%'", "name ILIKE 'B%'", "name ILIKE 'beta_1'", "name LIKE 'beta%2'", "name IN ('net', 'Beta_1')", "name NOT IN ('net')", "attribute.name = 'net'", "attributes.name = 'net'", "name > 'a'", "name = net",
               "name = \"net\"", "name == 'net'", "tags.team = 'A'", "tag.team = 'A'", "tags.team != 'A'", "tags.team ILIKE 'a'", "tags.team LIKE '%'", "tags.`t.u v` = 'x'", "tags.team = 'A' AND tags.team = 'b'", "tags.team = 'A' AND name LIKE 'B%'",
               "tags.team = 'A' OR name = 'net'", "tags.none = 'x'", "tags.team > 'x'", "tags.team IS NULL", "tags.team IS NOT NULL", "tags.team = 1", "nope = 'x'", "x.y = 'z'", "metrics.a > 1", "name", "name =", "= 'x'", "((", " ", "name = 'net'; name = 'x'",
               "name IS NULL", "name = 3", "name IN ('net'", "name IN ()", "tags.team IN ('A')", "tags.mlflow.prompt.is_prompt = 'true'", "tags.`mlflow.prompt.is_prompt` = 'true'", "tags.`mlflow.prompt.is_prompt` != 'true'",
               "tags.`mlflow.prompt.is_prompt` = 'false' AND name = 'net'", "run_id = '<rs>'", "run_id IN ('<rs>', 'x')", "run_id LIKE '%'", "source_path = 's3://b/1'", "source_path LIKE 's3://%'", "source_path IN ('s3://b/1')", "version_number = 1", "version_number > 1",
               "version_number >= 2 AND version_number <= 3", "version_number != 1", "version_number = '2'", "version_number = 1.5", "version_number = 'x'", "version_number LIKE '1'", "version_number IN (1)", "creation_timestamp > 0",
               "last_updated_timestamp > 0", "current_stage = 'None'", "tags.i = '2'", "name='net' and version_number<3")
    for text in filters:
        yield odd(get("by " + text, MODELS + "/search", filter=text, order_by="name"))
        yield odd(get("by " + text, VERSIONS + "/search", filter=text, order_by=["name", "version_number"]))
    for order in (["name"], ["name DESC"], ["name asc"], ["timestamp"], ["last_updated_timestamp DESC"], ["last_updated_timestamp", "name DESC"], ["creation_timestamp"], ["version_number"], ["version_number DESC", "name"], ["nope"], ["name", "name"], ["name UP"],
                  ["tags.team"], ["attribute.name"], ["name ASC, version_number"], [""], ["`name`"], ["creation_timestamp DESC", "version_number"]):
        yield odd(get(f"ordered {order}", MODELS + "/search", order_by=order, max_results=50))
        yield odd(get(f"ordered {order}", VERSIONS + "/search", order_by=order, filter="name = 'Beta_1'"))
    for limit in (0, -1, 1, 1000, 1001, 200000, 200001, "x", "2", "1.5", ""):
        yield odd(get(f"limit {limit!r}", MODELS + "/search", max_results=limit, order_by="name"))
        yield odd(get(f"limit {limit!r}", VERSIONS + "/search", max_results=limit, filter="name = 'Beta_1'", order_by="version_number"))
    yield get("a first page", MODELS + "/search", max_results=2, order_by="name", **{})
    yield get("bad token", MODELS + "/search", page_token="zz")
    yield get("bad token", VERSIONS + "/search", page_token="zz")
    yield get("all", MODELS + "/search", order_by="name")


def registry_ends():
    """A deletion includes the dependent objects, and version numbers are not reused."""
    for what, body in (("", {"name": "Beta_1", "version": "4"}), ("again", {"name": "Beta_1", "version": "4"}), ("unknown", {"name": "Beta_1", "version": "99"}), ("no number", {"name": "Beta_1", "version": "x"}), ("nothing", {}),
                       ("no model", {"name": "none", "version": "1"})):
        yield sent("DELETE", what, VERSIONS + "/delete", body)
    yield post("after a deletion", VERSIONS + "/create", {"name": "Beta_1", "source": "s3://b/x"})
    yield post("alias of a deleted one", MODELS + "/alias", {"name": "Beta_1", "alias": "a", "version": "4"})
    yield post("alias", MODELS + "/alias", {"name": "Beta_1", "alias": "a", "version": "5"})
    yield sent("DELETE", "with an alias", VERSIONS + "/delete", {"name": "Beta_1", "version": "5"})
    yield get("its alias", MODELS + "/alias", name="Beta_1", alias="a")
    yield get("latest", MODELS + "/alias", name="Beta_1", alias="latest")
    yield get("left", VERSIONS + "/search", filter="name = 'Beta_1'", order_by="version_number")
    yield post("with versions", MODELS + "/rename", {"name": "Beta_1", "new_name": "gamma"})
    yield get("with versions", VERSIONS + "/search", filter="name = 'gamma'", order_by="version_number")
    yield sent("DELETE", "with versions", MODELS + "/delete", {"name": "gamma"})
    yield get("with its model", VERSIONS + "/get", name="gamma", version="1")
    yield post("anew", MODELS + "/create", {"name": "gamma"})
    yield post("anew", VERSIONS + "/create", {"name": "gamma", "source": "s3://b/x"})
    for path in ("/get", "/search", "/create", "/rename", "/update", "/delete", "/alias", "/set-tag"):
        for method in ("PUT", "POST", "GET", "PATCH"):
            yield odd((f"{method} {MODELS + path} wrong method", method, API + MODELS + path, "{}" if method != "GET" else None, {}))


def registry():
    yield from model_names()
    yield from versions()
    yield from aliases_and_stages()
    yield from registry_searches()
    yield from registry_ends()


def uploads():
    """upload-artifact, which MLflow's page uses, and get-artifact."""
    def send(what, args, body="words", type="text/plain"):
        return (f"POST /upload-artifact {what}", "POST", AJAX + "/upload-artifact?" + urllib.parse.urlencode(args, safe="<>"), body, {"type": type})
    yield post("", "/runs/create", {"experiment_id": "<exp1>", "start_time": 1, "run_name": "r7"}, r7=RUN)
    yield send("", {"run_uuid": "<r7>", "path": "u/a.txt"})
    yield send("again", {"run_uuid": "<r7>", "path": "u/a.txt"}, "other")
    yield send("JSON", {"run_uuid": "<r7>", "path": "u/b.json"}, "{}", "application/json")
    yield send("no type", {"run_uuid": "<r7>", "path": "u/c"}, "c", None)
    yield send("no run", {"path": "a.txt"})
    yield send("empty run", {"run_uuid": "", "path": "a.txt"})
    yield send("run_id", {"run_id": "<r7>", "path": "a.txt"})
    yield send("no path", {"run_uuid": "<r7>"})
    yield send("empty path", {"run_uuid": "<r7>", "path": ""})
    yield send("no data", {"run_uuid": "<r7>", "path": "a.txt"}, "")
    yield send("unknown run", {"run_uuid": "0" * 32, "path": "a.txt"})
    yield send("bad run", {"run_uuid": "../x", "path": "a.txt"})
    for path in ("../x", "/etc/passwd", "a/../../b", "a//b", "./a", "a/", "..\\x", "c:\\x", "a#b", "%2e%2e/x", "50%.png", "a b", "\u00fc", "x" * 256, "/".join("d" * 9)):
        yield send(f"path {path!r:.40}", {"run_uuid": "<r7>", "path": path})
    yield get("what came", "/artifacts/list", run_id="<r7>")
    yield get("what came", "/artifacts/list", run_id="<r7>", path="u")
    for args in ({"run_uuid": "<r7>", "path": "u/a.txt"}, {"run_id": "<r7>", "path": "u/b.json"}, {"run_id": "<r7>", "path": "none"}, {"run_id": "<r7>", "path": "u"}, {"run_id": "<r7>"}, {"path": "u"}, {"run_id": "0" * 32, "path": "x"},
                 {"run_id": "<r7>", "path": "../x"}, {"run_id": "<r7>", "path": ""}):
        yield (f"GET /get-artifact {args}", "GET", "/get-artifact?" + urllib.parse.urlencode(args, safe="<>"), None, {})
    yield post("", "/runs/delete", {"run_id": "<r7>"})
    yield send("into a deleted run", {"run_uuid": "<r7>", "path": "late.txt"})


ODD = (None, "", 3, -1, 1.5, True, "x", "3", [], ["x"], [None], {}, {"a": 1}, "x" * 300, "\u0000", "\ud83d\ude00", 2**63)


def odd_fields():
    """Every field of every call with a JSON body, once with each unsuitable value (and some suitable ones)."""
    yield post("for odd fields", "/experiments/create", {"name": "odd"}, exp4=("experiment_id",))
    yield post("to spoil", "/experiments/create", {"name": "spoiled"}, exp5=("experiment_id",))
    for token in ("r8", "r9"):
        yield post(token, "/runs/create", {"experiment_id": "<exp4>", "start_time": 1, "run_name": token}, **{token: RUN})
    yield post("to be odd", "/logged-models", {"experiment_id": "<exp4>", "name": "odd"}, mod3=("model", "info", "model_id"))
    kv = {"key": "k", "value": "v"}
    yield post("to be odd elsewhere", "/logged-models", {"experiment_id": "<exp9>", "name": "odd"}, mod7=("model", "info", "model_id"))
    for word in ("NaN", "Infinity", "-Infinity"):
        yield (f"POST /runs/log-metric {word}, bare", "POST", API + "/runs/log-metric", '{"run_id":"<r9>","key":"bare","value":%s,"timestamp":1}' % word, {})
    yield get("bare words", "/metrics/get-history", run_id="<r9>", metric_key="bare")
    bodies = {
        "/experiments/create": {"tags": [kv]},
        "/experiments/search": {"max_results": 3, "filter": "name = 'odd'", "order_by": ["name"], "view_type": "ALL", "page_token": None},
        "/experiments/update": {"experiment_id": "<exp5>", "new_name": "spoiled again"},
        "/experiments/set-experiment-tag": dict(kv, experiment_id="<exp5>"), "/experiments/delete-experiment-tag": {"experiment_id": "<exp5>", "key": "k"},
        "/experiments/delete": {"experiment_id": "99998"}, "/experiments/restore": {"experiment_id": "99998"},
        "/runs/create": {"experiment_id": "<exp5>", "user_id": "u", "run_name": "n", "start_time": 5, "tags": [kv]},
        "/runs/update": {"run_id": "<r8>", "status": "FINISHED", "end_time": 7, "run_name": "n"}, "/runs/set-tag": dict(kv, run_id="<r8>"), "/runs/delete-tag": {"run_id": "<r8>", "key": "k"},
        "/runs/log-metric": {"run_id": "<r8>", "key": "m", "value": 1.0, "timestamp": 5, "step": 1, "model_id": "<mod7>", "dataset_name": "d", "dataset_digest": "g"},
        "/runs/log-parameter": dict(kv, run_id="<r9>"), "/runs/delete": {"run_id": "0" * 32}, "/runs/restore": {"run_id": "0" * 32},
        "/runs/log-batch": {"run_id": "<r8>", "metrics": [{"key": "b", "value": 1, "timestamp": 1, "step": 1}], "params": [{"key": "bp", "value": "1"}], "tags": [kv]},
        "/runs/search": {"experiment_ids": ["<exp2>"], "filter": "params.none = 'x'", "run_view_type": "ALL", "max_results": 5, "order_by": ["run_name"]},
        "/runs/log-inputs": {"run_id": "<r9>", "datasets": [{"tags": [kv], "dataset": {"name": "n", "digest": "g", "source_type": "t", "source": "s"}}]},
        "/runs/outputs": {"run_id": "<r9>", "models": [{"model_id": "<mod3>", "step": 1}]}, "/runs/log-model": {"run_id": "<r9>", "model_json": "{}"},
        "/logged-models": {"experiment_id": "<exp5>", "name": "m", "model_type": "t", "source_run_id": "<r9>", "params": [kv], "tags": [kv]},
        "/logged-models/search": {"experiment_ids": ["<exp4>"], "filter": "name = 'odd'", "max_results": 3, "order_by": [{"field_name": "name"}]},
    }
    for path, body in bodies.items():
        for field in body:
            for value in ODD:
                yield post(f"{field} {value!r:.20}", path, dict(body, **{field: value}))
            inside = body[field][0] if isinstance(body[field], list) and isinstance(body[field][0], dict) else {}
            for inner in inside:
                for value in ODD:
                    yield post(f"{field}[0].{inner} {value!r:.20}", path, dict(body, **{field: [dict(inside, **{inner: value})]}))
        for text in ("", "null", "[]", "3", '"x"', json.dumps(json.dumps(body)), "{", '{"a":1}x', "{}" + "\n", '{"run_id":"a","run_id":"b"}', '{"experiment_id":NaN}'):
            yield post(f"body {text:.20}", path, text)
    for path in ("/experiments/get", "/runs/get", "/metrics/get-history", "/artifacts/list", "/experiments/get-by-name"):
        yield (f"GET {path} with a body", "GET", API + path, json.dumps({"run_id": "<run3>", "experiment_id": "<exp4>", "metric_key": "m", "experiment_name": "odd"}), {})
        yield (f"POST {path} for a GET", "POST", API + path, "{}", {})
    for path in ("/runs/search", "/runs/create", "/nope", "/experiments/list"):
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            yield (f"{method} {path} wrong method", method, API + path, None, {})
    for type in (None, "text/plain", "application/json; charset=utf-8", "application/JSON", "application/x-www-form-urlencoded", "", "application/json-patch"):
        yield (f"POST /runs/search type {type!r}", "POST", API + "/runs/search", '{"experiment_ids":["<exp2>"]}', {"type": type})
        yield (f"PATCH /logged-models type {type!r}", "PATCH", API + "/logged-models/<mod3>", '{"model_id":"<mod3>","status":"LOGGED_MODEL_READY"}', {"type": type})


def all_calls(only=None):
    if only:
        yield from globals()[only]()
        return
    yield from classic()
    yield from histories()
    yield from datasets()
    yield from models()
    yield from uploads()
    yield from registry()
    for call in odd_fields():
        yield odd(call)
    yield post("elsewhere", "/experiments/create", {"name": "e", "artifact_location": "s3://b/x"})
