# SPDX-License-Identifier: Apache-2.0
"""Tokens that are restricted to experiments, on every route of routes.def: 9 tokens (scope x level) ask each address for their own
object, for a foreign one and for one that never was. Foreign and missing get the same answer, own ones what the level says, and
nothing of a foreign experiment is in any reply. In a database two processes answer in turn. Then lists, counts and names against an admin's, creation, streams, sessions."""
import sys
sys.dont_write_bytecode = True
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.parse
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402

SCOPES, LEVELS = ("read", "write", "admin"), ("none", "read", "write", "admin")
RANK = {s: i for i, s in enumerate(LEVELS)}
SECRET = "zebra"  # in every name and text of the foreign experiment
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360000002000154a24f5d0000000049454e44ae426082")


class Thing:
    """The ids and names of one experiment's objects."""

    def __init__(self, name, **ids):
        self.name, self.registered = name, name + "-model"
        self.__dict__.update(ids)

    def words(self):
        """The texts that name it, the longest first, with a placeholder each."""
        return sorted(((str(v), k.upper()) for k, v in self.__dict__.items()), key=lambda w: -len(w[0]))

    def blank(self, text):
        for word, placeholder in self.words():
            placeholder = "NUMBER" if word.isdigit() and len(word) < 8 else placeholder  # experiments, views and rules may have the same number
            text = re.sub(r"(?<![0-9A-Za-z])" + re.escape(word) + r"(?![0-9A-Za-z])", f"<{placeholder}>", text)
        return text


MISSING = Thing("quagga", id="6", run="f" * 32, other="e" * 32, view="77", report="78", rule="79", share="d" * 16, model="m-" + "f" * 32, version="7", digest="0" * 64,
                edition={"notes": "1", "editions": "1"})


def ok(server, method, path, body=None, headers=None):
    status, _, data = server.request(method, path, body, headers)
    lib.check(status in (200, 201, 204), f"{method} {path}: {status} {data[:200]}")
    return json.loads(data) if data[:1] in b"{[" and data else None


def register(s, t):
    ok(s, "POST", "/api/2.0/mlflow/registered-models/create", {"name": t.registered, "tags": [{"key": "k", "value": t.name}]})
    add_version(s, t)


def add_version(s, t):
    made = ok(s, "POST", "/api/2.0/mlflow/model-versions/create", {"name": t.registered, "source": f"runs:/{t.run}/m", "run_id": t.run})
    t.version = made["model_version"]["version"]
    ok(s, "POST", "/api/2.0/mlflow/registered-models/alias", {"name": t.registered, "alias": "best", "version": t.version})


def log_model(s, t):
    made = ok(s, "POST", "/api/2.0/mlflow/logged-models", {"experiment_id": t.id, "name": t.name, "source_run_id": t.run, "tags": [{"key": "k", "value": t.name}]})
    t.model = made["model"]["info"]["model_id"]


def share(s, t):
    t.share = ok(s, "POST", "/api/v1/shares", {"kind": "run", "target": [t.run]})["id"]


def edit(s, t):
    """Two editions more of the notes and the report; the earlier may be deleted."""
    t.edition = {}
    for kind, path, name in (("notes", f"/api/v1/runs/{t.run}", "notes"), ("editions", f"/api/v1/reports/{t.report}", "text")):
        for _ in range(2):
            ok(s, "PATCH", path, {name: f"x={t.name} {time.monotonic_ns()}"})
        t.edition[kind] = str(ok(s, "GET", path + ("/notes" if kind == "notes" else ""))["editions"][-2]["edition"])


def fill(s, name):
    """An experiment with one of everything; every key and text has its name."""
    t = Thing(name, version="1")
    for other in (True, False):
        run = ok(s, "POST", "/api/v1/runs", {"experiment": name, "name": name + "-run", "params": {name + "/lr": name, "lr": "1"}, "tags": {"k": name, name + "-tag": "1"}})
        t.__dict__["other" if other else "run"] = run["id"]
        ok(s, "POST", f"/api/v1/runs/{run['id']}/metrics", {"points": [{"key": key, "step": i, "value": i} for i in range(20) for key in ("loss", name + "/loss")]})
        ok(s, "PATCH", f"/api/v1/runs/{run['id']}", {"status": "finished", "notes": f"notes of {name}"})
    t.id = run["experiment_id"] if "experiment_id" in run else next(e["id"] for e in ok(s, "GET", "/api/v1/experiments")["experiments"] if e["name"] == name)
    ok(s, "PUT", f"/api/v1/runs/{t.run}/artifacts/a.txt", name.encode(), {"Content-Type": "text/plain"})
    ok(s, "PUT", f"/api/v1/runs/{t.run}/artifacts/images/{name}+step+1+timestamp+5+x.png", PNG, {"Content-Type": "image/png"})
    t.digest = ok(s, "GET", f"/api/v1/runs/{t.run}/media")["media"][0]["content"]
    for kind, text in (("view", "query"), ("report", "text")):
        t.__dict__[kind] = ok(s, "POST", f"/api/v1/{kind}s", {"experiment": name, "name": f"{name} {kind}", text: f"x={name}", "default": kind == "view"})["id"]
    edit(s, t)
    t.rule = ok(s, "POST", "/api/v1/alerts/rules", {"kind": "metric", "experiment": name, "metric": name + "/loss", "above": 3})["id"]
    ok(s, "POST", f"/api/v1/runs/{t.run}/metrics", {"points": [{"key": name + "/loss", "step": 30, "value": 100}]})
    dataset = {"name": name + "-data", "digest": "d", "source_type": "local", "source": name}
    ok(s, "POST", "/api/2.0/mlflow/runs/log-inputs", {"run_id": t.run, "datasets": [{"dataset": dataset, "tags": []}]})
    log_model(s, t)
    register(s, t)
    share(s, t)
    end = time.monotonic() + 30
    while not ok(s, "GET", f"/api/v1/alerts?experiment={name}")["alerts"] and time.monotonic() < end:
        time.sleep(0.1)
    return t


