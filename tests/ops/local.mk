# SPDX-License-Identifier: Apache-2.0
# tests/ops: every op on every backend (ops_test), gradients by central differences (grad_test), values calculated by
# hand (values_test); tiles.sh and own_conv.sh run those of ops_test that use tiles without the processor's.
# Cases of each op are in tests/ops/cases; step has those of what a net has no layers of: updates, sums, casts and copies.
op_cases = tests/ops/cases/cases.h tests/ops/cases/cases.c tests/ops/cases/add_cases.c tests/ops/cases/attention_cases.c \
	tests/ops/cases/attention_decode_cases.c tests/ops/cases/avgpool_cases.c tests/ops/cases/bn_cases.c \
	tests/ops/cases/conv_cases.c tests/ops/cases/dropout_cases.c tests/ops/cases/embed_cases.c tests/ops/cases/gelu_cases.c tests/ops/cases/glu_cases.c tests/ops/cases/rope_cases.c tests/ops/cases/places_cases.c \
	tests/ops/cases/layernorm_cases.c tests/ops/cases/linear_cases.c tests/ops/cases/lmhead_cases.c tests/ops/cases/maxpool_cases.c \
	tests/ops/cases/relu_cases.c tests/ops/cases/scale_cases.c tests/ops/cases/xent_cases.c tests/ops/cases/step/accumulate_cases.c \
	tests/ops/cases/step/cast_cases.c tests/ops/cases/step/collectives_cases.c tests/ops/cases/step/copy_cases.c \
	tests/ops/cases/step/ema_cases.c tests/ops/cases/step/norm_cases.c tests/ops/cases/step/pack_cases.c \
	tests/ops/cases/step/partial_sums_cases.c tests/ops/cases/step/step_guard_cases.c \
	tests/ops/cases/step/update_cases.c tests/ops/cases/step/watch_cases.c
EXTRA_DIST += $(op_cases)

cmocka_tests += tests/ops/ops_test tests/ops/grad_test tests/ops/values_test
ops_test_exec = tests/ops/exec.c tests/ops/exec.h
tests_ops_ops_test_SOURCES = tests/ops/ops_test.c $(ops_test_exec) $(op_cases)
tests_ops_grad_test_SOURCES = tests/ops/grad_test.c $(ops_test_exec)
tests_ops_values_test_SOURCES = tests/ops/values_test.c $(ops_test_exec)
TESTS += tests/ops/tiles.sh tests/ops/own_conv.sh
EXTRA_DIST += tests/ops/tiles.sh tests/ops/own_conv.sh
