# SPDX-License-Identifier: Apache-2.0
# Packages without building them: what wheels contain, how an installed one starts its program, the bill of materials, what
# make says that they need. same.py compares two releases.
release_tests = tests/release/needs.py tests/release/wheel.py tests/release/same.py
TESTS += $(release_tests)
CHECK_EXTRA += tests/release/bill.py
EXTRA_DIST += $(release_tests) tests/release/bill.py
