# Inputs that were found once, replayed; `tests/fuzz/run.sh` looks for new ones with clang's libFuzzer.
fuzz_targets = tests/fuzz/journal tests/fuzz/json tests/fuzz/grammar tests/fuzz/decode tests/fuzz/range tests/fuzz/gzip tests/fuzz/picture
check_PROGRAMS += $(fuzz_targets)
EXTRA_DIST += tests/fuzz/replay.sh tests/fuzz/run.sh tests/fuzz/corpus
TESTS += tests/fuzz/replay.sh

if FUZZER
fuzz_driver =
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_driver = tests/fuzz/driver.c
fuzz_ldflags = $(AM_LDFLAGS)
endif
EXTRA_DIST += tests/fuzz/driver.c

trainer_fuzz_targets = tests/fuzz/safetensors tests/fuzz/state
check_PROGRAMS += $(trainer_fuzz_targets)
tests_fuzz_safetensors_SOURCES = tests/fuzz/safetensors.c
nodist_tests_fuzz_safetensors_SOURCES = $(fuzz_driver)
tests_fuzz_safetensors_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_safetensors_LDADD = libtrainer.la libtrackbase.la $(JANSSON_LIBS)
tests_fuzz_state_SOURCES = tests/fuzz/state.c
nodist_tests_fuzz_state_SOURCES = $(fuzz_driver)
tests_fuzz_state_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_state_LDADD = libtrainer.la libtrackbase.la $(JANSSON_LIBS)
tests_fuzz_journal_SOURCES = tests/fuzz/journal.c tests/fuzz/fuzz.h
nodist_tests_fuzz_journal_SOURCES = $(fuzz_driver)
tests_fuzz_journal_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_journal_LDADD = libwebstore.la
tests_fuzz_json_SOURCES = tests/fuzz/json.c tests/fuzz/api.c tests/fuzz/api.h
nodist_tests_fuzz_json_SOURCES = $(fuzz_driver)
tests_fuzz_json_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_json_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_json_LDADD = libwebserver.la
tests_fuzz_grammar_SOURCES = tests/fuzz/grammar.c tests/fuzz/api.c
nodist_tests_fuzz_grammar_SOURCES = $(fuzz_driver)
tests_fuzz_grammar_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_grammar_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_grammar_LDADD = libwebserver.la
tests_fuzz_decode_SOURCES = tests/fuzz/decode.c
nodist_tests_fuzz_decode_SOURCES = $(fuzz_driver)
tests_fuzz_decode_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_decode_LDADD = libwebserver.la
tests_fuzz_range_SOURCES = tests/fuzz/range.c
nodist_tests_fuzz_range_SOURCES = $(fuzz_driver)
tests_fuzz_range_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_range_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_range_LDADD = libwebserver.la
tests_fuzz_gzip_SOURCES = tests/fuzz/gzip.c
nodist_tests_fuzz_gzip_SOURCES = $(fuzz_driver)
tests_fuzz_gzip_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_gzip_LDADD = libwebserver.la
tests_fuzz_picture_SOURCES = tests/fuzz/picture.c
nodist_tests_fuzz_picture_SOURCES = $(fuzz_driver)
tests_fuzz_picture_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_picture_LDADD = libtrainer.la libtrackbase.la
