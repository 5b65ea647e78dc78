/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h: parses S3's answers in XML, element by element. Untrusted input: documents cannot declare entities; names
 * and texts have a maximum length. */
#ifndef DPT_OBJECT_ANSWER_H
#define DPT_OBJECT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

struct answer_reader {
	/* Called at the end of an element with its path ("ListBucketResult/Contents/Key") and its own text. A nonzero
	 * return stops the parser. */
	int (*element)(void *user, const char *path, const char *text);
	void *user;
};

/* Loads the parser while files can be opened: the process may lose access to them later. answer_read reports
 * failures. */
void answer_prepare(void);

/* Returns ERR_CORRUPT if the text is not XML, ERR_UNSUPPORTED without expat, otherwise what `element` returned. */
int answer_read(const char *xml, size_t n, const struct answer_reader *r, struct err *err);

#endif