# --- one request per handler ----------------------------------------------------------------------------------------

V1 = {  # handler: (arguments, body)
    "experiment_create": lambda t: (None, {"name": t.name}), "experiment_patch": lambda t: (None, {"archived": False}), "key_list": lambda t: ({"experiment": t.name}, None),
    "run_list": lambda t: ({"experiment": t.name, "include": "keys"}, None), "run_create": lambda t: (None, {"experiment": t.name, "name": "new"}),
    "run_patch": lambda t: (None, {"notes": "changed"}), "run_params_post": lambda t: (None, {"params": {"more": "1"}}), "run_tag_put": lambda t: (None, {"value": "v"}),
    "run_metrics_post": lambda t: (None, {"points": [{"key": "late", "step": 1, "value": 1}]}), "artifact_put": lambda t: (None, b"bytes"),
    "artifact_list_get": lambda t: (None, None), "journal_get": lambda t: ({"writer": "a" * 32}, None), "journal_post": lambda t: ({"writer": "a" * 32, "offset": "0"}, b""),
    "series_get": lambda t: ({"run": t.run, "key": "loss", "buckets": "4"}, None), "series_query": lambda t: (None, {"runs": [t.run], "keys": ["loss"]}),
    "compare_get": lambda t: ({"run": t.run}, None), "compare_post": lambda t: (None, {"runs": [t.run]}),
    "share_create": lambda t: (None, {"kind": "run", "target": [t.run]}),
    "view_list": lambda t: ({"experiment": t.name}, None), "report_list": lambda t: ({"experiment": t.name}, None), "alert_list": lambda t: ({"experiment": t.name}, None),
    "view_create": lambda t: (None, {"experiment": t.name, "name": f"made {time.monotonic_ns()}", "query": "q"}),
    "report_create": lambda t: (None, {"experiment": t.name, "name": f"made {time.monotonic_ns()}", "text": "q"}),
    "view_patch": lambda t: (None, {"query": "r"}), "report_patch": lambda t: (None, {"text": "r"}), "alert_rule_create": lambda t: (None, {"kind": "failed", "experiment": t.name}),
    "retention_put": lambda t: (None, {"experiment": t.name, "inherit": True}), "retention_preview": lambda t: ({"experiment": t.name}, None),
    "purge_post": lambda t: (None, {"experiment": t.name, "dry_run": True}),
    "export_parts_json": lambda t: ({"run": t.run}, None), "export_series_tfevents": lambda t: ({"run": t.run}, None),
}
GRAPHQL = ("query Q($p: String!, $e: String, $n: String!) { project(name: $p, entityName: $e) { id name runCount run(name: $n) { id name historyLineCount config summaryMetrics } "
           "runs(first: 10) { edges { node { name } } } } }")
V1.update({"wandb_graphql": lambda t: (None, {"query": GRAPHQL, "variables": {"p": t.name, "e": "dptrack", "n": t.run}}),
           "wandb_stream": lambda t: (None, {"files": {"wandb-history.jsonl": {"offset": 0, "content": ["{\"_step\": 1, \"late\": 1}"]}}, "dropped": 0}),
           "wandb_artifact_get": lambda t: (None, None), "artifact_versions_get": lambda t: ({"experiment": t.name}, None)})
V1.update({f"compare_why{e}": lambda t: ([("run", t.run), ("run", t.other)], None) for e in ("", "_csv", "_md", "_svg")})
V1.update({f"export_runs_{e}": lambda t: ({"experiment": t.name}, None) for e in ("csv", "json", "jsonl")})
V1.update({f"export_series_{e}": lambda t: ({"run": t.run}, None) for e in ("csv", "json", "jsonl")})


def run_of(**more):
    return lambda t: dict(run_id=t.run, **more)


def model_of(**more):
    return lambda t: dict(name=t.registered, **more)


def version_of(**more):
    return lambda t: dict(name=t.registered, version=t.version, **more)


