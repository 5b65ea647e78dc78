# SPDX-License-Identifier: Apache-2.0
"""Sends the same calls to a real MLflow server (3.17.2 from PyPI, on SQLite) and to ours; status and JSON must agree
after ids, times and random names are replaced. A long command, not part of a test run:

    srcdir=. builddir=build python3 tests/mlflow/differential.py [--show] [registry]

Intended differences are listed in KNOWN. --show prints every pair of replies; "registry" restricts the calls to the
registry. Exit 1: there are other differences."""
import sys
sys.dont_write_bytecode = True
import contextlib
import http.client
import json
import os
import re
import subprocess
import tempfile
import time
HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "api"), TESTS]
import lib  # noqa: E402
import calls  # noqa: E402
import install  # noqa: E402
from ports import free_port  # noqa: E402

# (method, path, part of the message or status) of calls that are answered differently on purpose
KNOWN = {
    "POST /experiments/create again": "no SQL in the message",
    "POST /runs/create nothing": "no SQL in the message",
    "POST /runs/log-metric value [1]": "400, not 500",
    "POST /runs/log-metric timestamp 7.5": "refused, not truncated",
    "POST /runs/log-metric timestamp -1": "1 is printed as 1",
    "POST /runs/log-batch key 5": "names the type",
    "POST /runs/search attribute.nope = 'x'": "sets are printed in another order",
    "POST /runs/search by ['attribute.nope']": "sets are printed in another order",
    "POST /runs/search datasets.nope = 'x'": "sets are printed in another order",
    "POST /runs/search metrics.loss == 3": "sets are printed in another order",
    "POST /experiments/search nope = 'x'": "sets are printed in another order",
    "POST /runs/search metrics.loss LIKE 'x'": "reports the comparison before the value",
    "POST /runs/search params.lr": "reports the end",
    "POST /experiments/search tags.k IS NULL": "the experiment that we refused is listed by MLflow",
    "POST /logged-models/search bad": "400, not 500",
    "POST /runs/update bad": "refused, not ignored",
    "POST /experiments/update of a deleted one": "INVALID_STATE is 400, not 500",
    "POST /runs/search twice the same field": "400, not 500",
    "POST /runs/search a list as a body": "400, not 500",
    "GET /metrics/get-history a page": "page tokens are our own",
    "POST /runs/search a page": "page tokens are our own",
    "PUT /artifacts/<exp1>/<run1>/artifacts/d/a.txt": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/d/a.txt again": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/empty nothing": "{}, not nothing",
    "PUT /artifacts/<exp1>/<run1>/artifacts/a+b%20c%25.txt plus": "{}, not nothing",
    "GET /artifacts/<exp1>/<run1>/artifacts/d a folder": "the format of all errors",
    "DELETE /artifacts//etc/passwd": "refused, not redirected",
    "PUT /artifacts/..%5Cx": "backslashes are refused on every system",
    "GET /artifacts/..%5Cx": "backslashes are refused on every system",
    "DELETE /artifacts/..%5Cx": "backslashes are refused on every system",
    "GET /artifacts?path=..%5Cx": "backslashes are refused on every system",
    "POST /experiments/search without max_results": "1000 is assumed",
    "GET /metrics/get-history-bulk -1": "all points, not all except the last",
    "GET /metrics/get-history-bulk-interval 0 to 9223372036854775808": "400, not 500",
    "GET /metrics/get-history-bulk under /api": "JSON says that the address does not exist",
    "GET /metrics/get-history bad token": "page tokens are our own",
    "GET /metrics/get-history empty max": "refused, not ignored",
    "GET /metrics/get-history x": "refused, not ignored",
    "POST /experiments/search-datasets text": "names the wrong type",
    "POST /experiments/search-datasets numbers": "names the wrong type",
    "POST /runs/search datasets.name > 'a'": "sets are printed in another order",
    "POST /runs/outputs no id": "refused, not ignored",
    "POST /runs/log-model": "the model as it was sent, not a digest of it",
    "GET /runs/get with models": "the model as it was sent, not a digest of it",
    "POST /logged-models quoted name": "quoted like every name",
    "POST /logged-models/search data [{'dataset_name': 'full'}]": "a name alone matches every digest, not none",
    "GET /get-artifact {'run_id': '<r7>'}": "JSON, like every refusal",
    "GET /get-artifact {'path': 'u'}": "says what is missing",
    "GET /get-artifact {'run_id': '<r7>', 'path': ''}": "says what is missing",
    "POST /upload-artifact path 'a//b'": "a path has one form",
    "POST /upload-artifact path '..\\\\x'": "backslashes are refused on every system",
    "GET /artifacts/list what came": "without the two refused files",
    "PUT /artifacts/<exps>/<rs>/artifacts/model/MLmodel": "{}, not nothing",
    "PUT /artifacts/<exps>/<rs>/artifacts/model/sub/file": "{}, not nothing",
    "GET /registered-models/search bad token": "page tokens are our own",
    "GET /model-versions/search bad token": "page tokens are our own",
    "DELETE /logged-models/<mod2> again": "404, as for every deleted model",
}


# our server has no such variable
ALLOWING = " Set the MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES environment variable on the server to allow it."


