# SPDX-License-Identifier: Apache-2.0
"""Grants through clients: MLflow's own, this package's and the tools of dptrack.mcp, with tokens that may read or administer one
experiment of two. They find what is permitted, nothing that they print has a word of the other, and what is hidden is answered as
what never was."""
import sys
sys.dont_write_bytecode = True
import os
import subprocess
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import grants  # noqa: E402
from grants import MISSING, SECRET, lib, make_token  # noqa: E402
sys.path.insert(0, os.path.join(lib.SOURCE, "tests", "mlflow"))
import install  # noqa: E402

MLFLOW = """
import mlflow, sys
from mlflow import MlflowClient
name, run, model, registered, version = sys.argv[1:]
c = MlflowClient()
def tried(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, e)
print([e.name for e in c.search_experiments(view_type=3)])
print(mlflow.search_runs(search_all_experiments=True).to_dict())
print([dict(m) for m in c.search_registered_models()], [dict(v) for v in c.search_model_versions()])
print("--")
for ask in (lambda: mlflow.get_experiment_by_name(name) and "FOUND", lambda: mlflow.get_run(run).info.run_id, lambda: mlflow.search_runs(experiment_names=[name]).to_dict(),
            lambda: c.get_metric_history(run, "loss"), lambda: c.list_artifacts(run), lambda: c.log_metric(run, "loss", 1), lambda: c.set_tag(run, "a", "b"),
            lambda: c.get_logged_model(model).name, lambda: c.get_registered_model(registered).name, lambda: c.get_model_version(registered, version).run_id,
            lambda: c.delete_run(run), lambda: c.download_artifacts(run, "a.txt")):
    tried(ask)
"""

OURS = """
import dptrack, os, sys
from dptrack import mcp
name, run, model, registered, version = sys.argv[1:]
source = mcp.Source(os.environ["DPTRACK_URL"], None, None)
print(list(dptrack.runs()), mcp.answer(source, False, "list_runs", {}), mcp.answer(source, False, "list_alerts", {}))
print("--")
def tried(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, e)
tried(lambda: list(dptrack.runs(experiment=name)))
for tool, arguments in (("list_runs", {"experiment": name}), ("best_run", {"experiment": name}), ("compare_runs", {"runs": [run, run]}), ("get_series", {"run": run, "key": "loss"}),
                        ("diagnose", {"run": run}), ("list_alerts", {"run": run}), ("add_note", {"run": run, "text": "x"}), ("set_tag", {"run": run, "key": "a"}), ("archive_run", {"run": run})):
    tried(lambda: (tool, mcp.answer(source, True, tool, arguments)))
"""


def ask(python, script, variables, thing):
    """What the client prints: of everything, and of the thing with its names blanked."""
    done = subprocess.run([python, "-c", script, thing.name, thing.run, thing.model, thing.registered, thing.version], env=variables, capture_output=True, text=True, timeout=300)
    lib.equal(done.returncode, 0, f"the client: {done.stderr[-2000:]}")
    everything, _, one = done.stdout.partition("\n--\n")
    return everything, one


def main():
    python = install.client(lib.BUILD)
    with lib.fresh() as server:
        server.token = server.owner_token()
        make_token(server, "first", "admin")
        own, foreign = grants.fill(server, "okapi"), grants.fill(server, SECRET)
        for scope in ("read", "admin"):
            token = make_token(server, "client-" + scope, scope, f"{own.name}={scope}")
            both = {"MLFLOW_TRACKING_URI": server.url, "MLFLOW_TRACKING_TOKEN": token, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "DPTRACK_URL": server.url, "DPTRACK_TOKEN": token,
                    "PYTHONPATH": os.path.join(lib.SOURCE, "tracker", "python")}
            for client, script in ((python, MLFLOW), (sys.executable, OURS)):
                at = f"{os.path.basename(os.path.dirname(os.path.dirname(client)))} with a token of scope {scope}"
                everything, hidden = ask(client, script, dict(install.environment(lib.BUILD), **both), foreign)
                _, missing = ask(client, script, dict(install.environment(lib.BUILD), **both), MISSING)
                lib.check(own.name in everything and SECRET not in everything and foreign.run not in everything, f"{at}: {everything}")
                lib.check("FOUND" not in hidden and len(hidden.splitlines()) > 9, f"{at}: {hidden}")
                lib.equal(foreign.blank(hidden), MISSING.blank(missing), f"{at}: hidden, and what never was")
    lib.finish("clients")


main()
