#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every table is complete: each item in the tree is in its list. (The reverse, a name in a list without its code, is a
# link error.) Every C source and header belongs to a make fragment, so that a release contains it.
cd "${srcdir:-.}" || exit 1
bad=0
complain() { echo "tables: $*"; bad=1; }

for dir in trainer/ops/*/; do
	op=$(basename "$dir")
	grep -q "/\* $op/" trainer/ops/ops.def || complain "$dir has no line in trainer/ops/ops.def"
	for file in "$op.h" "$op.c" "${op}_cpu.c" "${op}_cuda.cu"; do
		[ -f "$dir$file" ] || complain "$dir lacks $file"
	done
	[ -n "$(find tests/ops/cases -name "${op}_cases.c")" ] || complain "$dir has no ${op}_cases.c in tests/ops/cases"
done

# kind, folder, list, macro, prefix: every `const struct KIND PREFIX_NAME = {` of the folder is MACRO(NAME) in the list.
check_list() {
	names=$(sed -n "s/^const struct $1 ${5:-$1}_\([a-z0-9_]*\) = {.*/\1/p" "$2"/*.c "$2"/*/*.c 2>/dev/null)
	[ -n "$names" ] || complain "$2 has no const struct $1"
	for name in $names; do
		grep -q "^$4($name[,)]" "$3" || complain "${5:-$1}_$name has no line in $3"
	done
}
check_list op trainer/ops trainer/ops/ops.def OP
check_list model trainer/models trainer/models/models.def MODEL
check_list dataset_ops trainer/data/formats trainer/data/formats/formats.def FORMAT dataset
check_list advise trainer/advise trainer/advise/advise.def ADVISE
check_list strategy trainer/strategies trainer/strategies/strategies.def STRATEGY

# Optimisers (what lacks a rule or a formula does not compile): each has its cases and a recorded training.
for name in $(sed -n 's/^OPTIMIZER(\([a-z0-9_]*\),.*/\1/p' trainer/optimizers/optimizers.def); do
	grep -q "^	{ \"$name, " tests/ops/cases/step/update_cases.c ||
		complain "optimiser $name has no case in tests/ops/cases/step/update_cases.c"
	grep -q "^  \"$name\": {" tests/train/reference/optimizers.json ||
		complain "optimiser $name has no run in tests/train/reference/make_optimizers.py"
done

# Kinds of changes: each is in the list of its room.
for file in web/store/*/*.c; do
	for name in $(sed -n -e 's/^CHANGE_KIND(\([a-z0-9_]*\),.*/\1/p' -e 's/^CHANGE_AUDITED(\([a-z0-9_]*\),.*/\1/p' -e 's/^const struct change_ops \([a-z0-9_]*\) = {.*/\1/p' "$file"); do
		grep -q "^CHANGE($name)" "$(dirname "$file")/changes.def" 2>/dev/null ||
			complain "$name of $file has no line in $(dirname "$file")/changes.def"
	done
done

fragments=$(find . -name '*.mk' -not -path './build*' -not -path '*/node_modules/*' -print)
left_out=$(find tracker trainer web tests -name node_modules -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.def' \) -print |
	awk 'FILENAME != "-" { for (i = 1; i <= NF; i++) named[$i] = 1; next }
		!($0 in named) { # a test of one file has the name of its program
			program = $0
			if (!sub(/^tests\/.*\.c$/, "", program) || !(substr($0, 1, length($0) - 2) in named))
				print
		}' Makefile.am $fragments -)
for file in $left_out; do
	complain "$file is in no make fragment"
done

[ "$bad" = 0 ] || exit 1
echo "tables: ops, models, optimisers, strategies, formats and make fragments are complete"
