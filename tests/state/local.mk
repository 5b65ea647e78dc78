# Persistent tensors that are distributed over ranks.
cmocka_tests += tests/state/tensors_test
