# Communicators, over real processes.
if HAVE_CMOCKA
check_PROGRAMS += tests/comm/shm_test
TESTS += tests/comm/shm_test
tests_comm_shm_test_SOURCES = tests/comm/shm_test.c
tests_comm_shm_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_comm_shm_test_LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
endif