ML = {  # handler: members
    "ml_experiment_create": lambda t: {"name": t.name}, "ml_experiment_search": lambda t: {"filter": f"name = '{t.name}'", "max_results": 100},
    "ml_experiment_get": lambda t: {"experiment_id": t.id}, "ml_experiment_by_name": lambda t: {"experiment_name": t.name}, "ml_experiment_delete": lambda t: {"experiment_id": t.id},
    "ml_experiment_restore": lambda t: {"experiment_id": t.id}, "ml_experiment_update": lambda t: {"experiment_id": t.id, "new_name": t.name + "x"},
    "ml_experiment_tag": lambda t: {"experiment_id": t.id, "key": "k", "value": "v"}, "ml_experiment_untag": lambda t: {"experiment_id": t.id, "key": "k"},
    "ml_run_create": lambda t: {"experiment_id": t.id, "start_time": 1000}, "ml_run_update": run_of(status="FINISHED"), "ml_run_delete": run_of(), "ml_run_restore": run_of(), "ml_run_get": run_of(),
    "ml_run_search": lambda t: {"experiment_ids": [t.id]}, "ml_tag_set": run_of(key="k", value="v"), "ml_tag_delete": run_of(key="k"),
    "ml_metric_log": run_of(key="late", value=1, timestamp=1, step=1), "ml_param_log": run_of(key="more", value="1"), "ml_batch_log": run_of(tags=[{"key": "k", "value": "v"}]),
    "ml_history_get": run_of(metric_key="loss"), "ml_history_bulk": run_of(metric_key="loss"), "ml_history_interval": lambda t: {"run_ids": [t.run], "metric_key": "loss", "max_results": 10},
    "ml_inputs_log": run_of(datasets=[{"dataset": {"name": "n", "digest": "e", "source_type": "local", "source": "s"}, "tags": []}]),
    "ml_outputs_log": run_of(models=[{"model_id": "m-" + "a" * 32, "step": 1}]), "ml_model_record": lambda t: {"run_id": t.run, "model_json": json.dumps({"artifact_path": "m", "utc_time_created": "2026-01-01 00:00:00", "flavors": {}, "run_id": t.run})},
    "ml_dataset_search": lambda t: {"experiment_ids": [t.id]}, "ml_artifact_list": run_of(), "ml_artifact_upload": lambda t: {"run_uuid": t.run, "path": "b.txt"},
    "ml_model_create": lambda t: {"experiment_id": t.id, "name": "n"}, "ml_model_search": lambda t: {"experiment_ids": [t.id]}, "ml_model_get": lambda t: {}, "ml_model_finish": lambda t: {"status": "LOGGED_MODEL_READY"},
    "ml_model_delete": lambda t: {}, "ml_model_tag": lambda t: {"tags": [{"key": "k", "value": "v"}]}, "ml_model_untag": lambda t: {}, "ml_model_params": lambda t: {"params": [{"key": "p", "value": "1"}]},
    "ml_model_artifact_list": lambda t: {}, "ml_model_artifact_get": lambda t: {"artifact_file_path": "x"},
    "ml_registered_create": model_of(), "ml_registered_rename": model_of(new_name="quagga-y"), "ml_registered_update": model_of(description="d"), "ml_registered_delete": model_of(),
    "ml_registered_get": model_of(), "ml_registered_search": lambda t: {"filter": f"name = '{t.registered}'", "max_results": 100}, "ml_registered_latest": model_of(),
    "ml_registered_tag": model_of(key="k", value="v"), "ml_registered_untag": model_of(key="k"), "ml_alias_set": version_of(alias="good"), "ml_alias_delete": model_of(alias="good"), "ml_alias_get": model_of(alias="best"),
    "ml_version_create": lambda t: {"name": t.registered, "source": f"runs:/{t.run}/m", "run_id": t.run}, "ml_version_update": version_of(description="d"),
    "ml_version_stage": version_of(stage="Staging", archive_existing_versions=False), "ml_version_delete": version_of(), "ml_version_get": version_of(),
    "ml_version_search": lambda t: {"filter": f"name = '{t.registered}'", "max_results": 100}, "ml_version_uri": version_of(), "ml_version_tag": version_of(key="k", value="v"), "ml_version_untag": version_of(key="k"),
    "ml_proxy_list": lambda t: {"path": f"{t.id}/{t.run}/artifacts"}, "ml_proxy_get": lambda t: {}, "ml_proxy_put": lambda t: {}, "ml_proxy_delete": lambda t: {},
    "ml_artifact_get": lambda t: {"run_uuid": t.run, "path": "a.txt"}, "ml_version_artifact_get": version_of(path="x"),
}

# Routes of a registered model need a name that may be used, and with a version one that may be written.
CREATES = {"experiment_create", "ml_experiment_create", "ml_registered_create"}
RENAMES = {"ml_experiment_update", "ml_registered_rename"}
NAMELESS = {"alert_rule_list", "changes_get", "experiment_list", "retention_get", "share_list"}
TELLS_IDS = {"journal_post"}  # who knows the id of a run learns from the refusal that it is taken: ids are drawn by clients


def request_of(method, path, handler, t):
    """The address and body of a request that names the thing."""
    path = path.replace("{run}", t.run).replace("{experiment}", t.id).replace("{view}", t.view).replace("{report}", t.report).replace("{rule}", t.rule).replace("{share}", t.share)
    path = path.replace("{entity}", "dptrack").replace("{project}", t.name)
    path = path.replace("{model}", t.model).replace("{key}", "k").replace("{content}", t.digest)
    path = path.replace("{edition}", t.edition["notes" if "/notes/" in path else "editions"])
    if handler.startswith("ml_proxy"):
        path = path.replace("*", f"{t.id}/{t.run}/artifacts/a.txt")
    path = path.replace("/*", "/a.txt")
    if handler in ML:
        args, body = ML[handler](t), None
        if method in ("POST", "PATCH", "DELETE") and handler not in ("ml_artifact_upload", "ml_proxy_delete"):
            args, body = None, args
        elif handler in ("ml_artifact_upload", "ml_proxy_put"):
            body = b"bytes"
    else:
        args, body = V1.get(handler, lambda t: (None, None))(t)
    return path + ("?" + urllib.parse.urlencode(args, doseq=True) if args else ""), body


