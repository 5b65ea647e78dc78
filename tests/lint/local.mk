# SPDX-License-Identifier: Apache-2.0
# The rules of STYLE.md that a machine can check; planted.py checks that each lint detects violations.
lint_tests = tests/lint/includes.sh tests/lint/functions.sh tests/lint/banned.sh tests/lint/tables.sh tests/lint/sql.py \
	tests/lint/exports.sh tests/lint/hardening.py tests/lint/units.sh tests/lint/circles.py tests/lint/calls.py tests/lint/folders.py tests/lint/columns.py \
	tests/lint/page.py tests/lint/documents.py tests/lint/licence.py tests/lint/language.py tests/lint/dialect.py tests/lint/tarball.py tests/lint/audited.py \
	tests/lint/planted.py
dist_check_SCRIPTS += $(lint_tests)
TESTS += $(lint_tests)
EXTRA_DIST += tests/lint/allowed.txt tests/lint/tree.py tests/lint/table.py tests/lint/c_source.py tests/lint/measure.py \
	tests/lint/names.txt tests/lint/unaudited.txt tests/lint/parameters.txt tests/lint/room_lines.txt tests/lint/dialect_words.txt \
	tests/lint/dialect_budget.txt
