"""The official MLflow client (3.17.2 from PyPI, in build/venv/mlflow) goes through its classic flow (flow.py) against a
running server. Skips where it cannot be installed."""
import sys
sys.dont_write_bytecode = True
import os
import subprocess
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "api"))
import lib  # noqa: E402
import install  # noqa: E402


def main():
    python = install.client(lib.BUILD)
    with lib.fresh() as server:
        environment = dict(os.environ, HOME=os.path.join(lib.BUILD, "venv"), GIT_PYTHON_REFRESH="quiet", PYTHONWARNINGS="ignore")
        for name in [n for n in environment if n.startswith("MLFLOW_")]:
            del environment[name]
        try:
            done = subprocess.run([python, os.path.join(HERE, "flow.py"), server.url], env=environment, capture_output=True, text=True,
                                  timeout=600)
        except subprocess.TimeoutExpired as e:
            lib.check(False, f"the flow takes longer than 10 minutes: {(e.stdout or b'')[-2000:]}")
            lib.finish("client")
        print(done.stdout)
        lib.check(not done.returncode, "the flow: " + done.stderr[-3000:])
        run = server.json("GET", "/api/v1/runs?filter=tags.stage='test'")[1]["runs"][0]
        lib.equal((run["experiment"], run["name"], run["status"], run["metrics"]["loss"]["count"]), ("flow", "outer", "finished", 10),
                  "what the client logged, seen by REST v1")
    lib.finish("client")


main()