def repair(s, handler, t):
    """Brings back what a permitted request removed or renamed."""
    if handler in ("run_delete", "ml_run_delete"):
        ok(s, "POST", f"/api/v1/runs/{t.run}/restore")
    elif handler in ("experiment_delete", "ml_experiment_delete"):
        ok(s, "POST", f"/api/v1/experiments/{t.id}/restore")
    elif handler in ("run_tag_delete", "ml_tag_delete"):
        ok(s, "PUT", f"/api/v1/runs/{t.run}/tags/k", {"value": t.name})
    elif handler in ("artifact_delete", "artifact_put", "ml_proxy_delete", "ml_proxy_put"):
        ok(s, "PUT", f"/api/v1/runs/{t.run}/artifacts/a.txt", t.name.encode(), {"Content-Type": "text/plain"})
    elif handler in ("view_delete", "report_delete"):
        kind, text = handler.split("_")[0], "query" if handler == "view_delete" else "text"
        t.__dict__[kind] = ok(s, "POST", f"/api/v1/{kind}s", {"experiment": t.name, "name": f"again {time.monotonic_ns()}", text: t.name})["id"]
        edit(s, t)
    elif handler in ("notes_edition_delete", "report_edition_delete"):
        edit(s, t)
    elif handler == "alert_rule_delete":
        t.rule = ok(s, "POST", "/api/v1/alerts/rules", {"kind": "failed", "experiment": t.name})["id"]
    elif handler == "alert_rule_create":
        for rule in ok(s, "GET", "/api/v1/alerts/rules")["rules"][3:]:
            ok(s, "DELETE", f"/api/v1/alerts/rules/{rule['id']}")
        t.rule = ok(s, "POST", "/api/v1/alerts/rules", {"kind": "failed", "experiment": t.name})["id"]
    elif handler == "share_delete":
        share(s, t)
    elif handler == "ml_model_delete":
        log_model(s, t)
    elif handler == "ml_model_untag":
        ok(s, "PATCH", f"/api/2.0/mlflow/logged-models/{t.model}/tags", {"tags": [{"key": "k", "value": "v"}]})
    elif handler == "ml_experiment_untag":
        ok(s, "POST", "/api/2.0/mlflow/experiments/set-experiment-tag", {"experiment_id": t.id, "key": "k", "value": "v"})
    elif handler == "ml_registered_delete":
        register(s, t)
    elif handler == "ml_version_delete":
        add_version(s, t)


class Asker:
    """Sends requests to the processes of a store in turn."""

    def __init__(self, *servers):
        self.turns, self.count = [[s, s.connection()] for s in servers], 0

    def __call__(self, token, method, target, body=None, headers=None):
        self.count += 1
        turn = self.turns[self.count % len(self.turns)]
        headers = dict(headers or {}, Authorization=f"Bearer {token}")
        if isinstance(body, bytes):
            headers["Content-Type"] = "text/plain"
        status, got, data = turn[0].request(method, target, body, headers, turn[1])
        if got.get("Connection") == "close":
            turn[1].close()
            turn[1] = turn[0].connection()
        return status, data.decode("utf-8", "replace")


def make_token(server, name, scope, grants=None, code=201):
    body = {"name": name, "scope": scope} | ({"experiments": grants} if grants else {})
    status, reply = server.json("POST", "/api/v1/tokens", body)
    lib.equal(status, code, f"token {name} {scope} {grants}: {reply}")
    lib.check(code == 201 or reply["error"]["field"] == "experiments", f"token {name} {grants}: {reply}")
    return reply.get("token") if code == 201 else reply["error"]["message"]


def names_of():
    """{handler: what} of access.def."""
    with open(f"{lib.SOURCE}/schema/api/access.def", encoding="utf-8") as f:
        return dict(re.findall(r"^(?:NAMES|SHARED)\((\w+), (\w+)(?:, \w+)?\)$", f.read(), re.M))


def expect(handler, scope, level, needs, what):
    """Whether a token of this scope and level may do it to its own thing: True, False (403), None (it does not exist)."""
    if RANK[scope] < RANK[needs] or what == "ALL":
        return False
    if what == "NOTHING":
        return True
    if handler in CREATES | RENAMES:  # the grants of this test have no +create; what may be written is there already
        return handler in ("experiment_create", "ml_experiment_create") and RANK[level] >= 2 or (False if level != "none" or handler in CREATES else None)
    if level == "none":
        return None
    return RANK[level] >= (RANK[needs] if what == "ONE" else 1)


