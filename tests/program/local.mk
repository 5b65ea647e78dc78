# How many threads load, once steps were measured.
cmocka_tests += tests/program/settle_test
