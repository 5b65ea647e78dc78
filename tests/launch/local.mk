# SPDX-License-Identifier: Apache-2.0
# How the end of a job is judged.
cmocka_tests += tests/launch/verdict_test tests/launch/slurm_test
