/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: replays inputs without libFuzzer: every named file, and every file of a named folder, in order. An input
 * that once made a target fail is kept in its corpus. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 16 << 20 };

static int one_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	uint8_t *bytes = malloc(INPUT_MAX), *tight;
	size_t n;

	if (!f || !bytes) {
		fprintf(stderr, "cannot read %s\n", name);
		exit(1);
	}
	n = fread(bytes, 1, INPUT_MAX, f);
	fclose(f);
	tight = malloc(n ? n : 1); /* of the exact size, so that a sanitizer detects a read past its end */
	if (!tight)
		exit(1);
	memcpy(tight, bytes, n);
	LLVMFuzzerTestOneInput(tight, n);
	free(tight);
	free(bytes);
	return 1;
}

static int one_folder(const char *folder)
{
	struct dirent **names;
	int n = scandir(folder, &names, NULL, alphasort), i, count = 0;
	char path[4096];

	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
			count += one_file(path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return count;
}

int main(int argc, char **argv)
{
	struct stat st;
	int i, count = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++)
		count += !stat(argv[i], &st) && S_ISDIR(st.st_mode) ? one_folder(argv[i]) : one_file(argv[i]);
	printf("%d inputs\n", count);
	return count ? 0 : 1;
}
