/* token_stream.h: the bytes of an object from its beginning to its end, unpacked on the way, in bounded memory. What is
 * remote is announced ahead. */
#ifndef DPT_DATA_TOKEN_STREAM_H
#define DPT_DATA_TOKEN_STREAM_H

#include <stddef.h>

#include "trainer/data/corpus/texts.h"
#include "trainer/data/store/data_objects.h"

struct stream;

/* ERR_UNSUPPORTED for a packing that this build does not read. */
int stream_open(struct stream **ret, struct objects *store, int object, enum text_packing packing, struct err *err);
void stream_close(struct stream *s); /* NULL is fine */

/* Up to n bytes (n > 0); *ret_n 0: the end. ERR_USAGE: what is packed is damaged or cut off. */
int stream_read(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err);

#endif