def matrix(server, ask, own, foreign):
    names = names_of()
    tokens = {(s, l): make_token(server, f"{s}-{l}", s, f"{own.name}={l},{own.registered}*={l}") for s in SCOPES for l in LEVELS if RANK[l] <= RANK[s]}
    routes = [r for r in lib.routes() if r[2] not in ("login_post", "events_get") and names[r[2]] != "NOTHING"]
    handlers = {r[2] for r in routes}
    known = set(ML) | set(V1) | {h for m, p, h, _, _ in routes if re.search(r"\{(run|experiment|view|report|rule|share)\}", p)}
    lib.equal({h for h in handlers if h not in known and names[h] != "ALL"}, NAMELESS, "handlers without a request")
    lib.equal(set(names), {r[2] for r in lib.routes()}, "access.def has the handlers of routes.def")
    for (scope, level), token in tokens.items():
        for method, path, handler, needs, _ in routes:
            at = f"{method} {path} with {scope}, {level}"
            what = names[handler]
            target, body = request_of(method, path, handler, MISSING)
            missing = ask(token, method, target, body)
            target, body = request_of(method, path, handler, foreign)
            got = ask(token, method, target, body)
            if handler in NAMELESS:
                lib.equal(got, missing, f"{at}: twice")
            elif handler not in TELLS_IDS:
                lib.equal((got[0], foreign.blank(got[1])), (missing[0], MISSING.blank(missing[1])), f"{at}: of {SECRET}, and of what never was")
            said = target + (json.dumps(body) if isinstance(body, dict) else "")
            lib.check(SECRET not in got[1] or SECRET in said, f"{at}: tells of {SECRET}: {got[1][:300]}")
            target, body = request_of(method, path, handler, own)
            status, reply = ask(token, method, target, body)
            want = expect(handler, scope, level, needs.lower() if needs != "OPEN" else "none", what)
            lib.check(SECRET not in reply, f"{at}: own tells of {SECRET}: {reply[:300]}")
            if want is False:
                lib.equal(status, 403, f"{at}: own: {reply[:200]}")
            elif want is None and handler not in TELLS_IDS:
                lib.equal((status, own.blank(reply)), (missing[0], (own if handler in NAMELESS else MISSING).blank(missing[1])), f"{at}: own without a grant, and what never was")
            elif want:
                lib.check(status < 300 or (status in (400, 404) and handler in MAY_FAIL), f"{at}: own: {status} {reply[:300]}")
                repair(server, handler, own)
    return tokens


# Their request is permitted and well formed, but what it names is not there or not in that state.
MAY_FAIL = {"wandb_artifact_get", "ml_model_artifact_get", "ml_version_artifact_get", "journal_get", "run_trace", "ml_experiment_create", "ml_experiment_restore", "experiment_restore", "ml_model_record", "ml_run_restore", "code_get", "console_get",
            "artifact_list_get", "run_params_post", "ml_param_log", "run_restore", "ml_presigned_upload", "export_series_tfevents"}


# --- lists, counts and names against an admin's --------------------------------------------------------------------------

def lists(server, ask, own, foreign, admin):
    reader = make_token(server, "reader", "read", f"{own.name}*=read")

    def both(path):
        return json.loads(ask(reader, "GET", path)[1]), json.loads(ask(admin, "GET", path)[1])

    got, all_ = both("/api/v1/experiments")
    lib.equal(got["experiments"], [e | {"may": "read"} for e in all_["experiments"] if e["name"] == own.name], "experiments, with their counts")
    lib.check(any(e["name"] == foreign.name for e in all_["experiments"]), "an admin sees the other")
    got, all_ = both("/api/v1/runs?limit=1000&include=keys")
    want = json.loads(ask(admin, "GET", f"/api/v1/runs?limit=1000&include=keys&experiment={own.name}")[1])
    lib.equal((got["runs"], got["metric_keys"]), (want["runs"], want["metric_keys"]), "runs and their keys")
    lib.equal(json.loads(ask(reader, "GET", "/api/v1/keys")[1]), json.loads(ask(admin, "GET", f"/api/v1/keys?experiment={own.name}")[1]), "keys")
    for path in ("/api/v1/runs?deleted=all", "/api/v1/runs?group_by=params.lr", "/api/v1/export/runs.csv", "/api/v1/export/runs.jsonl", "/api/v1/views", "/api/v1/reports",
                 "/api/v1/alerts", "/api/v1/alerts/rules", "/api/v1/changes", "/api/v1/experiments?deleted=only", "/api/v1/runs?order_by=metrics.loss.max DESC",
                 "/api/2.0/mlflow/experiments/search?max_results=100", "/api/2.0/mlflow/registered-models/search", "/api/2.0/mlflow/model-versions/search",
                 "/api/2.0/mlflow-artifacts/artifacts", "/api/v1/runs?filter=params.lr='1'"):
        status, text = ask(reader, "GET", urllib.parse.quote(path, safe="/?=&"))
        lib.check(status == 200 and SECRET not in text and foreign.run not in text and foreign.other not in text, f"{path}: {status} {text[:200]}")
    for question in (f"{foreign.name}/los > 1", f"{foreign.name}/loss > 1", f"metrics.\"{foreign.name}/loss\" > 1", f"params.\"{foreign.name}/lr\" = '1'", f"tags.{foreign.name}-tag = '1'", "loss2 > 1", "lr > 0",
                     f"experiment = '{foreign.name}'"):
        twin = question.replace(foreign.name, MISSING.name)
        for more in ("", f"&run={own.run}"):
            a, b = (ask(reader, "GET", "/api/v1/runs?filter=" + urllib.parse.quote(q) + more) for q in (question, twin))
            lib.equal((a[0], a[1].replace(foreign.name, "?")), (b[0], b[1].replace(MISSING.name, "?")), f"filter {question}{more}")
    for length in (4, 8, 31):
        a = ask(reader, "GET", f"/api/v1/runs/{foreign.run[:length]}")
        b = ask(reader, "GET", "/api/v1/runs/" + "f" * length)
        lib.equal((a[0], a[1].replace(foreign.run[:length], "?")), (b[0], b[1].replace("f" * length, "?")), f"a prefix of {length} digits")
    mixed = json.loads(ask(reader, "POST", "/api/v1/series/query", {"runs": [foreign.run, own.run], "keys": ["loss"], "buckets": 4})[1])
    lib.equal({line["run"] for line in mixed["series"]}, {own.run}, "a chart of own and foreign runs")
    alone = json.loads(ask(reader, "POST", "/api/v1/series/query", {"runs": [own.run], "keys": ["loss"], "buckets": 4})[1])
    ok(server, "PUT", f"/api/v1/runs/{foreign.run}/tags/s", {"value": "0"})
    lib.equal(json.loads(ask(reader, "POST", "/api/v1/series/query", {"runs": [own.run], "keys": ["loss"], "buckets": 4})[1]), alone, "a chart after a foreign change")
    everything = make_token(server, "everything", "read", f"*=read,{foreign.name}*=none")
    lib.equal({r["experiment"] for r in json.loads(ask(everything, "GET", "/api/v1/runs?limit=1000")[1])["runs"]}, {r["experiment"] for r in all_["runs"]} - {foreign.name}, "all but one")
    whole = make_token(server, "whole", "read", "*=read")
    lib.equal((ask(whole, "GET", "/metrics")[0], ask(everything, "GET", "/metrics")[0]), (200, 403), "/metrics is for tokens of all experiments")


