# How many threads load, once steps were measured; what stands still in pipelines, and what they hold.
cmocka_tests += tests/program/pipeline_test tests/program/workers_test
