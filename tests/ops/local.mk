# SPDX-License-Identifier: Apache-2.0
# tests/ops: every op on every backend (ops_test), gradients by central differences (grad_test), values calculated by
# hand (values_test); tiles.sh and own_conv.sh run those of ops_test that use tiles without the processor's.
# Cases are next to their op (trainer/ops/local.mk).
EXTRA_DIST += $(op_cases)

cmocka_tests += tests/ops/ops_test tests/ops/grad_test tests/ops/values_test
ops_test_exec = tests/ops/exec.c tests/ops/exec.h
tests_ops_ops_test_SOURCES = tests/ops/ops_test.c $(ops_test_exec) $(op_cases)
tests_ops_grad_test_SOURCES = tests/ops/grad_test.c $(ops_test_exec)
tests_ops_values_test_SOURCES = tests/ops/values_test.c $(ops_test_exec)
TESTS += tests/ops/tiles.sh tests/ops/own_conv.sh
EXTRA_DIST += tests/ops/tiles.sh tests/ops/own_conv.sh