def creation(server, ask, own, foreign):
    maker = make_token(server, "maker", "write", f"{own.name}=read,new*=write+create,newer*=read,new-read*=write")
    answers = set()
    for name in (foreign.name, "never-was", "newest", "new-readable"):
        for path, member in (("/api/v1/experiments", "name"), ("/api/v1/runs", "experiment"), ("/api/2.0/mlflow/experiments/create", "name")):
            status, text = ask(maker, "POST", path, {member: name})
            lib.equal(status, 201 if name == "newest" and "v1" in path and member == "experiment" else status if name == "newest" else 403, f"{path} {name}: {text}")
            if name != "newest":
                answers.add(re.search(r'"message": ?"([^"]*)"', text)[1])
    upsert = "mutation U($n: String, $p: String) { upsertBucket(input: {name: $n, modelName: $p, entityName: \"dptrack\"}) { bucket { id } inserted } }"
    for project, name, want in ((foreign.name, "x", 403), ("never-was", "x", 403), ("zebra-2", "taken", 403), ("zebra-2", "free", 403), ("new-wandb", "x", 200)):
        body = {"query": upsert, "variables": {"n": name, "p": project}}
        if name == "taken":
            ok(server, "POST", "/graphql", body)  # W&B's ids follow from names
        status, text = ask(maker, "POST", "/graphql", body)
        lib.equal(status, want, f"W&B's client makes {project}/{name}: {text}")
        if want == 403:
            answers.add(re.search(r'"message": ?"([^"]*)"', text)[1])
    lib.equal(len(answers), 1, f"one text for every refused name: {answers}")
    lib.check(all("new*" in a for a in answers), f"it names what may be created: {answers}")
    lib.equal(ask(maker, "POST", "/api/v1/runs", {"experiment": own.name})[0], 403, "a run in an experiment to read")
    status, run = server.json("POST", "/api/v1/runs", {"experiment": "new1"}, {"Authorization": f"Bearer {maker}"})
    lib.equal(status, 201, f"a run below the prefix: {run}")
    ok(server, "PATCH", f"/api/v1/runs/{run['id']}", {"status": "finished"})
    for name, want in ((foreign.name, 403), ("never-was2", 403), (own.name, 403), ("new2", 200)):
        lib.equal(ask(maker, "PATCH", f"/api/v1/runs/{run['id']}", {"experiment": name})[0], want, f"a run moves to {name}")
    status, page = ask(maker, "GET", "/api/v1/experiments")
    lib.equal({e["name"] for e in json.loads(page)["experiments"]} & {own.name, "new1", "new2", "newest", foreign.name}, {own.name, "new1", "new2", "newest"}, "what it made it sees")
    ids = {e["name"]: e["id"] for e in json.loads(page)["experiments"]}
    for name, want in ((foreign.name, 403), ("never-was3", 403), ("new3", 200)):
        lib.equal(ask(maker, "PATCH", f"/api/v1/experiments/{ids['new1']}", {"name": name})[0], want, f"an experiment is renamed to {name}")
    ok(server, "PATCH", f"/api/v1/experiments/{ids['new1']}", {"name": "hidden"})
    lib.equal(ask(maker, "GET", f"/api/v1/runs?experiment=new3")[0], 404, "an experiment that was renamed")
    lib.equal(ask(maker, "PATCH", f"/api/v1/experiments/{ids['new1']}", {"name": "new4"})[0], 404, "and its id")


