# SPDX-License-Identifier: Apache-2.0
# The number of loading threads, chosen after steps were measured; idle times of pipelines, and their memory.
cmocka_tests += tests/program/pipeline_test tests/program/workers_test
