# SPDX-License-Identifier: Apache-2.0
# Jobs on several machines, simulated by network namespaces.
TESTS += tests/nodes/asked_alone.py tests/nodes/meetings.py tests/nodes/launchers.py tests/nodes/bandwidth.py tests/nodes/sent.py \
	tests/nodes/shared_cache.py tests/nodes/shared_training.py
EXTRA_DIST += tests/nodes/asked_alone.py tests/nodes/bandwidth.py tests/nodes/jobs.py tests/nodes/launchers.py \
	tests/nodes/meetings.py tests/nodes/mpirun.py \
	tests/nodes/sent.py tests/nodes/shared_cache.py tests/nodes/shared_jobs.py tests/nodes/shared_training.py tests/nodes/spaces.py
