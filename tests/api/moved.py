# SPDX-License-Identifier: Apache-2.0
"""Runs move between experiments, and experiments are archived; a refused change gives the reason and changes
nothing."""
import sys
sys.dont_write_bytecode = True
import tempfile
import lib

NAME_CHARS = 500


def ask(server, method, path, body=None, want=200):
    code, reply = server.json(method, "/api/v1" + path, body)
    lib.equal(code, want, f"{method} {path}: {reply}")
    return reply


def refused(server, path, body, status, word):
    code, reply = server.json("PATCH", "/api/v1" + path, body)
    lib.equal(code, status, f"{path} {body}: {reply}")
    lib.check(word in reply.get("error", {}).get("message", ""), f"{path}: {reply}, expected {word!r}")


def made(server, experiment, status="finished"):
    run = lib.make_run(server, experiment)
    if status != "running":
        ask(server, "PATCH", "/runs/" + run, {"status": status})
    return run


def listed(server):
    return {e["name"]: e for e in ask(server, "GET", "/experiments")["experiments"]}


def counts(server):
    return {name: (e["run_count"], e["running_count"], e["failed_count"]) for name, e in listed(server).items() if e["run_count"]}


def moves(server):
    run, other = made(server, "from"), made(server, "from", "failed")
    lib.equal(counts(server), {"from": (2, 0, 1)}, "before")
    lib.equal(ask(server, "PATCH", "/runs/" + run, {"experiment": "to/é", "name": "moved"})["experiment"], "to/é", "the answer")
    lib.equal(counts(server), {"from": (1, 0, 1), "to/é": (1, 0, 0)}, "into a new experiment")
    ask(server, "PATCH", "/runs/" + other, {"experiment": "to/é"})
    lib.equal([r["id"] for r in ask(server, "GET", "/runs?experiment=from")["runs"]], [], "no run is left")
    lib.equal(counts(server), {"to/é": (2, 0, 1)}, "into an existing experiment")
    ask(server, "PATCH", "/runs/" + run, {"experiment": "to/é"})
    ask(server, "DELETE", "/runs/" + other)
    ask(server, "PATCH", "/runs/" + other, {"experiment": "from"})
    ask(server, "POST", f"/runs/{other}/restore")
    lib.equal(counts(server), {"from": (1, 0, 1), "to/é": (1, 0, 0)}, "a deleted run is moved, and restored in the new experiment")


def stays(server):
    live, kept, run = made(server, "stays", "running"), made(server, "stays"), made(server, "stays")
    code = server.request("PUT", f"/api/v1/runs/{kept}/artifacts/w.bin", b"x")[0]
    lib.check(code in (200, 201), f"an artifact: {code}")
    gone = made(server, "gone")
    ask(server, "DELETE", "/experiments/" + listed(server)["gone"]["id"])
    before = counts(server)
    refused(server, "/runs/" + run, {"experiment": ""}, 400, "experiment")
    refused(server, "/runs/" + run, {"experiment": "é" * (NAME_CHARS + 1)}, 400, "experiment")
    refused(server, "/runs/" + run, {"experiment": None}, 400, "experiment")
    refused(server, "/runs/" + run, {"experiment": "gone", "name": "other"}, 409, "deleted")
    refused(server, "/runs/" + live, {"experiment": "to", "status": "finished"}, 409, "running")
    refused(server, "/runs/" + kept, {"experiment": "to"}, 409, "artifacts")
    refused(server, "/runs/" + "0" * 32, {"experiment": "to"}, 404, "no run")
    lib.equal(counts(server), before, "a refused move changes nothing")
    lib.check("to" not in listed(server), "a refused move creates no experiment")
    lib.equal(ask(server, "GET", "/runs/" + gone)["experiment"], "gone", "a deleted run")
    lib.check(ask(server, "GET", "/runs/" + run)["name"] != "other", "a refused move does not rename the run")


def model_of(server, run):
    """Logs a model of the run through MLflow's route."""
    experiment = ask(server, "GET", "/runs/" + run)["experiment_id"]
    code, made = server.json("POST", "/api/2.0/mlflow/logged-models", {"experiment_id": experiment, "name": "net", "source_run_id": run})
    lib.equal(code, 200, f"a logged model: {made}")
    return made["model"]["info"]["model_id"]


def models_in(server, experiment):
    body = {"experiment_ids": [listed(server)[experiment]["id"]]}
    code, found = server.json("POST", "/api/2.0/mlflow/logged-models/search", body)
    lib.equal(code, 200, f"models of {experiment}: {found}")
    return sorted(m["info"]["model_id"] for m in found.get("models", []))


def models_are_moved(server):
    """A run's logged models move with it; a model with files keeps the run in its experiment."""
    run, other = made(server, "of models"), made(server, "of models")
    moved, left, gone = model_of(server, run), model_of(server, other), model_of(server, run)
    lib.equal(server.json("DELETE", "/api/2.0/mlflow/logged-models/" + gone)[0], 200, "DELETE of a model")
    ask(server, "PATCH", "/runs/" + run, {"experiment": "with models"})
    lib.equal((models_in(server, "of models"), models_in(server, "with models")), ([left], [moved]), "the run's own models moved with it")
    info = server.json("GET", "/api/2.0/mlflow/logged-models/" + moved)[1]["model"]["info"]
    lib.equal(info["experiment_id"], listed(server)["with models"]["id"], "the model's experiment_id")
    place = "/api/2.0/mlflow-artifacts/artifacts/%s/models/%s/artifacts/MLmodel" % (info["experiment_id"], moved)
    lib.equal(server.request("PUT", place, b"x")[0], 200, "its file")
    refused(server, "/runs/" + run, {"experiment": "of models"}, 409, "logged model")
    lib.equal(models_in(server, "with models"), [moved], "no model moved")


def archives(server):
    made(server, "old")
    own = listed(server)["old"]
    lib.equal((own["archived"], own["description"]), (False, ""), "an experiment as created")
    path = "/experiments/" + own["id"]
    tag = {"experiment_id": own["id"], "key": "mlflow.note.content", "value": "é" * 600}
    lib.equal(server.json("POST", "/api/2.0/mlflow/experiments/set-experiment-tag", tag)[0], 200, "its description")
    ask(server, "PATCH", path, {"archived": True})
    own = listed(server)["old"]
    lib.equal((own["archived"], own["run_count"], own["description"]), (True, 1, "é" * 500), "an archived experiment, complete")
    ask(server, "PATCH", path, {"archived": False})
    lib.equal(listed(server)["old"]["archived"], False, "taken out")
    refused(server, path, {}, 400, "either")
    refused(server, path, {"name": "x", "archived": True}, 400, "either")
    refused(server, path, {"archived": "yes"}, 400, "archived")
    refused(server, "/experiments/4711", {"archived": True}, 404, "4711")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as logdir:
        server = lib.Server(logdir)
        moves(server)
        stays(server)
        models_are_moved(server)
        archives(server)
        server.stop()
    lib.finish("moved")


main()
