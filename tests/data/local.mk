# SPDX-License-Identifier: Apache-2.0
# Data sets, pictures and texts: from files to batches.
cmocka_tests += tests/data/dataset_test tests/data/input_nomem_test tests/data/loader_test tests/data/sampler_test tests/data/recipes/augment_test tests/data/store/cache_test tests/data/store/fetch_block_test tests/data/store/objects_test tests/data/store/peers_test tests/data/store/streams_test tests/data/formats/pages_test
tests_data_formats_pages_test_LDFLAGS = $(AM_LDFLAGS) -static -Wl,--wrap=parquet_page_read
tests_data_formats_pages_test_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_data_dataset_test_SOURCES = tests/data/dataset_test.c tests/data/idx_make.h
tests_data_dataset_test_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_data_loader_test_SOURCES = tests/data/loader_test.c tests/data/idx_make.h
tests_data_loader_test_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_data_recipes_augment_test_LDADD = $(LDADD) $(JANSSON_LIBS)
EXTRA_DIST += tests/data/recipes/augment.json tests/data/recipes/make_augment.py
tests_data_input_nomem_test_SOURCES = tests/data/input_nomem_test.c tests/data/idx_make.h
tests_data_input_nomem_test_LDFLAGS = $(AM_LDFLAGS) -static \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=posix_memalign
tests_data_input_nomem_test_LDADD = $(LDADD) $(JANSSON_LIBS) $(ZLIB_LIBS)
if HAVE_IMAGES
cmocka_tests += tests/data/entropy_test tests/data/folder_test tests/data/format_test tests/data/picture_test
tests_data_format_test_SOURCES = tests/data/format_test.c tests/data/idx_make.h
tests_data_format_test_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_data_entropy_test_CPPFLAGS = $(AM_CPPFLAGS) $(JPEG_CFLAGS)
tests_data_entropy_test_LDADD = $(LDADD) $(JPEG_LIBS)
tests_data_folder_test_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_data_picture_test_LDADD = $(LDADD) $(ZLIB_LIBS)
endif

check_PROGRAMS += tests/data/formats/columns tests/data/deliver tests/data/texts/encode tests/data/texts/mark tests/data/texts/render
dist_check_SCRIPTS += tests/data/texts/chat_tables.py tests/data/sets/account.py tests/data/bad_input.py tests/data/sets/bombs.py tests/data/cache.py tests/data/containers.py tests/data/texts/chat_sets.py tests/data/texts/chat_templates.py tests/data/texts/corpus.py tests/data/texts/hf_tokens.py tests/data/texts/hostile_tokenizers.py tests/data/sets/google.py tests/data/sets/hdf5.py tests/data/sets/incomplete.py tests/data/inputs.py tests/data/sets/labels.py tests/data/texts/mix.py tests/data/store/shared_blocks.py tests/data/sets/peers.py tests/data/recipes/recipes.py tests/data/records.py tests/data/remote.py tests/data/shards.py tests/data/sets/stream.py tests/data/tokens.py tests/data/recipes/train_crop.py tests/data/waits.py
TESTS += tests/data/bad_input.py tests/data/recipes/recipes.py tests/data/texts/mix.py
if HAVE_IMAGES
TESTS += tests/data/sets/account.py tests/data/sets/bombs.py tests/data/cache.py tests/data/containers.py tests/data/sets/google.py tests/data/sets/hdf5.py tests/data/sets/incomplete.py tests/data/inputs.py tests/data/sets/labels.py tests/data/store/shared_blocks.py tests/data/records.py tests/data/remote.py tests/data/shards.py tests/data/sets/stream.py tests/data/recipes/train_crop.py tests/data/waits.py
CHECK_EXTRA += tests/data/sets/peers.py
endif
if HAVE_TOKENIZERS
TESTS += tests/data/texts/corpus.py tests/data/texts/hostile_tokenizers.py tests/data/tokens.py
CHECK_LONG += tests/data/texts/chat_sets.py tests/data/texts/chat_templates.py tests/data/texts/hf_tokens.py
endif
# Both use the cache in memory, and one of them checks that it is removed: one after the other.
tests/data/cache.log: tests/data/sets/stream.log
EXTRA_DIST += tests/data/texts/small_tokenizer.py
EXTRA_DIST += tests/data/formats tests/data/noisy.py tests/data/objectserver.py tests/data/s3server.py tests/data/pictures.py tests/data/pictures tests/data/make_bpe.py tests/data/bpe
