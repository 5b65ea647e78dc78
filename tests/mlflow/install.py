"""Installs MLflow from PyPI into the build folder, once; ends the test as skipped where that cannot be done."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
import packages  # noqa: E402

VERSION = "3.17.2"


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def client(build):
    """The Python that has it."""
    try:
        return packages.python(build, "mlflow", [f"mlflow=={VERSION}", "pandas", "scikit-learn", "psutil", "matplotlib"])
    except packages.Unavailable as e:
        skip(str(e))
