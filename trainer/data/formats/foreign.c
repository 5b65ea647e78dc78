/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c: files of other programs that hold data sets and are not read, by their content, and how they are
 * converted. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "trainer/data/formats/formats.h"

#define HEAD_BYTES 520
#define BINARY "is the Python version (pickle) of CIFAR: use the binary one, "
#define ROWS "write a JSON object per row to *.jsonl for texts, or the table to *.parquet for pictures"
#define TO_HDF5 "write its arrays to HDF5 as x_train, y_train, x_test and y_test (h5py)"

static const struct {
	const char *begins; /* "": known by its ending */
	size_t at, n;
	const char *ending, *advice; /* ending NULL: any */
} kinds[] = {
	{ "\x89HDF\r\n\x1a\n", 0, 8, NULL, "is an HDF5 file: call it *.h5" },
	{ "\x89HDF\r\n\x1a\n", 512, 8, NULL, "is a MATLAB 7.3 file, which is HDF5: call it *.h5" },
	{ "MATLAB 5.0", 0, 10, NULL, "is a MATLAB file (.mat), as SVHN has: " TO_HDF5 " with scipy.io.loadmat" },
	{ "PK\3\4", 0, 4, ".npz", "is a NumPy archive (.npz), as Keras has: " TO_HDF5 },
	{ "PK\3\4", 0, 4, ".zip", "is an archive: unpack it" },
	{ "\x93NUMPY", 0, 6, NULL, "is a NumPy array (.npy): " TO_HDF5 },
	{ "", 0, 0, "cifar-10-python.tar.gz", BINARY "cifar-10-binary.tar.gz" },
	{ "", 0, 0, "cifar-100-python.tar.gz", BINARY "cifar-100-binary.tar.gz" },
	{ "", 0, 0, ".csv", "is CSV: " ROWS },
	{ "", 0, 0, ".tsv", "is a table of text: " ROWS },
};

static bool ends_in(const char *name, const char *ending)
{
	const size_t n = strlen(name), m = strlen(ending);

	return n >= m && !strcasecmp(name + n - m, ending);
}

/* Pickles begin with their version; CIFAR's, which torchvision leaves, with names of their own. */
static const char *advise_pickle(const unsigned char *head, size_t n, const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

	if (n < 4 || head[0] != 0x80 || head[1] < 2 || head[1] > 5)
		return NULL;
	if (!strncmp(base, "data_batch_", 11) || !strcmp(base, "test_batch") || !strcmp(base, "batches.meta"))
		return BINARY "cifar-10-binary.tar.gz";
	if (!strcmp(base, "train") || !strcmp(base, "test") || !strcmp(base, "meta"))
		return BINARY "cifar-100-binary.tar.gz";
	return "is a Python pickle: " TO_HDF5;
}

const char *foreign_advice(const char *path)
{
	unsigned char head[HEAD_BYTES];
	FILE *f = fopen(path, "re");
	const size_t n = f ? fread(head, 1, sizeof(head), f) : 0;

	if (f)
		fclose(f);
	for (size_t i = 0; n && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (n >= kinds[i].at + kinds[i].n && !memcmp(head + kinds[i].at, kinds[i].begins, kinds[i].n) &&
		    (!kinds[i].ending || ends_in(path, kinds[i].ending)))
			return kinds[i].advice;
	return advise_pickle(head, n, path);
}
