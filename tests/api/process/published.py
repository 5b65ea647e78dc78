# SPDX-License-Identifier: Apache-2.0
"""Faults that other trackers published, each as one request that must be refused, and no reply contains the secret next to the
folder. Those with tests of their own: paths.py (CVE-2024-1560, CVE-2023-6831, mlflow#7166), access.py (CVE-2025-11200, hosts and
origins), owner.py (CVE-2024-6396), formula_cells.py (mlflow#7169), outside.py (CVE-2023-1177 of an import)."""
import sys
sys.dont_write_bytecode = True
import json
import os
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

SECRET = "the-secret-of-the-machine"
ML = "/api/2.0/mlflow/"
SOURCES = (("CVE-2023-1177, CVE-2023-6977", ["file:///etc/", "/etc/", "//proc/self/root", "file://localhost/etc"]),
           ("CVE-2023-2356, CVE-2025-11201, CVE-2023-2780", ["mlflow-artifacts:/../../etc", "s3://b/../../etc", "dbfs:/../etc", "models:/../../etc", "..\\..\\etc"]),
           ("CVE-2024-1558, CVE-2024-2928, CVE-2024-3848", ["mlflow-artifacts:/0/x?/../../etc", "http://x/#/../../etc", "mlflow-artifacts:/#/../etc"]))
FILTERS = ["__import__('os').system('id')", "run.x == 1 or open('/etc/passwd')", "'; DROP TABLE run; --", "1=1", "params.a = 'b' UNION SELECT 1",
           "(lambda: 0)()", "metrics.a > (SELECT 1)", "attributes.run_id LIKE 'a' ESCAPE 'b'", "tags.`a`; DELETE FROM run"]


def refused(server, report, method, target, body=None, headers=None):
    status, _, data = server.request(method, target, body, headers)
    lib.check(400 <= status < 500, f"{report}: {method} {target} {body}: {status} {data[:200]!r}")
    lib.check(SECRET.encode() not in data and b"root:" not in data, f"{report}: {target}: {data[:200]!r}")


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
        refused(server, "CVE-2024-6838", "POST", ML + "experiments/create", {"name": "x" * 900000})
        for path in ("%2e%2e/secret", "..%2fsecret", "%252e%252e/secret", "/etc/passwd", "../../secret"):
            refused(server, "CVE-2024-7340 (Weave), tensorboard#3134, #7119", "GET", f"/api/v1/runs/{run}/artifacts/{path}")
        lib.equal(server.request("GET", "/health")[0], 200, "the server")
    lib.finish("published")


main()
