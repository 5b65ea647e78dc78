# SPDX-License-Identifier: Apache-2.0
# Packages without building them: what wheels contain, and how an installed one starts its program.
release_tests = tests/release/wheel.py
TESTS += $(release_tests)
EXTRA_DIST += $(release_tests)