class Side:
    def __init__(self, port):
        self.port, self.names = port, {}

    def call(self, method, path, body, type):
        for value, token in self.known():
            path = path.replace("<" + token + ">", value)
            body = body.replace("<" + token + ">", value) if body is not None else None
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body, {"Content-Type": type} if body is not None and type is not None else {})
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
        """Text with ids, times and generated names replaced."""
        text = json.dumps(reply, sort_keys=True).replace(ALLOWING, "")
        for value, token in self.known():
            text = re.sub(r"(?<![0-9a-f])" + re.escape(value) + r"(?![0-9a-f])", "<" + token + ">", text) if len(value) > 8 else text
        text = re.sub(r"\b1[7-9]\d{11}\b", "1700000000000", text)
        text = re.sub(r'"[a-z]+-[a-z]+-\d{1,3}"', '"<drawn>"', text)
        text = re.sub(r"(?<![0-9a-f])(?!0{32})[0-9a-f]{32}(?![0-9a-f])", "<id>", text).replace(": NaN", ': "NaN"')
        text = re.sub(r'("next_page_token": )"[^"]+"', r'\1"<token>"', text)
        return json.loads(text)


def unordered(value, inside=""):
    """Sorts lists whose order has no meaning; infinity becomes a number."""
    if isinstance(value, dict):
        return {k: unordered(v, k if inside != "data" else "data " + k) for k, v in value.items() if k != "run_uuid"}
    if isinstance(value, list):
        items = [unordered(v) for v in value]
        free = inside in ("data metrics", "data params", "data tags", "tags", "params", "dataset_summaries", "latest_versions", "aliases")
        return sorted(items, key=lambda v: json.dumps(v, sort_keys=True)) if free else items
    return {1.7976931348623157e308: "Infinity", -1.7976931348623157e308: "-Infinity"}.get(value, value) if isinstance(value, float) else value


def broken(reply):
    return reply[0] == 500 or (reply[0] == 400 and isinstance(reply[1], dict) and "(sqlite3." in reply[1].get("message", ""))


# beginnings of odd calls that we answer and MLflow does not, or differently
SUPERSET = ("POST /experiments/search body", "POST /experiments/search max_results None", "POST /runs/search type 'application/JSON'",
            "POST /runs/search body []", "POST /logged-models/search by tags.t IS NULL", "POST /logged-models/search by params.\"p\"",
            "POST /logged-models/search limit -1", "POST /logged-models/search max_results -1", "POST /logged-models long name",
            "POST /logged-models/search by experiment_id", "DELETE /logged-models/<mod9>/tags/a%2Fb", "POST /logged-models/search by  ", "GET /metrics/get-history bare words",
            "POST /logged-models/search ordered [{'field_name': 'model_type'}]",
            "GET /registered-models/search by  ", "GET /model-versions/search by  ",
            "GET /registered-models/search ordered ['attribute.name']", "GET /registered-models/search ordered ['`name`']",
            "POST /logged-models/search by status = 'LOGGED")


def refused_as_well(theirs, ours):
    """Whether a call with an unsuitable value is refused by both: we name the first wrong field where MLflow names
    another one, ignores the field and those next to it, shows SQL or fails."""
    if ours[0] == 404 or ours[0] == 405:
        return theirs[0] == ours[0]
    if ours[0] != 400 or ours[1]["error_code"] not in ("INVALID_PARAMETER_VALUE", "BAD_REQUEST"):
        return False
    return theirs[0] in (400, 404, 500) or re.match(r"Invalid value|Missing value|Expected a quoted|Parameter value is ", ours[1]["message"])


@contextlib.contextmanager
def reference(python, folder):
    port = free_port()
    process = subprocess.Popen([python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--backend-store-uri",
                                f"sqlite:///{folder}/reference.db", "--artifacts-destination", folder + "/reference"], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.time() + 600
        while time.time() < end and process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                c.request("GET", "/health")
                if c.getresponse().status == 200:
                    break
            time.sleep(0.5)
        else:
            install.skip("the reference server did not start")
        yield port
    finally:
        os.killpg(process.pid, 9)
        process.wait(30)


def dig(reply, where):
    for key in where:
        reply = reply[key]
    return reply


def main():
    show, only = "--show" in sys.argv[1:], "registry" if "registry" in sys.argv[1:] else None
    python = os.environ.get("MLFLOW_PYTHON") or install.client(lib.BUILD)
    asked = meant = 0
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder, reference(python, folder) as port, lib.fresh() as server:
        sides = [Side(port), Side(server.port)]
        for name, method, path, body, keep in calls.all_calls(only):
            type = keep.pop("type", "application/json")
            replies = [s.call(method, path, body, type) for s in sides]
            for token, where in keep.items():
                for s, r in zip(sides, replies):
                    s.names[token] = str(dig(r[1], where))
            theirs, ours = ((r[0], unordered(s.plain(r[1]))) for s, r in zip(sides, replies))
            if broken(theirs) and ours[0] in (200, 400):  # MLflow answers with the text of its database or with a traceback
                meant += 1
                continue
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
            if name.startswith("odd: ") and (refused_as_well(theirs, ours) or name[5:].startswith(SUPERSET)):
                meant += theirs != ours
                continue
            lib.check(theirs == ours, f"{name}\n    MLflow  {theirs}\n    dptrack {ours}")
    print(f"{asked} calls, {len(lib.failures)} differ, {meant} of them as intended")
    lib.finish("differential")


main()
