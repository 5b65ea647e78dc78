# SPDX-License-Identifier: Apache-2.0
# The study of docs/study.md: experiments as recorded runs. Its smoke test carries out a quick one, with a browser if there is one.
CHECK_EXTRA += tests/study/smoke.py
EXTRA_DIST += tests/study/smoke.py tests/study/run tests/study/record.py tests/study/page.py tests/study/export.mjs \
	tests/study/experiments/study_bandwidth.py tests/study/experiments/study_loading.py tests/study/experiments/study_map.py \
	tests/study/experiments/study_multi.py tests/study/experiments/study_precision.py tests/study/experiments/study_scale.py \
	tests/study/experiments/study_strategies.py tests/study/experiments/study_tuning.py
