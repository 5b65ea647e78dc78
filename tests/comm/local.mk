# SPDX-License-Identifier: Apache-2.0
# Communicators, over real processes.
cmocka_tests += tests/comm/shm_test tests/comm/hier_test tests/comm/requests_test
tests_comm_shm_test_SOURCES = tests/comm/shm_test.c tests/comm/collectives.c tests/comm/collectives.h
tests_comm_hier_test_SOURCES = tests/comm/hier_test.c tests/comm/collectives.c tests/comm/collectives.h
tests_comm_requests_test_SOURCES = tests/comm/requests_test.c
