/* SPDX-License-Identifier: Apache-2.0 */
/* calls_test.c: libraries that are opened at run time: the real ones if configure found them, and each way in which
 * one can be unavailable, reported in one line. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/backends/cuda/calls.h"

static const char *const file_of[CUDA_LIBRARIES] = {
#define LIBRARY(id, name, file, least, package) [CUDA_##id] = file,
#include "trainer/backends/cuda/calls.def"
};

static char folder[] = "/tmp/dpt-calls-XXXXXX";

/* Puts a library of that name in the test's folder, the only one searched: a link, or a text file. */
static void put(const char *file, const char *target)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	unlink(path);
	if (target) {
		assert_int_equal(symlink(target, path), 0);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("no library\n", f);
	fclose(f);
}

static void drop(const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	unlink(path);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && setenv("DPTRAIN_CUDA_LIBS", folder, 1) == 0 ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Whether configure found its header. */
static bool is_built(enum cuda_library which, struct err *err)
{
	struct cuda_calls c = { 0 };

	*err = (struct err)ERR_INIT;
	cuda_calls_open(&c, which, err);
	return !strstr(err->text, "header was missing");
}

static void refuses_other_files(void **state)
{
	struct cuda_calls c = { 0 };
	struct err err;

	(void)state;
	for (int k = 0; k < CUDA_LIBRARIES; k++) {
		if (!is_built((enum cuda_library)k, &err))
			continue;
		put(file_of[k], NULL);
		err = (struct err)ERR_INIT;
		assert_int_equal(cuda_calls_open(&c, (enum cuda_library)k, &err), ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "cannot be loaded: "));
		drop(file_of[k]);
	}
}

/* A different library under this name: libc. */
static void names_a_missing_call(void **state)
{
	struct cuda_calls c = { 0 };
	struct err err;
	Dl_info libc;

	(void)state;
	if (!is_built(CUDA_CUBLASLT, &err))
		skip();
	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "puts"), &libc), 0);
	put(file_of[CUDA_CUBLASLT], libc.dli_fname);
	assert_int_equal(cuda_calls_open(&c, CUDA_CUBLASLT, &err), ERR_UNSUPPORTED);
	assert_string_equal(err.text, "cuBLASLt (libcublasLt.so.13) has no cublasLtGetVersion: install the version "
				      "of nvidia-cublas==13.1.0.3");
	assert_int_equal(c.version[CUDA_CUBLASLT], 0);
	drop(file_of[CUDA_CUBLASLT]);
}

static void says_how_to_install_a_library(void **state)
{
	struct cuda_calls c = { 0 };
	struct err err = ERR_INIT;

	(void)state;
	if (cuda_calls_open(&c, CUDA_NVRTC, &err) == 0 || strstr(err.text, "header was missing"))
		skip(); /* it is in the loader's path */
	assert_string_equal(err.text,
			    "NVRTC (libnvrtc.so.13) not found: set DPTRAIN_CUDA_LIBS to its folder (pip install "
			    "nvidia-cuda-nvrtc==13.0.88 provides it)");
}

/* Every call in the table exists. */
static void finds_every_call_of_the_real_libraries(void **state)
{
	struct cuda_calls c = { 0 };
	struct err err;
	char version[64];
	int found = 0;

	(void)state;
	assert_int_equal(setenv("DPTRAIN_CUDA_LIBS", REAL_FOLDERS, 1), 0);
	for (int k = 0; k < CUDA_LIBRARIES; k++) {
		err = (struct err)ERR_INIT;
		if (cuda_calls_open(&c, (enum cuda_library)k, &err) == 0) {
			cuda_library_version(&c, (enum cuda_library)k, version, sizeof(version));
			print_message("%s\n", version);
			found++;
		} else if (!strstr(err.text, "not found") && !strstr(err.text, "header was missing")) {
			fail_msg("%s", err.text);
		}
	}
	if (!found)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_other_files),
		cmocka_unit_test(names_a_missing_call),
		cmocka_unit_test(says_how_to_install_a_library),
		cmocka_unit_test(finds_every_call_of_the_real_libraries),
	};

	return cmocka_run_group_tests_name("gpu/calls", tests, make_folder, drop_folder);
}
