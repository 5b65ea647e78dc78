/* token_stream.h: reads an object from start to end in bounded memory, decompressed on the way. Remote data are
 * announced ahead. */
#ifndef DPT_DATA_TOKEN_STREAM_H
#define DPT_DATA_TOKEN_STREAM_H

#include <stddef.h>

#include "trainer/data/corpus/texts.h"
#include "trainer/data/store/data_objects.h"

struct stream;

/* ERR_USAGE: this build lacks the compression. */
int stream_open(struct stream **ret, struct objects *store, int object, enum text_packing packing, struct err *err);
void stream_close(struct stream *s); /* NULL is fine */

/* Reads up to n bytes (n > 0); *ret_n 0: the end. ERR_USAGE: damaged or truncated. */
int stream_read(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err);

#endif