def everything_of(server, t):
    """What an admin reads of a thing, to compare."""
    paths = [f"/api/v1/runs/{run}{more}" for run in (t.run, t.other) for more in ("?include=series", "/artifacts", "/media", "/alerts", "/console", "/files")]
    paths += [f"/api/v1/export/series.jsonl?run={t.run}", f"/api/v1/views/{t.view}", f"/api/v1/reports/{t.report}", f"/api/v1/alerts?experiment={t.name}", f"/api/v1/runs?experiment={t.name}&deleted=all",
              f"/api/v1/views?experiment={t.name}", f"/api/v1/reports?experiment={t.name}", f"/api/2.0/mlflow/experiments/get?experiment_id={t.id}", f"/api/2.0/mlflow/logged-models/{t.model}",
              f"/api/2.0/mlflow/registered-models/get?name={t.registered}", f"/api/2.0/mlflow/model-versions/get?name={t.registered}&version={t.version}", f"/api/v1/runs/{t.run}/artifacts/a.txt"]
    found = {path: server.request("GET", path)[::2] for path in paths}
    found["rules"] = [r for r in ok(server, "GET", "/api/v1/alerts/rules")["rules"] if r["experiment"] == t.name]
    return found


class Sender(lib.Recorder):
    """A program that sends its journal to the server."""

    def __init__(self, server, folder, experiment, token):
        self.process = subprocess.Popen([lib.RECORD, f"runs_dir={folder}", f"experiment={experiment}", "run_name=sent", f"url={server.url}", f"token={token}", "close_wait_s=3"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.id = re.match(r"run ([0-9a-f]{32}) ", self.process.stdout.readline())[1]


def journals(server, own, foreign):
    """A recorded run is stored where the token may write or create; elsewhere its program is told why, and its journal stays."""
    token = make_token(server, "sender", "write", f"{own.name}=write,sent*=write+create")
    for experiment, good in ((own.name, True), ("sent-here", True), (foreign.name, False), ("nowhere", False)):
        with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
            sender = Sender(server, folder, experiment, token)
            sender.say("log 1 loss 0.5")
            said = sender.close()
            lib.equal(server.request("GET", f"/api/v1/runs/{sender.id}")[0], 200 if good else 404, f"a run recorded in {experiment}: {said}")
            lib.check(good or ("sent*" in said and SECRET not in said.replace(f"{folder}/{SECRET}", "")), f"the program is told: {said}")


def addresses(server, ask, own, foreign, tokens):
    """An address that W&B's client gets for a file carries the grants of its token."""
    made = "mutation F($p: String!, $r: String!) { createRunFiles(input: {projectName: $p, entityName: \"dptrack\", runName: $r, files: [\"up.txt\"]}) { files { name uploadUrl } } }"
    for level, thing, want in (("write", own, 200), ("read", own, 403), ("write", foreign, None)):
        status, text = ask(tokens["write", level], "POST", "/graphql", {"query": made, "variables": {"p": thing.name, "r": thing.run}})
        found = re.search(r'"uploadUrl": ?"https?://[^/]*([^"]*)"', text)
        if want is None or not found:
            lib.check(not found and (want is None or level == "read"), f"addresses for {level} {thing.name}: {status} {text}")
            continue
        c = server.connection()
        c.request("PUT", found[1], b"text")
        reply = c.getresponse()
        lib.equal(reply.status, want, f"an upload of a token that may {level}: {reply.read()}")
        c.close()


def pictures(ask, own, foreign, writer, admin):
    """A file in an own folder that names a foreign run is no picture of that run."""
    before = ask(admin, "GET", f"/api/v1/runs/{foreign.run}/media")[1]
    path = f"/api/2.0/mlflow-artifacts/artifacts/{own.id}/{foreign.run}/artifacts/images/mine+step+1+timestamp+5+x.png"
    lib.equal(ask(writer, "PUT", urllib.parse.quote(path, safe="/"), PNG)[0], 200, "a file with the id of another run")
    lib.equal(ask(admin, "GET", f"/api/v1/runs/{foreign.run}/media")[1], before, "media of the foreign run")
    for folder in ("0" + own.id, foreign.id, "", "x", MISSING.id, "models"):
        lib.equal(ask(writer, "PUT", f"/api/2.0/mlflow-artifacts/artifacts/{folder + '/' if folder else ''}x/y.txt", b"1")[0], 403, f"a file in the folder {folder!r}")


def streams(server, ask, own, foreign):
    """Events tell of own runs only, and end when the token is revoked."""
    token = make_token(server, "listener", "read", f"{own.name}=read")
    if lib.IN_DATABASE:
        time.sleep(2)  # streams end when the process hears of a new token
    c = server.connection(timeout=20)
    c.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {token}"})
    r = c.getresponse()

    def event():
        lines = []
        while not lines or lines[-1] != b"\n":
            lines.append(r.readline())
            if not lines[-1]:
                return None
        return next((json.loads(line[6:]) for line in lines if line.startswith(b"data: ")), {})

    event()
    ok(server, "PUT", f"/api/v1/runs/{foreign.run}/tags/s", {"value": "1"})
    time.sleep(0.3)
    ok(server, "PUT", f"/api/v1/runs/{own.run}/tags/s", {"value": "1"})
    seen = event()
    while seen == {}:
        seen = event()
    lib.equal(seen["runs"], [own.run], "the first change that is told")
    first, token_now = json.loads(ask(token, "GET", "/api/v1/changes")[1]), seen["token"]
    lib.equal(first["token"], token_now, "the token of what it may see")
    ok(server, "PUT", f"/api/v1/runs/{foreign.run}/tags/s", {"value": "2"})
    later = json.loads(ask(token, "GET", f"/api/v1/changes?since={token_now}")[1])
    lib.equal((later["token"], later["runs"]), (token_now, []), "a foreign change moves no token")
    began = time.monotonic()
    ok(server, "DELETE", "/api/v1/tokens/listener")
    while event() is not None:
        pass
    lib.check(time.monotonic() - began < 2, f"a stream of a revoked token ends after {time.monotonic() - began:.1f} s")
    c.close()


def tokens_of_persons(server, ask, own):
    for grants, words in (("a**=read", "one star"), ("a*b=read", "one star"), ("nowhere=read", "no experiment 'nowhere'"), ("=read", "NAME=LEVEL"), (f"{own.name}=all", "expected none"),
                          (f"{own.name}=write+create", "only a prefix"), (f"{own.name}=read,{own.name}=write", "twice"), (f"{own.name}=admin", "more than the token's scope")):
        said = make_token(server, "bad", "write", grants, 400)
        lib.check(words in said and "\n" not in said, f"{grants}: {said}")
    status, token = server.json("POST", "/api/v1/tokens", {"name": "bea-2", "person": "bea", "scope": "write", "experiments": f"{own.name}=read,future*=write+create"})
    lib.equal((status, token["person"], token["experiments"]), (201, "bea", f"{own.name}=read,future*=write+create"), "a token of a person")
    rows = {t["name"]: t for t in server.json("GET", "/api/v1/tokens")[1]["tokens"]}
    lib.check("bad" not in rows, "a refused token is not stored")
    lib.equal((rows["bea-2"]["person"], rows["bea-2"]["experiments"], rows["bea-2"]["scope"]), ("bea", f"{own.name}=read,future*=write+create", "write"), "its row")
    status, _ = ask(token["token"], "GET", "/api/v1/session")
    said = json.loads(_)
    lib.equal((status, said["person"], said["experiments"]), (200, "bea", f"{own.name}=read,future*=write+create"), "what it may do")
    headers = server.request("POST", "/login", f"token={token['token']}&query=".encode(), {"Content-Type": "application/x-www-form-urlencoded"})[1]
    cookie = {"Cookie": headers["Set-Cookie"].split(";")[0]}
    status, _, data = server.request("GET", "/api/v1/experiments", headers=dict(cookie, Authorization=""))
    keep, server.token = server.token, None
    status, _, data = server.request("GET", "/api/v1/experiments", headers=cookie)
    lib.equal((status, {e["name"] for e in json.loads(data)["experiments"]}), (200, {own.name}), "a session has the grants of its token")
    server.token = keep
    boss, second = make_token(server, "boss", "admin"), make_token(server, "part", "admin", f"{own.name}=admin")
    lib.equal(ask(second, "GET", "/api/v1/tokens")[0], 403, "an admin of one experiment does not see the tokens")
    for name in [t for t, row in rows.items() if row["scope"] == "admin" and not row["experiments"] and row["state"] == "valid"]:
        if lib.IN_DATABASE:
            return  # the owner's token is a row there
        ok(server, "DELETE", f"/api/v1/tokens/{name}")
    status, text = ask(boss, "DELETE", "/api/v1/tokens/boss")
    lib.check(status == 409 and "last admin" in text, f"the last admin: {status} {text}")
    lib.equal(ask(boss, "GET", "/api/v1/tokens")[0], 200, "it stays")


def main():
    with lib.fresh() as server:
        server.token = server.owner_token()
        make_token(server, "first", "admin")
        own, foreign = fill(server, "okapi"), fill(server, SECRET)
        deleted = ok(server, "POST", "/api/v1/experiments", {"name": SECRET + "-gone"})["id"]
        ok(server, "DELETE", f"/api/v1/experiments/{deleted}")
        second = lib.Server(server.logdir) if lib.IN_DATABASE else None
        ask = Asker(server, second) if second else Asker(server)
        admin = server.token
        lists(server, ask, own, foreign, admin)
        creation(server, ask, own, foreign)
        before = everything_of(server, foreign)
        tokens = matrix(server, ask, own, foreign)
        after = everything_of(server, foreign)
        for path, found in before.items():
            lib.equal(after[path], found, f"{path}: nothing of {SECRET} has changed")
        journals(server, own, foreign)
        addresses(server, ask, own, foreign, tokens)
        pictures(ask, own, foreign, tokens["write", "write"], admin)
        streams(server, ask, own, foreign)
        tokens_of_persons(server, ask, own)
        print(f"{ask.count} requests")
        if second:
            lib.equal(second.stop(), 0, "exit code of the second process")
        lib.check(lib.IN_DATABASE or ask.count > 4500, f"{ask.count} requests")
    lib.finish("grants")


if __name__ == "__main__":
    main()
