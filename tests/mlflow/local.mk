# SPDX-License-Identifier: Apache-2.0
# MLflow's API: every route with raw HTTP; the official client, which is downloaded from PyPI.
EXTRA_DIST += tests/mlflow/routes.py tests/mlflow/client.py tests/mlflow/flow.py tests/mlflow/install.py \
	tests/mlflow/differential.py tests/mlflow/calls.py
TESTS += tests/mlflow/routes.py
CHECK_EXTRA += tests/mlflow/client.py
