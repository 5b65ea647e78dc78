/* data_objects.h: objects of bytes behind their addresses, local files or remote ones (fetch.h), read at any place from any
 * thread. It must not know what the bytes are. What is named and is not there is ERR_USAGE; what cannot be read any
 * more is ERR_IO; both name the address. */
#ifndef DPT_DATA_DATA_OBJECTS_H
#define DPT_DATA_DATA_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/base/stop.h"

struct objects;

struct objects_opts {
	double timeout_s; /* of remote ones: without any progress; 0: 300 */
	int requests;	  /* … in flight at most; 0: as many as are useful */
	int parts;	  /* that the objects are read in, each by a process; 0: one */
	const char *cache; /* folder that keeps them, or "ram" (cache.h); NULL: none */
	uint64_t cache_bytes; /* … at most; 0: as there is room */
	uint64_t memory_bytes; /* that are free for one in memory; 0: not known */
};

int objects_open(struct objects **ret, const struct objects_opts *o, struct err *err); /* without objects */
void objects_close(struct objects *s);		     /* NULL is fine */

/* The number of the object, from 0 in the order they are added; negative: it cannot be used. Not while others read. */
int objects_add(struct objects *s, const char *address, struct err *err);

/* Once, behind the last objects_add: sizes of remote objects. */
int objects_measure(struct objects *s, struct err *err);

int objects_count(const struct objects *s);
const char *objects_address(const struct objects *s, int object); /* without secrets */
const char *objects_name(const struct objects *s, int object); /* its address's last part, for messages */
uint64_t objects_bytes(const struct objects *s, int object);

/* What reading remote objects holds of them in memory at most. */
uint64_t objects_buffer_bytes(const struct objects *s);

/* A process reads its part of the objects by windows, one behind the other, each in any order. */
struct objects_windows {
	uint64_t bytes; /* of one, in this process */
	int places; /* of the objects that it consists of, whose ends lie in blocks of other windows too */
	uint64_t memory_bytes; /* that may be held; 0: as many as are wanted */
};

/* Remote objects without a cache: as much is held as lets each block of a window, and of the next, which is fetched
 * meanwhile, arrive once. False: memory does not allow it for one window, so blocks will be fetched again and again.
 * Not while others read. */
bool objects_hold_windows(struct objects *s, const struct objects_windows *w);

#define OBJECTS_SUM_BYTES ((uint64_t)8 << 20)

/* CRC-32C of each OBJECTS_SUM_BYTES of an object, the last piece being what is left: n of them, copied. A remote one's
 * bytes that arrive with another are asked for again, where whole pieces are. Not while others read. */
int objects_set_sums(struct objects *s, int object, const uint32_t *sum, size_t n, struct err *err);

bool objects_remote(const struct objects *s); /* whether any is a remote one */

/* Whether any object lies on a network disk (NFS, SMB, FUSE) or farther: many small reads are slow then. */
bool objects_far(const struct objects *s);

/* Adds address, size and what tells one version of the object from the next, as one line of text. */
void objects_stamp(const struct objects *s, int object, struct buf *to);

/* Whether that line changes with the object's bytes: a server that names no version leaves it open. */
bool objects_versioned(const struct objects *s, int object);

struct objects_range {
	int object;
	uint64_t at;
	size_t n;
	bool alone; /* its neighbours will not be read soon */
	uint32_t round; /* of announcements: what was announced in this one, with its neighbours, is not again */
	const struct stop *stop; /* a wait for a remote object ends once it is asked for; NULL: never */
};

/* All bytes of the range, which lies within the object. An object that is shorter by now is ERR_IO. */
int objects_read(struct objects *s, const struct objects_range *r, void *to, struct err *err);

/* Somebody will read this soon, in the order of such calls. False: enough was announced; again later. The system begins
 * to read files, which may wait for the disk. */
bool objects_want(struct objects *s, const struct objects_range *r);

/* What a listing says of an object. */
struct objects_entry {
	const char *name; /* below the folder */
	uint64_t bytes;
	const char *version;
};

/* Adds a remote object that was listed: objects_measure need not ask for it. */
int objects_add_listed(struct objects *s, const char *address, const struct objects_entry *e, struct err *err);

/* What lies in a folder of a remote store, in the order of names. */
bool objects_is_folder(const char *address); /* whether the store can say; a name with a dot ends in a slash then */

struct objects_lister {
	bool below;	  /* all that is below the folder; else what lies in it alone */
	double timeout_s; /* as in struct objects_opts */
	int (*each)(void *user, const struct objects_entry *e, struct err *err); /* nonzero ends it and is returned */
	void *user;
};

int objects_list(const char *address, const struct objects_lister *l, struct err *err);

/* Bytes that readers got, or that came from servers, and requests to these, since the beginning. */
struct objects_traffic {
	uint64_t remote_bytes, cache_bytes, local_bytes, requests, retries;
};

struct objects_traffic objects_traffic(const struct objects *s);

uint64_t objects_cached(const struct objects *s); /* bytes of remote objects that lie in the cache now */

/* Takes the line that somebody should see; false: none. */
bool objects_notice(struct objects *s, char *ret, size_t bytes);

/* The whole object as text, at most `most` bytes; for small ones. */
int objects_text(const char *address, const struct objects_opts *o, size_t most, struct buf *ret, struct err *err);

#endif
