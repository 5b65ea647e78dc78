# tests/ops: every op on every backend (ops_test), gradients by central differences (grad_test), values worked out by
# hand (values_test).
op_cases = trainer/ops/cases.h trainer/ops/cases.c
op_cases += trainer/ops/accumulate/accumulate_cases.c
op_cases += trainer/ops/add/add_cases.c
op_cases += trainer/ops/adamw/adamw_cases.c
op_cases += trainer/ops/allreduce/allreduce_cases.c
op_cases += trainer/ops/attend/attend_cases.c
op_cases += trainer/ops/attention/attention_cases.c
op_cases += trainer/ops/avgpool/avgpool_cases.c
op_cases += trainer/ops/bn/bn_cases.c
op_cases += trainer/ops/cast/cast_cases.c
op_cases += trainer/ops/conv/conv_cases.c
op_cases += trainer/ops/dropout/dropout_cases.c
op_cases += trainer/ops/embed/embed_cases.c
op_cases += trainer/ops/gelu/gelu_cases.c
op_cases += trainer/ops/lamb/lamb_cases.c
op_cases += trainer/ops/lars/lars_cases.c
op_cases += trainer/ops/layernorm/layernorm_cases.c
op_cases += trainer/ops/ema/ema_cases.c
op_cases += trainer/ops/guard/guard_cases.c
op_cases += trainer/ops/linear/linear_cases.c
op_cases += trainer/ops/lmhead/lmhead_cases.c
op_cases += trainer/ops/maxpool/maxpool_cases.c
op_cases += trainer/ops/norm/norm_cases.c
op_cases += trainer/ops/pack/pack_cases.c
op_cases += trainer/ops/relu/relu_cases.c
op_cases += trainer/ops/sgd/sgd_cases.c
op_cases += trainer/ops/xent/xent_cases.c
EXTRA_DIST += $(op_cases)

cmocka_tests += tests/ops/ops_test tests/ops/grad_test tests/ops/values_test
ops_test_exec = tests/ops/exec.c tests/ops/exec.h
tests_ops_ops_test_SOURCES = tests/ops/ops_test.c $(ops_test_exec) $(op_cases)
tests_ops_grad_test_SOURCES = tests/ops/grad_test.c $(ops_test_exec)
tests_ops_values_test_SOURCES = tests/ops/values_test.c $(ops_test_exec)
