# How many threads load, once steps were measured.
cmocka_tests += tests/program/workers_test
