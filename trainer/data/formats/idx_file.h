/* idx_file.h: a file in IDX format (two zero bytes, element type, number of dimensions, big-endian dimensions,
 * elements; http://yann.lecun.com/exdb/mnist), plain or gzip, detected by content. Only 8-bit elements. */
#ifndef DPT_DATA_IDX_FILE_H
#define DPT_DATA_IDX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/base/file.h"

#define IDX_DIMS_MAX 4

struct idx_file {
	int ndim;
	int64_t dim[IDX_DIMS_MAX];
	const uint8_t *data; /* the elements: product of dim bytes */
	size_t bytes;
	struct file_map file; /* mapping that data points into, */
	void *memory;	      /* or malloc'd inflated data */
};

/* ERR_USAGE, in one line, for any defect of the file. Allocates no more than the file can fill. */
int idx_file_open(struct idx_file *ret, const char *path, struct err *err);
void idx_file_close(struct idx_file *f); /* a zeroed one is fine */

#endif
