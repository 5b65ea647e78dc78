"""Installs MLflow from PyPI into the build folder, once; ends the test as skipped where that cannot be done."""
import os
import subprocess
import sys

VERSION = "3.17.2"


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def client(build):
    """The Python that has it."""
    folder = os.path.join(build, "venv", "mlflow")
    python = os.path.join(folder, "bin", "python")
    check = f"import mlflow, sklearn, pandas, matplotlib, psutil; assert mlflow.__version__ == '{VERSION}'"
    if os.path.exists(python) and not subprocess.run([python, "-c", check], capture_output=True).returncode:
        return python
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
    if made.returncode:
        skip("no virtual environment: " + (made.stderr or made.stdout).strip().split("\n")[-1])
    got = subprocess.run([os.path.join(folder, "bin", "pip"), "install", "-q", "--timeout", "20", "--retries", "1", f"mlflow=={VERSION}",
                          "pandas", "scikit-learn", "psutil", "matplotlib"], capture_output=True, text=True)
    if got.returncode:
        skip(f"mlflow {VERSION} cannot be installed: " + got.stderr.strip().split("\n")[-1])
    return python
