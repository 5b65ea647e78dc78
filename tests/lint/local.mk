lint_tests = tests/lint/includes.sh tests/lint/functions.sh tests/lint/banned.sh tests/lint/tables.sh tests/lint/sql.sh tests/lint/exports.sh
dist_check_SCRIPTS += $(lint_tests)
TESTS += $(lint_tests)
