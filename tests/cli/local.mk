# The commands of dptrack.
cli_tests = tests/cli/commands.py tests/cli/stores.py tests/cli/upkeep.py tests/cli/bring.py tests/cli/roundtrip.py \
	tests/cli/bring/from_lines.py tests/cli/bring/from_mlflow.py tests/cli/bring/from_wandb.py
EXTRA_DIST += $(cli_tests) tests/cli/calls.py
TESTS += $(cli_tests)
# Made by other trackers, with the scripts that make them again.
EXTRA_DIST += tests/cli/bring/make_mlflow.py tests/cli/bring/mlflow.json tests/cli/bring/mlflow.sql tests/cli/bring/files \
	tests/cli/bring/mlruns tests/cli/bring/make_wandb.py tests/cli/bring/wandb.json tests/cli/bring/wandb
cmocka_tests += tests/cli/bring/wandb_test
tests_cli_bring_wandb_test_LDADD = libwebcli.la $(CMOCKA_LIBS) $(JANSSON_LIBS)
