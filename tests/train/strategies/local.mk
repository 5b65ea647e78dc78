# SPDX-License-Identifier: Apache-2.0
# Strategies: the same results (same, including deliberate faults), checkpoints of one for another (layouts), bytes sent
# (bytes) and memory (shares) compared with what follows from sizes alone; pipelines, and their idle time (bubbles); the
# same bits for every number of ranks (bits); the memory of what is offloaded (offload). Longer: same.py --full,
# layouts.py --full, bits.py --full, offload.py --full, bubbles.py --full (by the clock).
strategies_tests = tests/train/strategies/same.py tests/train/strategies/pipelines.py tests/train/strategies/layouts.py \
	tests/train/strategies/bytes.py tests/train/strategies/shares.py tests/train/strategies/bits.py \
	tests/train/strategies/offload.py tests/train/strategies/bubbles.py
TESTS += $(strategies_tests)
EXTRA_DIST += $(strategies_tests)
