/* SPDX-License-Identifier: Apache-2.0 */
/* shard_index.c: threads scan the shards, one shard at a time each, in order. After a failure they scan no further one:
 * the shards before it are scanned, so the error is the same in every run. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/parquet.h"
#include "trainer/data/container/webdataset.h"

#define THREADS_MAX 32
#define IDX_BYTES_MAX ((size_t)256 << 20)
#define READ_BYTES ((uint64_t)8 << 20) /* prefetch step for remote objects */

struct shard_scan {
	struct objects *store;
	const struct shard_index_opts *o;
	struct samples *part;	      /* [object] */
	_Atomic int next, read_whole; /* next object; shards scanned though their labels were known */
	pthread_mutex_t lock;
	_Atomic int failed; /* lowest object that could not be read; -1: none */
	struct err err;
	struct stop stop; /* a store does not answer: the reads of other shards end, too */
};

/* Detects the container by its first bytes, because the names of remote objects are unreliable. */
static int detect_container(const struct byte_source *file, container_scan **ret, struct err *err)
{
	char head[CONTAINER_HEAD];
	int rc;

	*ret = webdataset_scan;
	if (file->bytes < sizeof(head))
		return 0;
	rc = file->read(file->user, 0, head, sizeof(head), err);
	if (!rc)
		rc = file_refuse_pointer(file->name, head, sizeof(head), err);
	if (!rc && tfrecord_probe(head))
		*ret = tfrecord_scan;
	else if (!rc && lmdb_probe(head))
		*ret = lmdb_scan;
	else if (!rc && parquet_probe(head))
		*ret = parquet_scan;
	else if (!rc && arrow_probe(head))
		*ret = arrow_scan;
	return rc;
}

/* Records the error of the lowest object. No further shard is scanned. */
static void fail_scan(struct shard_scan *s, int object, int rc, const struct err *err)
{
	pthread_mutex_lock(&s->lock);
	if (rc != ERR_CANCELED && (s->failed < 0 || object < s->failed)) {
		s->err = *err;
		s->failed = object;
	}
	if (rc == ERR_IO)
		s->stop.now = true;
	pthread_mutex_unlock(&s->lock);
}

/* Loads DALI's index next to a remote shard. *ret false: no index. ERR_IO: the store did not answer in time. */
static int load_dali_text(const struct shard_scan *s, const char *path, struct buf *text, bool *ret, struct err *err)
{
	const double began = clock_mono_s(), timeout_s = s->o->timeout_s > 0 ? s->o->timeout_s : OBJECTS_TIMEOUT_S;
	struct err why = ERR_INIT;
	int rc = objects_text(path, &(struct objects_opts){ .timeout_s = timeout_s }, IDX_BYTES_MAX - 1, text, &why);

	*ret = !rc;
	return rc && clock_mono_s() - began >= timeout_s ? err_set(err, ERR_IO, "%s", why.text) : 0;
}

/* Uses DALI's index next to a remote shard. *ret false: the shard must be scanned. */
static int use_dali_index(struct shard_scan *s, int object, bool *ret, struct err *err)
{
	const struct shard_sums *known = s->o->known ? &s->o->known[object] : NULL;
	const char *address = objects_address(s->store, object);
	size_t n = strlen(address), tar = strlen(SHARD_SUFFIX);
	char path[PATH_MAX];
	struct buf text;
	int rc = 0;

	*ret = false;
	if (!known || !known->labels || !strstr(address, "://") || n <= tar || strcmp(address + n - tar, SHARD_SUFFIX))
		return 0;
	snprintf(path, sizeof(path), "%.*s.idx", (int)(n - tar), address);
	buf_init(&text, IDX_BYTES_MAX);
	if (known->bytes == objects_bytes(s->store, object))
		rc = load_dali_text(s, path, &text, ret, err);
	buf_addc(&text, '\0');
	*ret = *ret && !buf_failed(&text) &&
	       webdataset_take_idx(&s->part[object], text.data, known->labels, (uint32_t)object, s->o->fields);
	buf_done(&text);
	if (*ret || rc)
		return rc;
	samples_done(&s->part[object]);
	samples_init(&s->part[object]);
	atomic_fetch_add(&s->read_whole, 1);
	return 0;
}

/* Scans one shard, remote ones with prefetching in storage order. */
static void scan_shard(struct shard_scan *s, int object)
{
	struct object_source source = { s->store, object, &s->stop };
	struct byte_source archive = objects_source(&source);
	struct err err = ERR_INIT;
	container_scan *scan;
	bool indexed;
	int rc = use_dali_index(s, object, &indexed, &err);

	for (uint64_t at = 0; !rc && !indexed && at < archive.bytes; at += READ_BYTES)
		if (!objects_want(s->store, &(struct objects_range){ .object = object, .at = at, .n = 1 }))
			break;
	if (!rc && !indexed)
		rc = detect_container(&archive, &scan, &err);
	if (!rc && !indexed)
		rc = scan(&s->part[object], &archive, (uint32_t)object, s->o->fields, &err);
	if (rc)
		fail_scan(s, object, rc, &err);
	else if (!s->part[object].rows.len && !s->part[object].lost)
		samples_lose(&s->part[object], "%.300s: has no samples", archive.name);
}

static void *run_scan_thread(void *arg)
{
	struct shard_scan *s = arg;
	int object;

	while (s->failed < 0 && (object = atomic_fetch_add(&s->next, 1)) < objects_count(s->store))
		scan_shard(s, object);
	return NULL;
}

static void scan_all_shards(struct shard_scan *s)
{
	pthread_t thread[THREADS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int n = 0, most = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (int)cores;

	while (n < most - 1 && n < objects_count(s->store) - 1 && !thread_start(&thread[n], run_scan_thread, s))
		n++;
	run_scan_thread(s);
	while (n-- > 0)
		pthread_join(thread[n], NULL);
}

static const char *name_shard(const void *store, uint32_t object)
{
	return objects_name(store, (int)object);
}

int shard_index(struct samples *ret, struct objects *store, const struct shard_index_opts *o, int *ret_whole,
		struct err *err)
{
	int n = objects_count(store), rc = 0;
	struct shard_scan s = { .store = store, .o = o, .failed = -1 };

	s.part = mem_array((size_t)n, sizeof(*s.part));
	for (int i = 0; i < n; i++)
		samples_init(&s.part[i]);
	pthread_mutex_init(&s.lock, NULL);
	scan_all_shards(&s);
	samples_init(ret);
	ret->object_name = name_shard;
	ret->user = store;
	for (int i = 0; i < n; i++) {
		samples_append(ret, &s.part[i]);
		samples_done(&s.part[i]);
	}
	free(s.part);
	pthread_mutex_destroy(&s.lock);
	*ret_whole = s.read_whole;
	if (s.failed >= 0)
		rc = err_set(err, s.err.code, "%s", s.err.text);
	return rc ? rc : samples_end(ret, err);
}
