/* SPDX-License-Identifier: Apache-2.0 */
/* batch_file.h: the file of --batch-from: one global batch as safetensors: `images` F32 or F64 [N,C,H,W] and `labels`
 * I64 [N], or `tokens` I64 [N,T+1]. In memory: images NHWC, labels and tokens i32. */
#ifndef DPT_WEIGHTS_BATCH_FILE_H
#define DPT_WEIGHTS_BATCH_FILE_H

#include "trainer/graph/graph.h"

struct batch_file {
	int64_t n;
	int height, width, channels;
	enum dtype dtype; /* type of images in the file: DTYPE_F32 or DTYPE_F64 */
	void *images;	  /* NHWC */
	int32_t *labels;  /* all >= 0 */
	int classes;	  /* largest label + 1 */
	int32_t *tokens;  /* n rows of seq_len + 1, each at least -1; NULL in a batch of images */
	int64_t seq_len;
};

/* Reads and checks the file; batch_file_close frees *ret. ERR_USAGE names the path and what is wrong. */
int batch_file_open(struct batch_file **ret, const char *path, struct err *err);
void batch_file_close(struct batch_file *b); /* NULL is fine */

#endif
