# How a job's end is judged.
cmocka_tests += tests/launch/verdict_test tests/launch/slurm_test
