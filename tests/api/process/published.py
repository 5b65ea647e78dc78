# SPDX-License-Identifier: Apache-2.0
"""Faults that other trackers published, each as one request that must be refused, and no reply contains the secret next to the
folder. Those with tests of their own: paths.py and artifacts.py (CVE-2024-1560, CVE-2023-6831, CVE-2023-6018, CVE-2023-6015, mlflow#7166),
access.py (CVE-2025-11200, hosts and origins), owner.py (CVE-2024-6396, aim#3327), formula_cells.py (mlflow#7169), outside.py
(CVE-2023-1177 of an import), tests/web/saved_view/report_test.mjs (aim#3333)."""
import sys
sys.dont_write_bytecode = True
import json
import os
import socket
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

SECRET = "the-secret-of-the-machine"
ML = "/api/2.0/mlflow/"
SOURCES = (("CVE-2023-1177, CVE-2023-6977", ["file:///etc/", "/etc/", "//proc/self/root", "file://localhost/etc"]),
           ("CVE-2023-2356, CVE-2025-11201, CVE-2023-2780", ["mlflow-artifacts:/../../etc", "s3://b/../../etc", "dbfs:/../etc", "models:/../../etc", "..\\..\\etc"]),
           ("CVE-2024-1558, CVE-2024-2928, CVE-2024-3848", ["mlflow-artifacts:/0/x?/../../etc", "http://x/#/../../etc", "mlflow-artifacts:/#/../etc"]))
LOCATIONS = (("CVE-2024-1483, CVE-2024-1594", ["{}#x", "s3://b/#/../..{}", "http:///#/../../../..{}", "mlflow-artifacts:/#/..{}"]),
             ("CVE-2024-8859", ["dbfs:/..{}", "dbfs:/a/../../..{}", "dbfs:{}"]), ("CVE-2023-6909", ["{}", "file://{}", "file:{}", "/etc"]))
OPENED = ["http://{}/x", "https://{}/x", "ftp://{}/x", "gopher://{}/x", "dbfs://{}/x", "s3://{}/x", "hdfs://{}/x", "postgresql://{}/x", "//{}/x", "file://{}/x"]
FILTERS = ["__import__('os').system('id')", "run.x == 1 or open('/etc/passwd')", "'; DROP TABLE run; --", "1=1", "params.a = 'b' UNION SELECT 1",
           "(lambda: 0)()", "metrics.a > (SELECT 1)", "attributes.run_id LIKE 'a' ESCAPE 'b'", "tags.`a`; DELETE FROM run"]


def refused(server, report, method, target, body=None, headers=None):
    status, _, data = server.request(method, target, body, headers)
    lib.check(400 <= status < 500, f"{report}: {method} {target} {body}: {status} {data[:200]!r}")
    lib.check(SECRET.encode() not in data and b"root:" not in data, f"{report}: {target}: {data[:200]!r}")


def read_location(server, report, uri):
    """Every route that lists, reads or writes files, for an experiment, a run and a version of a model at an address of the client's."""
    status, made = server.json("POST", ML + "experiments/create", {"name": report + uri, "artifact_location": uri})
    if not lib.check(status in (200, 400), f"{report}: {uri}: {status} {made}") or status == 400:
        return
    run = server.json("POST", ML + "runs/create", {"experiment_id": made["experiment_id"]})[1]["run"]["info"]
    server.json("POST", ML + "model-versions/create", {"name": "m", "source": run["artifact_uri"], "run_id": run["run_id"]})
    last = server.json("GET", ML + "registered-models/get?name=m")[1]["registered_model"].get("latest_versions", [{"version": "1"}])[-1]["version"]
    for method, target in (("GET", f"{ML}artifacts/list?run_id={run['run_id']}"), ("GET", f"/get-artifact?run_uuid={run['run_id']}&path=secret"),
                           ("POST", f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run['run_id']}&path=planted"), ("GET", f"/api/v1/runs/{run['run_id']}/artifacts/secret"),
                           ("GET", f"/model-versions/get-artifact?name=m&version={last}&path=secret"), ("GET", f"{ML}model-versions/get-download-uri?name=m&version={last}")):
        status, _, data = server.request(method, target, b"x" if method == "POST" else None)
        lib.check(b'"files"' not in data and SECRET.encode() not in data and (status >= 400 or data.startswith(b"{")), f"{report}: {uri}: {target}: {status} {data[:200]!r}")


