/* SPDX-License-Identifier: Apache-2.0 */
/* data_objects.c: local files, as many kept open as the limits allow, and remote objects. */
#include "trainer/data/store/data_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "tracker/object/object.h"
#include "trainer/data/store/cache.h"
#include "trainer/data/store/fetch.h"
#include "trainer/data/store/peers.h"
#include "trainer/data/store/readahead.h"

#define OPEN_MOST 4096
#define OPEN_LEAST 16
#define PIECE_BYTES ((uint64_t)8 << 20) /* size of a piece of an announced file */

struct store_object {
	char *address;
	uint64_t bytes;
	struct timespec changed;
	uint64_t node;
	_Atomic int fd;		 /* -1: not open */
	int remote;		 /* number in fetch; -1: a local file */
	_Atomic uint32_t *round; /* local file, [piece]: the round that last announced it */
};

struct objects {
	struct store_object *object;
	int n, cap;
	struct objects_opts o;
	struct fetch *fetch;		 /* NULL until a remote object is added */
	struct cache *cache;		 /* NULL: none */
	struct readahead *read, *wanted; /* sequential streams of reads and of announcements */
	int keep;			 /* most files kept open */
	_Atomic int n_open;
	_Atomic uint64_t local_bytes; /* read from local files */
};

struct objects *objects_open(const struct objects_opts *o)
{
	struct objects *s = mem_zalloc(sizeof(*s));
	struct rlimit limit = { .rlim_cur = 0 };

	s->o = *o;
	getrlimit(RLIMIT_NOFILE, &limit);
	s->keep = limit.rlim_cur / 4 > OPEN_MOST ? OPEN_MOST : (int)(limit.rlim_cur / 4);
	s->keep = s->keep < OPEN_LEAST ? 0 : s->keep;
	s->read = readahead_new();
	s->wanted = readahead_new();
	return s;
}

void objects_close(struct objects *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->n; i++) {
		if (s->object[i].fd >= 0)
			close(s->object[i].fd);
		free(s->object[i].address);
		free(s->object[i].round);
	}
	readahead_free(s->read);
	readahead_free(s->wanted);
	fetch_free(s->fetch);
	cache_close(s->cache);
	free(s->object);
	free(s);
}

static int start_fetch(struct objects *s, struct err *err)
{
	struct fetch_opts o = { .timeout_s = s->o.timeout_s > 0 ? s->o.timeout_s : OBJECTS_TIMEOUT_S,
				.requests = s->o.requests,
				.peers = s->o.peers,
				.parts = s->o.parts };
	int rc = s->o.cache ? cache_open(&s->cache, &(struct cache_opts){ s->o.cache, s->o.cache_bytes }, err) : 0;

	o.cache = s->cache;
	return rc ? rc : fetch_new(&s->fetch, &o, err);
}

static int add_remote_object(struct objects *s, const char *address, struct err *err)
{
	int rc = s->fetch ? 0 : start_fetch(s, err), number;

	number = rc ? rc : fetch_add(s->fetch, address, err);
	if (number < 0)
		return number;
	mem_push(&s->object, &s->n, &s->cap,
		 (struct store_object){
			 .address = mem_strdup(fetch_shown(s->fetch, number)), .remote = number, .fd = -1 });
	return s->n - 1;
}

int objects_add_listed(struct objects *s, const char *address, const struct objects_entry *e, struct err *err)
{
	int number = add_remote_object(s, address, err);

	if (number >= 0)
		fetch_set_known(s->fetch, s->object[number].remote, e->bytes, e->version);
	return number;
}

int objects_measure(struct objects *s, struct err *err)
{
	int rc = s->fetch ? fetch_measure(s->fetch, err) : 0;
	uint64_t bytes = 0;

	for (int i = 0; !rc && i < s->n; i++)
		if (s->object[i].remote >= 0)
			bytes += s->object[i].bytes = fetch_bytes(s->fetch, s->object[i].remote);
	return rc || !s->cache ? rc : cache_fits(s->cache, bytes, s->o.memory_bytes, err);
}

