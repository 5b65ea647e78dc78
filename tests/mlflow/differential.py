"""The same calls to a real MLflow server (3.17.2 from PyPI, on SQLite) and to ours; status and JSON must agree once ids, times
and random names are taken out. Long, not part of a test run:

    srcdir=. builddir=build python3 tests/mlflow/differential.py [--show]

Differences that are meant stand in KNOWN. --show prints every pair of replies. Exit 1: there are others."""
import sys
sys.dont_write_bytecode = True
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.parse
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
import lib  # noqa: E402
import install  # noqa: E402

API = "/api/2.0/mlflow"
# (method, path, part of the message or status) of calls that are answered differently on purpose
KNOWN = {
    "POST /experiments/create again": "no SQL in the message",
    "POST /runs/create nothing": "no SQL in the message",
    "POST /runs/log-metric value [1]": "400, not 500",
    "POST /runs/log-metric timestamp 7.5": "refused, not cut",
    "POST /runs/log-metric timestamp -1": "1 is printed as 1",
    "POST /runs/log-batch key 5": "names the type",
    "POST /runs/search attribute.nope = 'x'": "sets are printed in another order",
    "POST /runs/search by ['attribute.nope']": "sets are printed in another order",
    "POST /runs/search datasets.nope = 'x'": "sets are printed in another order",
    "POST /runs/search metrics.loss == 3": "sets are printed in another order",
    "POST /experiments/search nope = 'x'": "sets are printed in another order",
    "POST /runs/search metrics.loss LIKE 'x'": "blames the comparison before the value",
    "POST /runs/search params.lr": "blames the end",
    "POST /experiments/search tags.k IS NULL": "the experiment that was refused here is listed there",
    "POST /logged-models/search bad": "400, not 500",
    "POST /runs/update bad": "refused, not ignored",
    "POST /experiments/update of a deleted one": "INVALID_STATE is 400, not 500",
    "POST /experiments/create elsewhere": "artifacts lie below one root",
    "POST /runs/search twice the same field": "400, not 500",
    "POST /runs/search a list as a body": "400, not 500",
    "GET /metrics/get-history a page": "tokens are ours",
    "POST /runs/search a page": "tokens are ours",
    "PUT /artifacts/<exp1>/<run1>/artifacts/d/a.txt": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/d/a.txt again": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/empty nothing": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/a+b%20c%25.txt plus": "{}, not nothing",
    "GET /artifacts/<exp1>/<run1>/artifacts/d a folder": "the shape that errors have",
    "DELETE /artifacts//etc/passwd": "refused, not sent elsewhere",
    "PUT /artifacts/..%5Cx": "backslashes are refused on every system",
    "GET /artifacts/..%5Cx": "backslashes are refused on every system",
    "DELETE /artifacts/..%5Cx": "backslashes are refused on every system",
    "GET /artifacts?path=..%5Cx": "backslashes are refused on every system",
    "POST /experiments/search without max_results": "1000 is assumed",
}


class Side:
    def __init__(self, port):
        self.port, self.names = port, {}

    def call(self, method, path, body):
        for value, token in self.known():
            path = path.replace("<" + token + ">", value)
            body = body.replace("<" + token + ">", value) if body is not None else None
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
        r = c.getresponse()
        data = r.read()
        c.close()
        try:
            return r.status, json.loads(data)
        except ValueError:
            return r.status, "not JSON"

    def known(self):
        return [(v, k) for k, v in self.names.items()]

    def plain(self, reply):
        """Text with ids, times and drawn names replaced."""
        text = json.dumps(reply, sort_keys=True)
        for value, token in self.known():
            text = re.sub(r"(?<![0-9a-f])" + re.escape(value) + r"(?![0-9a-f])", "<" + token + ">", text) if len(value) > 8 else text
        text = re.sub(r"\b1[7-9]\d{11}\b", "1700000000000", text)
        text = re.sub(r'"[a-z]+-[a-z]+-\d{1,3}"', '"<drawn>"', text)
        return json.loads(text)


