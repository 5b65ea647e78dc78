# SPDX-License-Identifier: Apache-2.0
"""MLflow's server for comparison: from PyPI, in a virtual environment of the build folder."""
import packages

MLFLOW = "mlflow==3.17.2"


def python(build, postgresql):
    """Returns a Python with MLflow, on SQLite or PostgreSQL. Raises packages.Unavailable."""
    return packages.python(build, "bench-mlflow", [MLFLOW] + (["psycopg2-binary"] if postgresql else []))


def database(db):
    """Returns the URL of a new database in a cluster, in MLflow's form: SQLAlchemy 2.1 would choose another driver."""
    db.sql("postgres", "CREATE DATABASE mlflow")
    return db.address("mlflow", tcp=True).replace("postgresql:", "postgresql+psycopg2:")


def command(program, port, store, files):
    """Returns its command line and additional variables: with its pool's 5 connections it refuses some of 32
    clients."""
    return [program, "-m", "mlflow", "server", "--backend-store-uri", store, "--artifacts-destination", files, "--host", "127.0.0.1",
            "--port", str(port), "--workers", "2"], {"MLFLOW_SQLALCHEMYSTORE_POOL_SIZE": "40"}
