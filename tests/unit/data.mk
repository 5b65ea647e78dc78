# Unit tests of the trainer's configuration, data and weights.
if HAVE_CMOCKA
trainer_input_tests = tests/unit/config_test tests/unit/settle_test tests/unit/lr_schedule_test tests/unit/sampler_test \
	tests/unit/dataset_test tests/unit/loader_test tests/unit/safetensors_test tests/unit/weights_test \
	tests/unit/input_nomem_test tests/unit/normal_test
check_PROGRAMS += $(trainer_input_tests)
TESTS += $(trainer_input_tests)
tests_unit_config_test_SOURCES = tests/unit/config_test.c
tests_unit_config_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_config_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)
tests_unit_settle_test_SOURCES = tests/unit/settle_test.c
tests_unit_settle_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_settle_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_lr_schedule_test_SOURCES = tests/unit/lr_schedule_test.c tests/data/lr_table.def
tests_unit_lr_schedule_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_lr_schedule_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_sampler_test_SOURCES = tests/unit/sampler_test.c
tests_unit_sampler_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_sampler_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_normal_test_SOURCES = tests/unit/normal_test.c
tests_unit_normal_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_normal_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_dataset_test_SOURCES = tests/unit/dataset_test.c tests/data/idx_make.h
tests_unit_dataset_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_dataset_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
tests_unit_loader_test_SOURCES = tests/unit/loader_test.c tests/data/idx_make.h
tests_unit_loader_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_loader_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
tests_unit_safetensors_test_SOURCES = tests/unit/safetensors_test.c
tests_unit_safetensors_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_safetensors_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_weights_test_SOURCES = tests/unit/weights_test.c
tests_unit_weights_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_weights_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
tests_unit_input_nomem_test_SOURCES = tests/unit/input_nomem_test.c tests/data/idx_make.h
tests_unit_input_nomem_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_input_nomem_test_LDFLAGS = $(AM_LDFLAGS) -static -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=posix_memalign
tests_unit_input_nomem_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS) $(ZLIB_LIBS)
if HAVE_IMAGES
check_PROGRAMS += tests/unit/picture_test tests/unit/folder_test tests/unit/entropy_test
TESTS += tests/unit/picture_test tests/unit/folder_test tests/unit/entropy_test
tests_unit_entropy_test_SOURCES = tests/unit/entropy_test.c
tests_unit_entropy_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JPEG_CFLAGS)
tests_unit_entropy_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(JPEG_LIBS)
tests_unit_folder_test_SOURCES = tests/unit/folder_test.c
tests_unit_folder_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_folder_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(ZLIB_LIBS)
tests_unit_picture_test_SOURCES = tests/unit/picture_test.c
tests_unit_picture_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_picture_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(ZLIB_LIBS)

trainer_checkpoint_tests = tests/unit/checkpoint_test tests/unit/torchvision_test
check_PROGRAMS += $(trainer_checkpoint_tests)
TESTS += $(trainer_checkpoint_tests)
tests_unit_checkpoint_test_SOURCES = tests/unit/checkpoint_test.c
tests_unit_checkpoint_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_checkpoint_test_LDFLAGS = $(AM_LDFLAGS) -static -Wl,--wrap=mkdir,--wrap=fsync,--wrap=rename,--wrap=renameat2,--wrap=write,--wrap=unlink,--wrap=rmdir
tests_unit_checkpoint_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS)
tests_unit_torchvision_test_SOURCES = tests/unit/torchvision_test.c
tests_unit_torchvision_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_torchvision_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
endif
endif
