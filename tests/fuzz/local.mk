# SPDX-License-Identifier: Apache-2.0
# Replays inputs that were found earlier; `tests/fuzz/run.sh` searches for new ones with clang's libFuzzer. Each target
# is one file.
fuzz_targets = tests/fuzz/journal tests/fuzz/request tests/fuzz/grammar tests/fuzz/decode tests/fuzz/range tests/fuzz/gzip \
	tests/fuzz/picture tests/fuzz/safetensors tests/fuzz/state tests/fuzz/tar tests/fuzz/tfrecord \
	tests/fuzz/lmdb tests/fuzz/parquet tests/fuzz/arrow tests/fuzz/lines \
	tests/fuzz/json_member tests/fuzz/shard_list tests/fuzz/tokenizer tests/fuzz/chat_template
check_PROGRAMS += $(fuzz_targets)
check_LTLIBRARIES += tests/fuzz/libfuzz.la
EXTRA_DIST += tests/fuzz/replay.sh tests/fuzz/run.sh tests/fuzz/corpus tests/fuzz/dict tests/fuzz/driver.c tests/fuzz/container.h
TESTS += tests/fuzz/replay.sh

tests_fuzz_libfuzz_la_SOURCES = tests/fuzz/api.c tests/fuzz/api.h tests/fuzz/fuzz.h
if !FUZZER
tests_fuzz_libfuzz_la_SOURCES += tests/fuzz/driver.c
endif
fuzz_web = tests/fuzz/libfuzz.la libwebserver.la $(JANSSON_LIBS) $(FUZZER_LIBS)
fuzz_trainer = tests/fuzz/libfuzz.la libtrainer.la libtrackbase.la $(JANSSON_LIBS) $(FUZZER_LIBS)
tests_fuzz_journal_LDADD = $(fuzz_web)
tests_fuzz_request_LDADD = $(fuzz_web)
tests_fuzz_grammar_LDADD = $(fuzz_web)
tests_fuzz_decode_LDADD = $(fuzz_web)
tests_fuzz_range_LDADD = $(fuzz_web)
tests_fuzz_gzip_LDADD = $(fuzz_web)
tests_fuzz_picture_LDADD = $(fuzz_trainer)
tests_fuzz_safetensors_LDADD = $(fuzz_trainer)
tests_fuzz_state_LDADD = $(fuzz_trainer)
tests_fuzz_tar_LDADD = $(fuzz_trainer)
tests_fuzz_lines_LDADD = tests/fuzz/libfuzz.la libwebcli.la $(JANSSON_LIBS) $(FUZZER_LIBS)
tests_fuzz_json_member_LDADD = $(fuzz_trainer)
tests_fuzz_shard_list_LDADD = $(fuzz_trainer)
tests_fuzz_tokenizer_LDADD = $(fuzz_trainer)
tests_fuzz_chat_template_LDADD = $(fuzz_trainer)
tests_fuzz_tfrecord_LDADD = $(fuzz_trainer)
tests_fuzz_lmdb_LDADD = $(fuzz_trainer)
tests_fuzz_parquet_LDADD = $(fuzz_trainer)
tests_fuzz_arrow_LDADD = $(fuzz_trainer)
