/* objects.h: objects (files) of bytes behind their addresses, read at any place from any thread. It must not know what
 * the bytes are. What is named and is not there is ERR_USAGE; what cannot be read any more ERR_IO; both name the
 * address. */
#ifndef DPT_DATA_OBJECTS_H
#define DPT_DATA_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct objects;

int objects_open(struct objects **ret, struct err *err); /* without objects */
void objects_close(struct objects *s);		     /* NULL is fine */

/* The number of the object, from 0 in the order they are added; negative: it cannot be used. Not while others read. */
int objects_add(struct objects *s, const char *address, struct err *err);

int objects_count(const struct objects *s);
const char *objects_address(const struct objects *s, int object);
const char *objects_name(const struct objects *s, int object); /* its address's last part, for messages */
uint64_t objects_bytes(const struct objects *s, int object);

/* Whether any object lies on a network disk (NFS, SMB, FUSE) or farther: many small reads are slow then. */
bool objects_far(const struct objects *s);

/* Adds address, size and what tells one version of the object from the next, as one line of text. */
void objects_stamp(const struct objects *s, int object, struct buf *to);

/* All n bytes from `at` on, which lie within the object. An object that is shorter by now is ERR_IO. */
int objects_read(struct objects *s, int object, uint64_t at, void *to, size_t n, struct err *err);

#endif
