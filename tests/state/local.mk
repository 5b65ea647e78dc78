# Persistent tensors whose ranks hold parts of them.
cmocka_tests += tests/state/tensors_test
