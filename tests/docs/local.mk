# SPDX-License-Identifier: Apache-2.0
# The documents: their commands run, and their generated pages are up to date.
docs_tests = tests/docs/readme.py tests/docs/tutorial.py tests/docs/reference.py
TESTS += $(docs_tests)
EXTRA_DIST += $(docs_tests) tests/docs/page.py