int objects_add(struct objects *s, const char *address, struct err *err)
{
	struct stat st;

	if (fetch_is_remote(address))
		return add_remote_object(s, address, err);
	if (strstr(address, "://"))
		return err_set(err, ERR_USAGE, "%.300s: unsupported URL: expected http://, https://, s3:// or gs://",
			       address);
	if (stat(address, &st))
		return err_set(err, ERR_USAGE, "%.300s: %s", address, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%.300s: is not a regular file", address);
	mem_push(&s->object, &s->n, &s->cap,
		 (struct store_object){ .address = mem_strdup(address),
					.round = mem_array((size_t)((uint64_t)st.st_size / PIECE_BYTES) + 1,
							   sizeof(*s->object->round)),
					.bytes = (uint64_t)st.st_size,
					.changed = st.st_mtim,
					.node = (uint64_t)st.st_ino,
					.remote = -1,
					.fd = -1 });
	return s->n - 1;
}

void objects_set_sums(struct objects *s, int object, const uint32_t *sum, size_t n)
{
	int remote = s->object[object].remote;

	_Static_assert(OBJECTS_SUM_BYTES == FETCH_BLOCK, "a sum of each block");
	if (remote >= 0)
		fetch_set_sums(s->fetch, remote, sum, n);
}

int objects_count(const struct objects *s)
{
	return s->n;
}

const char *objects_address(const struct objects *s, int object)
{
	return s->object[object].address;
}

const char *objects_name(const struct objects *s, int object)
{
	const char *address = s->object[object].address, *slash = strrchr(address, '/');

	return slash && slash[1] ? slash + 1 : address;
}

uint64_t objects_bytes(const struct objects *s, int object)
{
	return s->object[object].bytes;
}

const char *objects_generation(const struct objects *s, int object)
{
	return s->object[object].remote < 0 ? "" : fetch_generation(s->fetch, s->object[object].remote);
}

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sum_remote_bytes(const struct objects *s)
{
	uint64_t all = 0;

	for (int i = 0; i < s->n; i++)
		all += s->object[i].remote < 0 ? 0 : s->object[i].bytes;
	return all;
}

uint64_t objects_buffer_bytes(const struct objects *s)
{
	const uint64_t served = s->o.peers ? PEER_SERVER_BLOCKS * FETCH_BLOCK : 0;

	return s->fetch ? min_bytes(fetch_room(s->fetch) + served, sum_remote_bytes(s) * (served ? 2 : 1)) : 0;
}

bool objects_hold_windows(struct objects *s, const struct objects_windows *w)
{
	const uint64_t ends = (uint64_t)w->places * FETCH_BLOCK, two = 2 * w->bytes + ends;
	const uint64_t held = w->memory_bytes ? min_bytes(two, w->memory_bytes) : two;

	if (!s->fetch || s->cache)
		return true;
	if (held > fetch_room(s->fetch))
		fetch_set_room(s->fetch, held);
	return fetch_room(s->fetch) >= min_bytes(sum_remote_bytes(s), w->bytes + ends);
}

static bool is_network_path(const char *path)
{
	static const unsigned long kinds[] = { 0x6969 /* NFS */,      0x65735546 /* FUSE */, 0xff534d42 /* CIFS */,
					       0xfe534d42 /* SMB2 */, 0x00c36400 /* Ceph */, 0x0bd00bd0 /* Lustre */ };
	struct statfs st;

	for (size_t i = 0; !statfs(path, &st) && i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((unsigned long)st.f_type == kinds[i])
			return true;
	return false;
}

bool objects_remote(const struct objects *s)
{
	return s->fetch != NULL;
}

bool objects_far(const struct objects *s)
{
	return s->fetch ||
	       (s->n && (is_network_path(s->object[0].address) || is_network_path(s->object[s->n - 1].address)));
}

void objects_stamp(const struct objects *s, int object, struct buf *to)
{
	const struct store_object *o = &s->object[object];

	if (o->remote >= 0) {
		buf_addf(to, "%s %llu %s\n", o->address, (unsigned long long)o->bytes, fetch_etag(s->fetch, o->remote));
		return;
	}
	buf_addf(to, "%s %llu %lld.%09ld %llu\n", o->address, (unsigned long long)o->bytes,
		 (long long)o->changed.tv_sec, o->changed.tv_nsec, (unsigned long long)o->node);
}

/* Returns the file's descriptor. *ret_stays: it stays open after the call. */
static int acquire_object_fd(struct objects *s, struct store_object *o, bool *ret_stays)
{
	int fd = atomic_load(&o->fd), none = -1;

	*ret_stays = true;
	if (fd >= 0)
		return fd;
	fd = open(o->address, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (atomic_fetch_add(&s->n_open, 1) < s->keep && atomic_compare_exchange_strong(&o->fd, &none, fd))
		return fd;
	atomic_fetch_sub(&s->n_open, 1);
	*ret_stays = false;
	return fd;
}

static int read_file_range(const struct store_object *o, int fd, const struct objects_range *r, void *to,
			   struct err *err)
{
	ssize_t got = file_read(fd, r->at, to, r->n);

	if (got < 0)
		return err_set(err, ERR_IO, "%.300s: %s", o->address, strerror(errno));
	return (size_t)got == r->n ? 0 : err_set(err, ERR_IO, "%.300s: has been truncated", o->address);
}

static struct fetch_range make_fetch_range(const struct objects *s, const struct objects_range *r)
{
	return (struct fetch_range){ .object = s->object[r->object].remote,
				     .at = r->at,
				     .n = r->n,
				     .alone = r->alone,
				     .stop = r->stop };
}

int objects_read(struct objects *s, const struct objects_range *r, void *to, struct err *err)
{
	struct store_object *o = &s->object[r->object];
	struct fetch_range remote = make_fetch_range(s, r);
	struct stream_place place;
	bool stays;
	int fd, rc;

	if (o->remote >= 0)
		return fetch_read(s->fetch, &remote, to, err);
	fd = acquire_object_fd(s, o, &stays);
	if (fd < 0)
		return err_set(err, ERR_IO, "%.300s: %s", o->address, strerror(errno));
	readahead_take(s->read, r, o->address, &place);
	rc = read_file_range(o, place.fd >= 0 ? place.fd : fd, r, to, err);
	readahead_give(s->read, &place);
	atomic_fetch_add_explicit(&s->local_bytes, r->n, memory_order_relaxed);
	if (!stays)
		close(fd);
	return rc;
}

static int read_source_object(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct object_source *s = user;

	const struct objects_range r = { .object = s->object, .at = at, .n = n, .stop = s->stop };

	return objects_read(s->store, &r, to, err);
}

struct byte_source objects_source(struct object_source *s)
{
	return (struct byte_source){ .bytes = objects_bytes(s->store, s->object),
				     .read = read_source_object,
				     .user = s,
				     .name = objects_name(s->store, s->object) };
}

/* Announces the piece with the range, and the next piece, once per round: at the second range in it that does not
 * continue a stream. *ret: the bytes to announce; false: none. */
static bool claim_new_pieces(struct objects *s, const struct objects_range *r, struct objects_range *ret)
{
	struct store_object *o = &s->object[r->object];
	uint64_t at = r->at / PIECE_BYTES, to = at < o->bytes / PIECE_BYTES ? at + 1 : at;
	const uint32_t seen = 2 * r->round, done = seen + 1;
	uint32_t was = atomic_load_explicit(&o->round[at], memory_order_relaxed);

	if (was == done || !r->round || readahead_follow(s->wanted, r))
		return false;
	atomic_store_explicit(&o->round[at], was == seen ? done : seen, memory_order_relaxed);
	if (was != seen)
		return false;
	if (atomic_exchange_explicit(&o->round[to], done, memory_order_relaxed) == done)
		to = at;
	*ret = (struct objects_range){ .at = at * PIECE_BYTES, .n = (size_t)((to + 1 - at) * PIECE_BYTES) };
	return true;
}

static bool advise_file_range(struct objects *s, const struct objects_range *r)
{
	struct store_object *o = &s->object[r->object];
	struct objects_range now = *r;
	bool stays;
	int fd;

	if (!r->n || r->at + r->n > o->bytes || (!r->alone && !claim_new_pieces(s, r, &now)))
		return true;
	fd = acquire_object_fd(s, o, &stays);
	if (fd < 0)
		return true;
	posix_fadvise(fd, (off_t)now.at, (off_t)now.n, POSIX_FADV_WILLNEED);
	if (!stays)
		close(fd);
	return true;
}

bool objects_want(struct objects *s, const struct objects_range *r)
{
	struct fetch_range remote = make_fetch_range(s, r);

	return s->object[r->object].remote < 0 ? advise_file_range(s, r) : fetch_want(s->fetch, &remote);
}

bool objects_is_folder(const char *address)
{
	const char *name = strrchr(address, '/');

	return object_is_address(address) && !strchr(name, '.') && !strstr(name, "-of-");
}

struct objects_traffic objects_traffic(const struct objects *s)
{
	struct fetch_counts c = { .bytes = 0 };

	if (s->fetch)
		c = fetch_counts(s->fetch);
	return (struct objects_traffic){ .remote_bytes = c.bytes,
					 .cache_bytes = c.cache_bytes,
					 .local_bytes = s->local_bytes,
					 .requests = c.requests,
					 .refetched_bytes = c.refetched_bytes,
					 .peer_bytes = c.peer_bytes,
					 .peer_failures = c.peer_failures,
					 .retries = c.retries };
}

uint64_t objects_cached(const struct objects *s)
{
	return s->fetch ? fetch_cached(s->fetch) : 0;
}

bool objects_notice(struct objects *s, char *ret, size_t bytes)
{
	return s->cache && (cache_notice(s->cache, ret, bytes) || (s->o.peers && peers_notice(s->o.peers, ret, bytes)));
}

int objects_text(const char *address, const struct objects_opts *o, size_t most, struct buf *ret, struct err *err)
{
	struct objects *s = objects_open(o);
	uint64_t n;
	char *to;
	int rc = objects_add(s, address, err);

	rc = rc < 0 ? rc : objects_measure(s, err);
	n = rc ? 0 : objects_bytes(s, 0);
	if (!rc && n > most)
		rc = err_set(err, ERR_USAGE, "%.300s: %llu bytes: expected at most %zu", objects_address(s, 0),
			     (unsigned long long)n, most);
	to = rc ? NULL : buf_reserve(ret, (size_t)n + 1);
	if (to && n)
		rc = objects_read(s, &(struct objects_range){ .n = (size_t)n }, to, err);
	if (!rc)
		ret->len += (size_t)n;
	objects_close(s);
	return rc;
}
