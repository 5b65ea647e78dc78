/* answer.h: what S3 answers in XML, element by element. Nothing is believed: no entities of the
 * document's own, names and texts have a maximum. */
#ifndef DPT_OBJECT_ANSWER_H
#define DPT_OBJECT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

struct answer_reader {
	/* An element has ended: its path ("ListBucketResult/Contents/Key") and its own text. Nonzero ends it all. */
	int (*element)(void *user, const char *path, const char *text);
	void *user;
};

/* Opens the parser while files can be opened: who reads answers may be shut off from them. What fails is told by
 * answer_read. */
void answer_prepare(void);

/* ERR_CORRUPT for what is no XML, ERR_UNSUPPORTED without expat; else what `element` returned. */
int answer_read(const char *xml, size_t n, const struct answer_reader *r, struct err *err);

#endif
