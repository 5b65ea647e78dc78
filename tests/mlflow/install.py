# SPDX-License-Identifier: Apache-2.0
"""Installs MLflow from PyPI into the build folder, once; skips the test where that is impossible."""
import os
import subprocess
import sys
BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench")
sys.path[:0] = [BENCH, os.path.join(BENCH, "parts")]
import packages  # noqa: E402
from mlflow_server import MLFLOW  # noqa: E402


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def client(build):
    """The Python interpreter with MLflow."""
    try:
        return packages.python(build, "mlflow", [MLFLOW, "pandas", "scikit-learn", "psutil", "matplotlib"])
    except packages.Unavailable as e:
        skip(str(e))


def environment(build):
    """The client's environment, without variables set for another server, and without its telemetry, whose thread can fail a request
    (KeyError: _MLFLOW_TELEMETRY_SESSION_ID)."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    return dict(found, HOME=os.path.join(build, "venv"), GIT_PYTHON_REFRESH="quiet", PYTHONWARNINGS="ignore", MLFLOW_DISABLE_TELEMETRY="true")


def flow(python, variables, url):
    """Runs flow.py against a server: its output, and the error ("" if none)."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flow.py")
    try:
        done = subprocess.run([python, script, url], env=variables, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired as e:
        return "", f"the flow takes longer than 10 minutes: {(e.stdout or b'')[-2000:]}"
    return done.stdout, done.stderr[-3000:] if done.returncode else ""
