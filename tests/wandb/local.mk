# SPDX-License-Identifier: Apache-2.0
# W&B's own package, which is downloaded from PyPI, against the server: recording, other flows, kills, reading back; hostile
# requests without it.
EXTRA_DIST += tests/wandb/system tests/wandb/system.txt tests/wandb/install.py tests/wandb/basic.py tests/wandb/flows.py tests/wandb/frameworks.py tests/wandb/kills.py tests/wandb/reading.py \
	tests/wandb/hostile.py
TESTS += tests/wandb/hostile.py
CHECK_LONG += tests/wandb/frameworks.py
CHECK_EXTRA += tests/wandb/basic.py tests/wandb/flows.py tests/wandb/kills.py tests/wandb/reading.py
