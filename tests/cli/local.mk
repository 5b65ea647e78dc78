# The commands of dptrack.
cli_tests = tests/cli/commands.py tests/cli/upkeep.py tests/cli/bring.py tests/cli/roundtrip.py
EXTRA_DIST += $(cli_tests)
TESTS += $(cli_tests)
