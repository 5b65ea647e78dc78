# SPDX-License-Identifier: Apache-2.0
# How the end of a job is judged; steps that are given up.
cmocka_tests += tests/launch/verdict_test tests/launch/slurm_test
launch_scripts = tests/launch/given_up.py
EXTRA_DIST += $(launch_scripts) tests/launch/slow_steps.py
TESTS += $(launch_scripts)
