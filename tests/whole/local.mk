# SPDX-License-Identifier: Apache-2.0
# The complete path: train, record, serve, query.
whole_tests = tests/whole/report.py tests/whole/foreign.py tests/whole/moved.sh
whole_tests += tests/whole/tour.py tests/whole/quickstart.py tests/whole/event_files.py tests/whole/histories.py
TESTS += $(whole_tests)
CHECK_EXTRA += tests/whole/tensorboard.py tests/whole/team.py tests/whole/deploy.py
EXTRA_DIST += $(whole_tests) tests/whole/tensorboard.py tests/whole/team.py tests/whole/deploy.py \
	tests/whole/serve.py tests/whole/readme.py web/deploy/dptrack@.service web/deploy/haproxy.cfg \
	web/deploy/compose.yaml web/deploy/kubernetes.yaml \
	tests/whole/foreign/make_foreign.py tests/whole/foreign/expected.json tests/whole/foreign/runs

# Both install TensorBoard into one environment: one after the other.
tests/whole/tensorboard.log: tests/tracker/tensorboard_reader.log
