# SPDX-License-Identifier: Apache-2.0
# tests/bench
include tests/bench/kernels.mk
include tests/bench/store.mk
include tests/bench/train.mk
include tests/bench/loader.mk
include tests/bench/comm/local.mk
include tests/bench/storage/local.mk
EXTRA_DIST += tests/bench/packages.py tests/bench/parts/mlflow_server.py tests/bench/parts/percentile.py tests/bench/parts/python_step.py \
	tests/bench/python tests/bench/serve tests/bench/sweep \
	tests/bench/insight/importance.mjs tests/bench/parts/sklearn_importance.py \
	tests/bench/jobs tests/bench/tensorboard tests/bench/team/wandb tests/bench/team/live tests/bench/team/live.mjs
EXTRA_DIST += tests/bench/checkpoint tests/bench/before-after tests/bench/strategies/bandwidth tests/bench/strategies/compare \
	tests/bench/strategies/deterministic tests/bench/strategies/pytorch_ranks.py
