# SPDX-License-Identifier: Apache-2.0
"""Runs, views, reports, alert rules and model versions say who made them and who changed them last: three tokens and a caller
without one, compared with what they did here and with the audit log. What was made before the first token has no author."""
import sys
sys.dont_write_bytecode = True
import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402

V1, ML = "/api/v1", "/api/2.0/mlflow"


def main():
    with lib.fresh() as server:
        tokens = {}

        def ask(who, method, path, body=None):
            status, reply = server.json(method, path, body, {"Authorization": f"Bearer {tokens[who]}"} if who else None)
            lib.check(status in (200, 201), f"{who} {method} {path}: {status} {reply}")
            return reply

        def by(reply, made, changed, what):
            lib.equal((reply.get("created_by"), reply.get("changed_by")), (made, changed), what)

        if not lib.IN_DATABASE:
            by(ask(None, "POST", V1 + "/runs", {"experiment": "e", "name": "early"}), None, None, "a run without a token")
        server.token = server.owner_token()
        tokens = {who: server.json("POST", V1 + "/tokens", {"name": who + "-laptop", "person": who, "scope": scope})[1]["token"] for who, scope in (("ann", "write"), ("bob", "write"), ("cy", "read"))}
        run = ask("ann", "POST", V1 + "/runs", {"experiment": "e", "name": "r"})
        by(run, "ann", "ann", "a run as made")
        ask("ann", "POST", f"{V1}/runs/{run['id']}/metrics", {"points": [{"key": "loss", "step": 1, "value": 1}]})
        edited = ask("bob", "PATCH", f"{V1}/runs/{run['id']}", {"notes": "better"})
        by(edited, "ann", "bob", "a run after notes")
        lib.check(edited["changed_time"] >= run["changed_time"], f"its time: {run['changed_time']} {edited['changed_time']}")
        ask("ann", "PATCH", f"{V1}/runs/{run['id']}", {"status": "finished"})  # a program ends it: no edit
        by(ask("cy", "GET", f"{V1}/runs/{run['id']}"), "ann", "bob", "as a reader sees it")
        ask("ann", "PUT", f"{V1}/runs/{run['id']}/tags/k", {"value": "v"})
        by(ask("cy", "GET", f"{V1}/runs/{run['id']}"), "ann", "ann", "after a tag")
        for kind, text in (("view", "query"), ("report", "text")):
            made = [ask(who, "POST", f"{V1}/{kind}s", {"experiment": "e", "name": f"of {who}", text: "x"}) for who in ("ann", "bob")]
            by(made[0], "ann", "ann", f"a {kind} as made")
            by(ask("bob", "PATCH", f"{V1}/{kind}s/{made[0]['id']}", {text: "y"}), "ann", "bob", f"a {kind} as edited")
            listed = {k["id"]: (k["created_by"], k["changed_by"]) for k in ask("cy", "GET", f"{V1}/{kind}s")[kind + "s"]}
            lib.equal(listed, {made[0]["id"]: ("ann", "bob"), made[1]["id"]: ("bob", "bob")}, f"the list of {kind}s")
        by(ask("bob", "POST", V1 + "/alerts/rules", {"kind": "failed", "experiment": "e"}), "bob", "bob", "a rule as made")
        ask("ann", "POST", V1 + "/alerts/rules", {"kind": "done", "experiment": "e"})
        lib.equal([r["created_by"] for r in ask("cy", "GET", V1 + "/alerts/rules")["rules"]], ["bob", "ann"], "the list of rules")
        for name, who in (("m", "ann"), ("n", "bob")):  # versions of two models have the same numbers
            ask(who, "POST", ML + "/registered-models/create", {"name": name})
            ask(who, "POST", ML + "/model-versions/create", {"name": name, "source": f"runs:/{run['id']}/m", "run_id": run["id"]})
        ask("bob", "PATCH", ML + "/model-versions/update", {"name": "m", "version": "1", "description": "d"})
        for name, made in (("m", "ann"), ("n", "bob")):
            by(ask("cy", "GET", f"{ML}/model-versions/get?name={name}&version=1")["model_version"], made, "bob", f"a version of {name}")
        entries = [e for e in server.json("GET", f"{V1}/audit?object=run&id={run['id']}&order=asc")[1]["entries"]]
        found = ask("cy", "GET", f"{V1}/runs/{run['id']}")
        lib.equal((found["created_by"], found["changed_by"], found["changed_time"]), (entries[0]["author"], entries[-1]["author"], entries[-1]["time"]), "the audit log")
    lib.finish("authors")


if __name__ == "__main__":
    main()
