# The server from outside: raw requests, examples, exports, crowds, event streams.
api_tests = tests/api/hostile.py tests/api/openapi.py tests/api/transfer.py tests/api/crowd.py tests/api/events.py
EXTRA_DIST += $(api_tests) tests/api/lib.py
TESTS += $(api_tests)
