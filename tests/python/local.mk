# SPDX-License-Identifier: Apache-2.0
# The Python package: recorded runs read back from their journals; ranks of a job; imports on use; an installation without
# the network. typed.py needs PyPI and npm: ./check runs it.
# A library built with a sanitizer cannot be loaded into Python.
python_tests = tests/python/runs.py tests/python/ranks.py tests/python/told.py tests/python/media.py tests/python/hidden.py \
	tests/python/install.py tests/python/lazy.py
TESTS += $(python_tests)
CHECK_EXTRA += tests/python/typed.py tests/python/interpreters.py tests/python/pure.py
EXTRA_DIST += $(python_tests) tests/python/lib.py tests/python/all tests/python/with_optuna.py \
	tests/python/with_mlflow.py tests/python/with_doors.py tests/python/with_peers.py tests/python/with_pictures.py tests/python/with_processes.py \
	tests/python/with_torch.py tests/python/with_trainers.py tests/python/with_wandb.py tests/python/typed.py tests/python/interpreters.py tests/python/pure.py
