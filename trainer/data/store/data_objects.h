/* SPDX-License-Identifier: Apache-2.0 */
/* data_objects.h: objects of bytes with addresses: local files or remote objects (fetch.h), with random access from any
 * thread. Does not know what the bytes are. A named object that does not exist is ERR_USAGE; a later read error is
 * ERR_IO. Both messages name the address. */
#ifndef DPT_DATA_DATA_OBJECTS_H
#define DPT_DATA_DATA_OBJECTS_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/base/thread.h"

struct objects;

#define OBJECTS_TIMEOUT_S 300.0

struct objects_opts {
	double timeout_s;      /* remote: longest time without progress; 0: OBJECTS_TIMEOUT_S */
	int requests;	       /* remote: most requests in flight; 0: automatic */
	int parts;	       /* processes that read one part of the objects each; 0: one */
	const char *cache;     /* cache folder, or "ram" (cache.h); NULL: no cache */
	uint64_t cache_bytes;  /* … its limit; 0: the free space */
	uint64_t memory_bytes; /* free for a cache in memory; 0: unknown */
	struct peers *peers;   /* with a cache: nodes that share theirs (peers.h); borrowed; NULL: none */
};

struct objects *objects_open(const struct objects_opts *o);			       /* starts empty */
void objects_close(struct objects *s);						       /* NULL is fine */

/* Adds an object and returns its number, from 0 in order; negative: unusable. Not during reads. */
int objects_add(struct objects *s, const char *address, struct err *err);

/* Requests the sizes of remote objects. Once, after the last objects_add. */
int objects_measure(struct objects *s, struct err *err);

int objects_count(const struct objects *s);
const char *objects_address(const struct objects *s, int object); /* without secrets */
const char *objects_name(const struct objects *s, int object);	  /* last part of the address, for messages */
uint64_t objects_bytes(const struct objects *s, int object);

const char *objects_generation(const struct objects *s, int object); /* Google's number of the version; "": none */

/* Upper bound of the memory that remote reads use. */
uint64_t objects_buffer_bytes(const struct objects *s);

/* The windows by which a process reads its part of the objects: one after the other, each in any order. */
struct objects_windows {
	uint64_t bytes;	       /* per window and process */
	int places;	       /* separate positions; their first and last blocks overlap other windows */
	uint64_t memory_bytes; /* limit for held blocks; 0: none */
};

/* For remote objects without a cache: sets the memory limit so that each block of a window, and of the next one,
 * which is fetched meanwhile, arrives once. False: the limit does not suffice for one window, so blocks are fetched
 * repeatedly. Not during reads. */
bool objects_hold_windows(struct objects *s, const struct objects_windows *w);

#define OBJECTS_SUM_BYTES ((uint64_t)8 << 20)

/* Sets the n CRC-32Cs of an object's OBJECTS_SUM_BYTES pieces and of the rest, copied. A remote piece with another
 * checksum is fetched again if it was read whole. Not during reads. */
void objects_set_sums(struct objects *s, int object, const uint32_t *sum, size_t n);

bool objects_remote(const struct objects *s); /* true if any object is remote */

/* Returns true if an object is on a network disk (NFS, SMB, FUSE) or a server: many small reads are slow. */
bool objects_far(const struct objects *s);

/* Appends a line with the address, the size and the version of the object. */
void objects_stamp(const struct objects *s, int object, struct buf *to);

struct objects_range {
	int object;
	uint64_t at;
	size_t n;
	bool alone;		 /* the caller will not read its neighbours soon */
	uint32_t round;		 /* announcements: a piece is announced once per round */
	const struct stop *stop; /* remote: once it is set, a wait ends with ERR_CANCELED; NULL: never */
};

/* Reads all bytes of the range, which must be within the object. ERR_IO: the object was truncated. */
int objects_read(struct objects *s, const struct objects_range *r, void *to, struct err *err);

/* The input of a container reader: bytes with random access, of an object or in memory. */
struct byte_source {
	uint64_t bytes; /* size of the whole source */
	/* Reads exactly n bytes at offset `at`; the caller keeps the range within the source. */
	int (*read)(void *user, uint64_t at, void *to, size_t n, struct err *err);
	void *user;
	const char *name; /* for messages; borrowed */
};

struct object_source {
	struct objects *store;
	int object;
	const struct stop *stop; /* as in struct objects_range */
};

/* Returns an object as a byte source. s must outlive it. */
struct byte_source objects_source(struct object_source *s);

/* Announces a read, in reading order. False: enough is announced; try again later. For local files the system starts
 * reading, which may wait for the disk. */
bool objects_want(struct objects *s, const struct objects_range *r);

/* An entry of a listing. */
struct objects_entry {
	const char *name; /* relative to the folder */
	uint64_t bytes;
	const char *version; /* as fetch_set_known (fetch.h) takes it */
};

/* Adds a remote object from a listing, so that objects_measure does not request it. */
int objects_add_listed(struct objects *s, const char *address, const struct objects_entry *e, struct err *err);

/* Lists the objects in a folder of a remote store, sorted by name. */
bool objects_is_folder(const char *address); /* true if the store can list it; a name with a dot must end in a slash */

struct objects_lister {
	bool below;								 /* recursive */
	double timeout_s;							 /* as in struct objects_opts */
	int (*each)(void *user, const struct objects_entry *e, struct err *err); /* nonzero stops and is returned */
	void *user;
};

/* Calls l->each for each entry. ERR_USAGE: no such folder; or an error of the store. */
int objects_list(const char *address, const struct objects_lister *l, struct err *err);

/* Bytes read, by source, and requests to servers, since objects_open. */
struct objects_traffic {
	uint64_t remote_bytes, cache_bytes, local_bytes, requests, retries;
	uint64_t refetched_bytes, peer_bytes, peer_failures; /* as in struct fetch_counts */
};

struct objects_traffic objects_traffic(const struct objects *s);

uint64_t objects_cached(const struct objects *s); /* bytes of remote objects that are cached at present */

/* Takes the next line to show to the user; false: none. */
bool objects_notice(struct objects *s, char *ret, size_t bytes);

/* Appends a whole small object, at most `most` bytes, to *ret. */
int objects_text(const char *address, const struct objects_opts *o, size_t most, struct buf *ret, struct err *err);

#endif
