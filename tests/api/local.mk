# SPDX-License-Identifier: Apache-2.0
# The server from outside: raw requests, examples, exports, many connections, event streams.
api_tests = tests/api/hostile.py tests/api/openapi.py tests/api/transfer.py tests/api/crowd.py tests/api/events.py \
	tests/api/artifacts.py tests/api/journal.py tests/api/access.py tests/api/auth/grants.py tests/api/auth/shares.py tests/api/auth/authors.py tests/api/auth/cost.py tests/api/tls.py tests/api/paths.py tests/api/load.py tests/api/paused.py tests/api/attacks.py \
	tests/api/downloads.py tests/api/line.py tests/api/groups.py tests/api/kept.py tests/api/moved.py tests/api/objects.py tests/api/formula.py tests/api/alerts.py \
	tests/api/values/nonfinite.py tests/api/values/filters.py tests/api/values/formula_cells.py tests/api/process/signals.py tests/api/process/owner.py tests/api/process/published.py tests/api/process/grafana.py tests/api/limits/bounds.py tests/api/limits/places.py
EXTRA_DIST += $(api_tests) tests/api/lib.py
TESTS += $(api_tests)

# Grants through clients: half a minute.
EXTRA_DIST += tests/api/auth/clients.py
CHECK_EXTRA += tests/api/auth/clients.py

# Two authors of one text: twenty seconds.
EXTRA_DIST += tests/api/texts/interleaved.py
CHECK_EXTRA += tests/api/texts/interleaved.py

# Each route with its worst largest body: two minutes.
EXTRA_DIST += tests/api/limits/worst.py
CHECK_EXTRA += tests/api/limits/worst.py

api_test_programs = tests/api/double_test tests/api/confine_test tests/api/journals/pace_test tests/api/webhook_test
cmocka_tests += $(api_test_programs)
tests_api_double_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_api_double_test_LDADD = libwebserver.la $(CMOCKA_LIBS)
tests_api_journals_pace_test_LDADD = libwebserver.la $(CMOCKA_LIBS)
tests_api_webhook_test_LDADD = libwebcli.la $(CMOCKA_LIBS)
tests_api_confine_test_LDADD = libwebserver.la $(CMOCKA_LIBS)
