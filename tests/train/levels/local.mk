# SPDX-License-Identifier: Apache-2.0
# Apex's levels of casts, compared with an emulation (reference/make_casts.py).
TESTS += tests/train/levels/casts.py
EXTRA_DIST += tests/train/levels/casts.py
