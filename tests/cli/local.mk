# SPDX-License-Identifier: Apache-2.0
# The commands of dptrack.
cli_tests = tests/cli/commands.py tests/cli/completion.py tests/cli/stores.py tests/cli/upkeep.py tests/cli/bring.py tests/cli/roundtrip.py \
	tests/cli/files_place.py tests/cli/bad_files.py tests/cli/import/from_lines.py tests/cli/import/damaged.py tests/cli/import/salvage.py tests/cli/import/doors.py \
	tests/cli/import/outside.py \
	tests/cli/agents.py tests/cli/agents_sdk.py tests/cli/import/logged_models.py tests/cli/import/from_mlflow.py tests/cli/import/from_wandb.py
EXTRA_DIST += $(cli_tests) tests/cli/calls.py
TESTS += $(cli_tests)
# Made by other trackers, with the scripts that make them again.
EXTRA_DIST += tests/cli/import/make_mlflow.py tests/cli/import/mlflow.json tests/cli/import/mlflow.sql tests/cli/import/files \
	tests/cli/import/mlruns tests/cli/import/make_wandb.py tests/cli/import/wandb.json tests/cli/import/wandb
