# SPDX-License-Identifier: Apache-2.0
# Persistent tensors that are distributed over ranks.
cmocka_tests += tests/state/tensors_test