def locations_are_texts(server):
    folder = os.path.dirname(server.logdir)
    for report, uris in LOCATIONS:
        for uri in uris:
            read_location(server, report, uri.format(folder))
            status, _, data = server.request("POST", ML + "model-versions/create", {"name": "m", "source": uri.format(folder)})
            lib.check(status == 400 or uri.startswith("dbfs:{"), f"{report}: source {uri}: {status} {data[:200]!r}")
    lib.equal(sorted(os.listdir(folder)), ["runs", "secret"], "nothing is written next to the folder of runs")


def prompts_have_no_files(server):
    server.json("POST", ML + "registered-models/create", {"name": "p", "tags": [{"key": "mlflow.prompt.is_prompt", "value": "true"}]})
    for name in ("m", "p"):
        for source in ("/etc", "file:///etc", os.path.dirname(server.logdir), "s3://b/../../etc"):
            refused(server, "CVE-2026-2614", "POST", ML + "model-versions/create",
                    {"name": name, "source": source, "tags": [{"key": "mlflow.prompt.is_prompt", "value": "true"}]})
    refused(server, "CVE-2026-2614", "GET", "/model-versions/get-artifact?name=p&version=1&path=passwd")


def addresses_are_not_opened(server):
    """mlflow#23500: a server connected to the host that a source names."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        for uri in OPENED:
            read_location(server, "mlflow#23500", uri.format(host))
            server.request("POST", ML + "model-versions/create", {"name": "m", "source": uri.format(host)})
        listener.settimeout(0.5)
        try:
            lib.check(False, f"mlflow#23500: a connection from {listener.accept()[1]}")
        except TimeoutError:
            pass


def main():
    with lib.fresh() as server:
        run = lib.make_run(server)
        with open(os.path.join(os.path.dirname(server.logdir), "secret"), "w", encoding="utf-8") as f:
            f.write(SECRET)
        lib.equal(server.json("POST", ML + "registered-models/create", {"name": "m"})[0], 200, "a model")
        for report, sources in SOURCES:
            for source in sources:
                refused(server, report, "POST", ML + "model-versions/create", {"name": "m", "source": source})
        for report in ("CVE-2024-2195 (Aim)", "aim#3412"):
            for text in FILTERS:
                for target in ("/api/v1/runs?filter=", "/api/v1/runs?order_by=", "/api/v1/export/runs.csv?filter="):
                    refused(server, report, "GET", target + urllib.parse.quote(text))
                for member in ({"filter": text}, {"order_by": [text]}):
                    refused(server, report, "POST", ML + "runs/search", {"experiment_ids": ["1"], **member})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "text/html<script>", "multipart/form-data; boundary=x"):
            refused(server, "CVE-2023-43472, CVE-2023-6568, CVE-2024-7760", "POST", "/api/v1/experiments", json.dumps({"name": kind}).encode(),
                    {"Content-Type": kind, "Origin": "http://evil.example"})
            status, _, data = server.request("POST", ML + "experiments/create", b"{}", {"Content-Type": kind})
            lib.check(status >= 400 and b"<script>" not in data, f"CVE-2023-6568: {status} {data[:200]!r}")
        for origin in ("null", "http://evil.example", "http://localhost.evil.example"):
            refused(server, "CVE-2025-14279, CVE-2024-2196 (Aim)", "POST", "/api/v1/experiments", {"name": "x"}, {"Origin": origin})
        refused(server, "CVE-2025-14279", "GET", "/api/v1/runs", None, {"Host": "evil.example"})
        for path in ("/ajax-api/2.0/mlflow/gateway-proxy?gateway_path=http://127.0.0.1", "/graphql", "/api/2.0/mlflow/users/create", "/gateway/x/invocations"):
            for method in ("GET", "POST"):
                refused(server, "CVE-2025-52967, CVE-2026-2635", method, path, {} if method == "POST" else None)
        for member in ("name", "artifact_location"):
            refused(server, "CVE-2024-6838", "POST", ML + "experiments/create", {"name": "n", member: "x" * 900000})
        for check in (locations_are_texts, prompts_have_no_files, addresses_are_not_opened):
            check(server)
        for path in ("%2e%2e/secret", "..%2fsecret", "%252e%252e/secret", "/etc/passwd", "../../secret"):
            refused(server, "CVE-2024-7340 (Weave), tensorboard#3134, #7119", "GET", f"/api/v1/runs/{run}/artifacts/{path}")
        lib.equal(server.request("GET", "/health")[0], 200, "the server")
    lib.finish("published")


main()
