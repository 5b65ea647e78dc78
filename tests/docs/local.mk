# SPDX-License-Identifier: Apache-2.0
# The documents: their commands run, their generated pages are up to date, the site's search answers questions.
docs_tests = tests/docs/readme.py tests/docs/tutorial.py tests/docs/reference.py tests/docs/guides.py tests/docs/served.py
TESTS += $(docs_tests)
CHECK_EXTRA += tests/docs/site.py
EXTRA_DIST += $(docs_tests) tests/docs/site.py tests/docs/search.mjs tests/docs/page.py tests/docs/stage.py tests/docs/questions
