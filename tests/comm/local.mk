# Communicators, over real processes.
cmocka_tests += tests/comm/shm_test