def unordered(value, inside=""):
    """Lists whose order says nothing are sorted; infinity is a number there."""
    if isinstance(value, dict):
        return {k: unordered(v, k if inside != "data" else "data " + k) for k, v in value.items() if k != "run_uuid"}
    if isinstance(value, list):
        items = [unordered(v) for v in value]
        free = inside in ("data metrics", "data params", "data tags", "tags", "params")
        return sorted(items, key=lambda v: json.dumps(v, sort_keys=True)) if free else items
    return {1.7976931348623157e308: "Infinity", -1.7976931348623157e308: "-Infinity"}.get(value, value) if isinstance(value, float) else value


def calls():
    """(name, method, path, body, {token: where in the reply})"""
    def post(what, path, body, **keep):
        return (f"POST {path} {what}", "POST", API + path, body if isinstance(body, str) else json.dumps(body), keep)

    def get(what, address, **args):
        return (f"GET {address} {what}", "GET", API + address + ("?" + urllib.parse.urlencode(args, doseq=True, safe="<>") if args else ""), None, {})

    def file(what, method, path, body=None):
        return (f"{method} {path} {what}", method, "/api/2.0/mlflow-artifacts" + path, body if body is None or isinstance(body, str) else json.dumps(body), {})
    run = ("run", "info", "run_id")
    yield post("", "/experiments/create", {"name": "one", "tags": [{"key": "k", "value": "v"}]}, exp1=("experiment_id",))
    yield post("again", "/experiments/create", {"name": "one"})
    yield post("nothing", "/experiments/create", {})
    yield post("a number", "/experiments/create", {"name": 3})
    yield post("long", "/experiments/create", {"name": "x" * 501})
    yield post("elsewhere", "/experiments/create", {"name": "e", "artifact_location": "s3://b/x"})
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
    yield post("", "/runs/create", {"experiment_id": "<exp1>", "user_id": "u", "start_time": 1000, "run_name": "r1", "tags": [{"key": "a", "value": "1"}]}, run1=run)
    yield post("bare", "/runs/create", {"experiment_id": "<exp1>"}, run2=run)
    yield post("text times", "/runs/create", {"experiment_id": "<exp1>", "start_time": "5"}, run3=run)
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
    yield from files(file, get, post)


def files(file, get, post):
    """Artifacts through the proxy, on a root that is a folder; parts and presigned addresses are for other stores."""
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


@contextlib.contextmanager
def reference(python, folder):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--backend-store-uri",
                                f"sqlite:///{folder}/reference.db", "--artifacts-destination", folder + "/reference"], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.time() + 180
        while time.time() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                c.request("GET", "/health")
                if c.getresponse().status == 200:
                    break
            time.sleep(0.5)
        else:
            install.skip("the reference server did not start within 3 minutes")
        yield port
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


def dig(reply, where):
    for key in where:
        reply = reply[key]
    return reply


def main():
    lib.bound(1200)
    show = "--show" in sys.argv[1:]
    python = os.environ.get("MLFLOW_PYTHON") or install.client(lib.BUILD)
    asked = meant = 0
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder, reference(python, folder) as port, lib.fresh() as server:
        sides = [Side(port), Side(server.port)]
        for name, method, path, body, keep in calls():
            replies = [s.call(method, path, body) for s in sides]
            for token, where in keep.items():
                for s, r in zip(sides, replies):
                    s.names[token] = str(dig(r[1], where))
            theirs, ours = ((r[0], unordered(s.plain(r[1]))) for s, r in zip(sides, replies))
            asked += 1
            if show:
                print(name, theirs, ours, sep="\n  ")
            if name.strip() in KNOWN:
                meant += theirs != ours
                continue
            for reply in (theirs, ours):
                if isinstance(reply[1], dict):
                    for extra in ("sqlstate", "error_class"):
                        reply[1].pop(extra, None)
            lib.check(theirs == ours, f"{name}\n    MLflow  {theirs}\n    dptrack {ours}")
    print(f"{asked} calls, {len(lib.failures)} differ, {meant} are meant to")
    lib.finish("differential")


main()
